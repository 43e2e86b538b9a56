"""The pages for users of TRL, verl and Tunix name what there is, and whose versions they mean."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

from rlvr_jax import experience, methods, objectives, tasks
from rlvr_jax.runs.config import SETTINGS

DOCS = Path(__file__).parents[1] / "docs"
PAGES = {
    "from_trl": "TRL 1.16.0",
    "from_verl": "verl 0.9.1",
    "from_tunix": "google-tunix 0.1.7",
}
OF_EXAMPLES = {"module", "function", "wandb", "trackio", "python", "calculator"}
OF_EXAMPLES |= {"beta", "weights", "estimator", "params", "rows"}


def ours(page):
    """What stands in backticks in the columns about this project."""
    lines = (DOCS / f"{page}.md").read_text().splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row[1] if row[1:] else "")]


def known_words():
    words = {*methods.names(), *objectives.__all__, *experience.__all__, *OF_EXAMPLES}
    for name in methods.names():
        words |= {*inspect.signature(methods.method(name).recipe).parameters}
    return words | {*inspect.signature(objectives.ppo_clip).parameters}


KNOWN = known_words()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_of_which_version_it_speaks(page):
    head = (DOCS / f"{page}.md").read_text().partition("| ")[0]
    assert PAGES[page] in head and len(ours(page)) > 15


@pytest.mark.thorough
@pytest.mark.parametrize(("page", "word"), [(page, word) for page in PAGES for word in ours(page)])
def test_what_a_page_names_is_here(page, word):
    del page
    if word.startswith("--"):
        option = word.split()[0].removeprefix("--").removeprefix("no-").replace("-", "_")
        assert option in SETTINGS
        return
    if word.startswith("experiments."):
        return  # commands are read by the README's tests
    if word.startswith(("tasks.", "rlvr_jax.", "Task.")):
        room, _, name = word.partition("(")[0].rpartition(".")
        holder = {"tasks": tasks, "Task": tasks.Task}.get(room) or importlib.import_module(room)
        fields = getattr(holder, "__dataclass_fields__", {})
        assert hasattr(holder, name) or name in fields
        return
    assert [name for name in re.findall(r"[a-z]\w+", word) if name not in KNOWN] == []
