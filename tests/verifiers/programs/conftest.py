"""A sandbox for the tests of a file: its server takes a moment to start."""

import pytest
from code_tests import LIMITS

from rlvr_jax.sandbox import Sandbox
from rlvr_jax.verifiers.programs.python.trial import run_tests


@pytest.fixture(scope="module")
def words():
    """(program, tests) -> the word for each."""
    with Sandbox() as sandbox:
        yield lambda program, tests, limits=LIMITS, total_seconds=20.0: run_tests(
            sandbox, program, tests, limits, total_seconds
        )
