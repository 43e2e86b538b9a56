"""Pages show at first what they are for, and lists of contents where they are long."""

import ast
import itertools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Made by commands, or written next to files that they describe.
MADE = {"comparison.md", "tables.md"}
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(
        page
        for page in sorted(DOCS.rglob("*.md"))
        if page.name not in MADE
        and "leaderboard" not in page.parts
        and page.parent.name != "teacher"
    ),
]
# As python-markdown and GitHub read it: code after a list needs a paragraph in between.
ITEM = re.compile(r"(?:[-*+]|\d+\.) ")
LONG = 60  # lines; two screens of 900 pixels


def prose(page: Path) -> str:
    """A page without the content of its fences, line by line."""
    fence = re.compile(r"^( *```).*?^\1", re.DOTALL | re.MULTILINE)
    return fence.sub(
        lambda found: f"{found[1]}{chr(10) * found[0].count(chr(10))}", page.read_text()
    )


def code_in_lists(text: str) -> list[str]:
    """Indented lines after a list, which Markdown takes for text of its last item."""
    found, in_list = [], False
    lines = text.split("\n")
    for before, line in itertools.pairwise(["", *lines]):
        if ITEM.match(line):
            in_list = True
        elif line.startswith("    ") and not before.strip() and in_list:
            found.append(line)
        elif line.strip() and not line.startswith(" ") and not before.strip():
            in_list = False
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_shows_a_command_a_picture_or_a_result_before_its_sections(page):
    head = re.split(r"^## ", page.read_text(), maxsplit=1, flags=re.M)[0]
    shown = re.search(r"^    \S|^ *```|^!\[|^\|", head, re.MULTILINE)
    result = re.search(r"\d\.\d|\b[A-Z]\w* ?=", head)
    assert shown or result, "begin with a command, a picture or a result"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_long_page_has_a_list_of_contents(page):
    text = prose(page)
    heads = re.findall(r"^## (.+)$", text, re.MULTILINE)
    if page.name == "README.md" and page.parent == ROOT:
        return  # GitHub and the site show its contents
    if len(heads) >= 3 and text.count("\n") > LONG:
        links = re.findall(r"\]\(#[\w-]+\)", text.partition("\n## ")[0])
        assert len(links) >= min(len(heads) - 1, 4)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_is_not_part_of_a_list(page):
    assert code_in_lists(prose(page)) == []


def test_code_of_docstrings_is_not_part_of_a_list():
    found = {}
    for folder in ("rlvr_jax", "experiments", "kernels"):
        for path in (ROOT / folder).rglob("*.py"):
            text = ast.get_docstring(ast.parse(path.read_text())) or ""
            if lines := code_in_lists(text):
                found[str(path)] = lines
    assert found == {}


def test_code_after_a_list_is_found():
    assert code_in_lists("- one\n- two\n\n    command") == ["    command"]
    assert code_in_lists("- one\n- two\n\nExample:\n\n    command") == []
