"""Test settings: float64 on, strict promotion, eight host devices; programs dropped in time.

At the end of a session come the seconds and the compilations of each subpackage.

Tests compile thousands of small programs and run each a few times: what a compiler spends on their
speed is lost. A test whose subject is rounding asks for `compiling.OPTIMIZED`; processes that tests
start have LLVM's optimizations, as users do.
"""

import atexit
import gc
import itertools
import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest
from compiling import compilations, compile_in_haste

compile_in_haste("--xla_force_host_platform_device_count=8")
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

# Where processes that tests start keep what they compile, one place for all of them. This one keeps
# nothing: some of its tests count what is compiled, and some have a disk that is full.
jax.config.update("jax_enable_compilation_cache", False)
PROGRAMS = "RLVR_JAX_PROGRAMS_OF_TESTS"
if PROGRAMS not in os.environ:
    os.environ[PROGRAMS] = tempfile.mkdtemp(prefix="programs_of_tests_")
    atexit.register(shutil.rmtree, os.environ[PROGRAMS], ignore_errors=True)
os.environ["JAX_COMPILATION_CACHE_DIR"] = os.environ[PROGRAMS]

# Every compiled program holds some memory maps. Linux allows a process 65,530 of them, and XLA dies
# of a segmentation fault at the next one.
MOST_MAPS = 30_000
MAPS = Path("/proc/self/maps")
_tests = itertools.count(1)

# The thousands of tests that are collected are millions of objects. To look through them for
# garbage at Python's usual pace took a seventeenth of the processor's time.
gc.set_threshold(20_000, 10, 10)


def pytest_collection_finish():
    """Leaves what was collected out of the garbage collector's rounds."""
    gc.freeze()


def pytest_itemcollected(item):
    """A slow variant of a thorough test is slow."""
    if item.get_closest_marker("slow"):
        item.own_markers[:] = [mark for mark in item.own_markers if mark.name != "thorough"]


@pytest.fixture(autouse=True)
def compilations_are_counted(request):
    with compilations() as seen:
        yield
    request.node.user_properties.append(("compilations", len(seen)))


def pytest_terminal_summary(terminalreporter):
    """Seconds and compilations of each folder of tests, those of all processes together."""
    seconds, counts = Counter(), Counter()
    for report in itertools.chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            folder = Path(report.nodeid.split("::")[0]).parts[1]
            seconds[folder] += report.duration
            if report.when == "teardown":
                counts[folder] += dict(report.user_properties).get("compilations", 0)
    terminalreporter.section("seconds and compilations by folder")
    for folder, spent in seconds.most_common():
        terminalreporter.line(f"{spent:8.1f} s {counts[folder]:7} {folder}")


@pytest.fixture(autouse=True)
def compiled_programs_are_dropped_in_time():
    """Now and then looks whether there are too many."""
    yield
    if next(_tests) % 10 == 0 and MAPS.exists() and MAPS.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()
