from rlvr_jax.verifiers.texts import tp_judge


def verdict(given, gold):
    if gold == "allocation":
        return tp_judge.allocation(*given)
    if gold == "loop":
        verdicts = iter(given)
        return tp_judge.autoformalise(
            "a step",
            formalise=str,
            prove=lambda formal: (next(verdicts), "message"),
            repair=lambda step, formal, message: formal,
        )._asdict()
    return tp_judge.judge([given] if isinstance(given, str) else given)
