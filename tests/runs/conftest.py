"""What tests of runs share."""

import jax
import pytest
import training_runs


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """Folder of a random policy for `training_runs.sums`."""
    return training_runs.write_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture
def usual_promotion():
    """A model in float64 finds its wider dtype by promotion, which strictness refuses."""
    with jax.numpy_dtype_promotion("standard"):
        yield
