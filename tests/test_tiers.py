"""Tiers and sizes: each folder has tests of the first tier, some need no JAX, files are short."""

import subprocess
import sys
from pathlib import Path

import pytest
from everyday import everyday

TESTS = Path(__file__).parent


def python(code):
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=TESTS.parent, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.thorough
@pytest.mark.parametrize("folder", ["sandbox", "verifiers"])
def test_tests_of_a_subpackage_without_jax_import_none(folder):
    python(
        "import sys, pytest\n"
        f"assert not pytest.main(['--collect-only', '-q', '-n', '0', 'tests/{folder}'])\n"
        "assert 'jax' not in sys.modules"
    )


@pytest.mark.thorough
def test_each_folder_has_tests_of_the_first_tier():
    said = python("import pytest; pytest.main(['--collect-only', '-q', '-n', '0'])")
    found = {line.split("/")[1] for line in said.splitlines() if line.startswith("tests/")}
    folders = {path.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/test_*.py")}
    assert folders <= found


def test_variants_are_distributed_over_the_tiers():
    marks = [[mark.name for mark in each.marks] for each in everyday("abc", "a", "b", first="a")]
    assert marks == [[], ["thorough"], ["slow"]]
    with pytest.raises(ValueError, match="first must be among"):
        everyday("abc", "a", first="d")


def test_a_file_of_tests_is_read_at_one_sitting():
    lines = {path.name: path.read_text().count("\n") for path in TESTS.rglob("*.py")}
    assert {name: number for name, number in lines.items() if number > 400} == {}
