"""What tests of papers share."""

import pytest
import training_runs


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """Folder of a random policy for `training_runs.sums`."""
    return training_runs.write_policy(tmp_path_factory.mktemp("policy"))
