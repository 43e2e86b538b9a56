from rlvr_jax.verifiers import verify_math


def verdict(response, gold):
    correct = verify_math(gold, response).outcome
    return None if correct is None else int(correct)
