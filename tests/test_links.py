"""Links of README, docs and the other pages lead to files, and to headings, that there are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob(".github/**/*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def anchors(page):
    """The names that GitHub gives to the headings of a page."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in heads}


def test_there_are_pages_with_links():
    assert sum(len(LINK.findall(page.read_text())) for page in PAGES) > 200


@pytest.mark.thorough
@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in PAGES])
def test_a_page_links_to_what_is_there(page):
    dead = []
    for target in LINK.findall((ROOT / page).read_text()):
        if re.match(r"\w+:", target):
            continue  # no test asks the network
        path, _, anchor = target.partition("#")
        place = (ROOT / page).parent / path if path else ROOT / page
        if not place.exists() or (
            anchor and place.suffix == ".md" and anchor not in anchors(place)
        ):
            dead.append(target)
    assert dead == []
