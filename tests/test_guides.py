"""The pages that say what methods are for name methods and curves that there are."""

import re
from pathlib import Path

import pytest

import rlvr_jax
from docs.part_list import with_list
from rlvr_jax.methods import names

ROOT = Path(__file__).parents[1]
PACKAGE = Path(rlvr_jax.__file__).parent
PAGES = ("guidance", "curricula")
FILES = {path: path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
OF_PARTS = "\n".join(
    text for path, text in FILES.items() if {"experience", "methods"} & set(path.parts)
)
OF_OTHERS = "\n".join(text for path, text in FILES.items() if "experience" not in path.parts)


def rows(page):
    """The cells of the page's table, row by row."""
    lines = (ROOT / "docs" / f"{page}.md").read_text().splitlines()
    return [line.strip("|").split(" | ") for line in lines if line.startswith("| `")]


def curves(page):
    return sorted({curve for row in rows(page) for curve in re.findall(r"`([^`]+)`", row[2])})


@pytest.mark.parametrize("page", PAGES)
def test_every_row_is_a_method_and_none_stands_there_twice(page):
    found = [row[0].strip(" `") for row in rows(page)]
    assert found and set(found) <= set(names()) and len(set(found)) == len(found)


@pytest.mark.thorough
@pytest.mark.parametrize(("page", "curve"), [(page, c) for page in PAGES for c in curves(page)])
def test_every_curve_is_told_somewhere(page, curve):
    del page
    source = OF_PARTS if curve.startswith("experience/") else OF_OTHERS
    # What stands in <> or brackets, and behind a slash, is filled in.
    name = re.split(r"[<(]", curve.removeprefix("experience/"))[0].rstrip("/")
    words = [name, *([f"{name.split('/')[0]}/"] if "/" in name or "<" in curve else [])]
    assert any(f'"{word}' in source for word in words)


def test_the_lists_of_parts_are_those_of_the_code():
    page = (ROOT / "docs" / "experience.md").read_text()
    assert with_list(page) == page, "python docs/part_list.py"
