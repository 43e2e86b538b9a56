"""Every verifier says what the published cases say, line by line."""

import sys
from pathlib import Path

import check_cases
import pytest

FOLDER = Path(__file__).parents[1] / "cases"
CASES = [
    pytest.param(slug, row, id=f"{slug}:{number}")
    for slug in check_cases.SLUGS
    for number, row in enumerate(check_cases.rows(FOLDER, slug), 1)
]


@pytest.mark.parametrize("slug, row", CASES)
def test_a_verifier_says_what_the_case_says(slug, row):
    agreed, got = check_cases.agrees(slug, row)
    assert agreed, f"{got!r} for {row['verdict']!r}: {row['why']}"


def test_every_file_of_cases_is_read():
    assert sorted(path.stem for path in FOLDER.glob("*.jsonl")) == check_cases.SLUGS


def test_cases_without_their_package_are_no_agreement(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    monkeypatch.delitem(sys.modules, "case_adapters.verifier_libraries", raising=False)
    assert check_cases.main([str(FOLDER), "verifier_libraries"]) == 1
    assert "not checked without its package: pip install -e .[tasks]" in capsys.readouterr().out
