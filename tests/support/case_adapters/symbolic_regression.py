from check_cases import same

from rlvr_jax.verifiers.programs import symbolic_regression

TOLERANCE = 1e-3  # rewards of fitted texts are written with 4 digits


def verdict(text, gold):
    if gold is None:
        return symbolic_regression.reward_of_error(float(text) if isinstance(text, str) else text)
    return symbolic_regression.check(text, gold).outcome


def agree(got, wanted):
    return same(got, wanted) or abs(got - wanted) <= TOLERANCE
