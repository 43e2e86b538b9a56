"""Compiling is most of the time of these tests: optimizations off, and equal programs only once."""

import jax
import pytest
import training_runs
from jax.experimental.compilation_cache import compilation_cache


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """Folder of the programs that tests share; nothing of it outlives the session."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """Folder of a random policy for `training_runs.sums`."""
    return training_runs.write_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture
def usual_promotion():
    """A model in float64 finds its wider dtype by promotion, which strictness refuses."""
    with jax.numpy_dtype_promotion("standard"):
        yield


@pytest.fixture(scope="module", autouse=True)
def cheap_compilation(compiled):
    """The settings hold in this folder alone."""
    wanted = {
        "jax_compilation_cache_dir": str(compiled),
        "jax_persistent_cache_min_compile_time_secs": 0.2,
        "jax_disable_most_optimizations": True,
    }
    before = {name: jax.config.values[name] for name in wanted}
    _configure(wanted)
    yield
    _configure(before)


def _configure(values):
    for name, value in values.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
