"""Settings of all tests: JAX where it is needed, compiled functions dropped in time, a summary.

The summary has the seconds and the compilations of each folder.
"""

import atexit
import gc
import importlib
import itertools
import os
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")

WITHOUT_JAX = ("sandbox", "verifiers")
"""Folders whose subject imports no JAX, and so do their tests."""

MEASURED = {
    "methods": 5060,
    "objectives": 1290,
    "rollout": 640,
    "experience": 625,
    "policy": 820,
    "test_examples.py": 470,
    "test_readme.py": 470,
    "types": 370,
    "kernels": 340,
    "runs": 265,
    "parallel": 190,
    "diagnosis": 180,
    "test_parts.py": 180,
    "verifiers": 80,
    "server": 75,
    "test_strangers.py": 75,
    "test_loop.py": 55,
    "analysis": 50,
}
"""Compilations of each folder in the first tier, of all its processes together."""

MORE_IN_A_FOLDER, MORE_IN_ALL = 1.5, 1.1
"""The most that is held, as factors of what was measured.

Files that need one program compile it twice if they run in two processes, and the order in which
files end decides about that. `rollout` had 520 to 650 in several runs of the tier and has 900 when
it runs without the other folders. All folders together had 11,010 and 11,130.
"""

# Where processes that tests start store what they compile, one place for all of them.
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


def pytest_collectstart(collector):
    """Sets JAX before a module of tests that may need it is imported."""
    if isinstance(collector, pytest.Module):
        folder = collector.path.relative_to(Path(__file__).parent).parts[0]
        if folder not in WITHOUT_JAX:
            importlib.import_module("jax_of_tests")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Files with few long tests come first, so that the processes end together.

    First the files of this folder, which start whole commands; then those with the most tests.
    """
    here, tests = Path(__file__).parent, Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path.parent != here, -tests[item.path], str(item.path)))


def pytest_collection_finish():
    """Leaves what was collected out of the garbage collector's rounds."""
    gc.freeze()


def pytest_itemcollected(item):
    """A slow variant of a thorough test is slow."""
    if item.get_closest_marker("slow"):
        item.own_markers[:] = [mark for mark in item.own_markers if mark.name != "thorough"]


def pytest_runtest_teardown(item):
    """Notes the compilations since the test before, those of shared fixtures among them."""
    if "jax_of_tests" in sys.modules:
        compiled = sys.modules["jax_of_tests"].COMPILED
        item.user_properties.append(("compilations", len(compiled)))
        compiled.clear()


def _spent(reporter):
    """Seconds and compilations by folder, those of all processes together."""
    seconds, counts = Counter(), Counter()
    for report in itertools.chain.from_iterable(reporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            folder = Path(report.nodeid.split("::")[0]).parts[1]
            seconds[folder] += report.duration
            if report.when == "teardown":
                counts[folder] += dict(report.user_properties).get("compilations", 0)
    return seconds, counts


def _above(config, counts):
    """Lines about folders that compile more than is held, if the whole first tier was run."""
    whole = config.args_source == config.ArgsSource.TESTPATHS and not config.option.keyword
    if not whole or config.option.markexpr != "not slow and not thorough":
        return []
    held = {name: MORE_IN_A_FOLDER * number for name, number in MEASURED.items()}
    seen = {name: counts[name] for name in held} | {"all folders": sum(counts.values())}
    held["all folders"] = MORE_IN_ALL * sum(MEASURED.values())
    return [
        f"{name}: {number} compilations, at most {held[name]:.0f} are held (tests/conftest.py)"
        for name, number in seen.items()
        if number > held[name]
    ]


def pytest_sessionfinish(session):
    """The first tier fails if a folder compiles more than is held."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and _above(session.config, _spent(reporter)[1]):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    """Prints seconds and compilations by folder, and those that are above what is held."""
    seconds, counts = _spent(terminalreporter)
    terminalreporter.section("seconds and compilations by folder")
    for folder, spent in seconds.most_common():
        terminalreporter.line(f"{spent:8.1f} s {counts[folder]:7} {folder}")
    for line in _above(terminalreporter.config, counts):
        terminalreporter.line(line, red=True)


@pytest.fixture(autouse=True)
def compiled_programs_are_dropped_in_time():
    """Now and then looks whether there are too many."""
    yield
    if next(_tests) % 10 == 0 and MAPS.exists() and MAPS.read_bytes().count(b"\n") > MOST_MAPS:
        sys.modules["jax"].clear_caches()
        gc.collect()
