import functools

from rlvr_jax.verifiers import MathVerifier


@functools.cache
def _verifier():
    return MathVerifier(boxes="last")


def verdict(response, gold):
    return int(_verifier().grade([gold], [response])[0].outcome)
