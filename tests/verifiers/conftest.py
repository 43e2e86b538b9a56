"""One mathematics verifier for all tests of a process: its worker takes seconds to start."""

import pytest

from rlvr_jax.verifiers import MathVerifier


@pytest.fixture(scope="session")
def verifier():
    with MathVerifier(workers=1, wall_seconds=1.0) as shared:
        shared.grade([r"\sqrt{3}"], [r"\boxed{3^{1/2}}"])
        yield shared


@pytest.fixture
def judge(verifier):
    """(gold, answer) -> outcome of the answer in a box."""
    return lambda gold, answer: verifier.grade([gold], [rf"\boxed{{{answer}}}"])[0].outcome
