"""Marks of tests that ask for other devices than a GPU's machine may have."""

import jax
import pytest

NEEDS_EIGHT_DEVICES = pytest.mark.skipif(len(jax.devices()) < 8, reason="needs eight devices")
NEEDS_A_CPU = pytest.mark.skipif(jax.default_backend() != "cpu", reason="is about a CPU")
