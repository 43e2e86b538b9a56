"""Test settings: float64 on, strict promotion, eight host devices; programs dropped in time.

Tests compile thousands of small programs and run each a few times: what a compiler spends on their
speed is lost. A test whose subject is rounding asks for `compiling.OPTIMIZED`; processes that tests
start have LLVM's optimizations, as users do.
"""

import gc
import itertools
import os
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest
from compiling import compile_in_haste

compile_in_haste("--xla_force_host_platform_device_count=8")
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

# Every compiled program holds some memory maps. Linux allows a process 65,530 of them, and XLA dies
# of a segmentation fault at the next one.
MOST_MAPS = 30_000
MAPS = Path("/proc/self/maps")
_tests = itertools.count(1)


@pytest.fixture(autouse=True)
def compiled_programs_are_dropped_in_time():
    """Now and then looks whether there are too many."""
    yield
    if next(_tests) % 10 == 0 and MAPS.exists() and MAPS.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()
