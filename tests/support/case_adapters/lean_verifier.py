from rlvr_jax.verifiers.programs import lean_guard


def verdict(given, gold):
    if given["kind"] == "reply":
        return lean_guard.complete(given["text"])
    if given["kind"] == "guard":
        return "reject" if lean_guard.proof_of(given["text"], gold) is None else "send"
    return "accept" if lean_guard.axioms_allowed(given["text"], gold) else "reject"
