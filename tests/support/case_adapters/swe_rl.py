from rlvr_jax.verifiers.programs import swe_rl


def verdict(response, gold):
    finding = swe_rl.check(response, gold)
    return -1.0 if finding.info.get("malformed") else finding.outcome
