from rlvr_jax.verifiers.programs import geometry_formal


def verdict(response, gold):
    program = geometry_formal.extract(response)
    if program is None:
        return "none"
    finding = geometry_formal.check(program, gold)
    return "error" if finding.stage == "error" else ("right" if finding.outcome else "wrong")
