"""SWE-RL: edits of files by the letter, and hostile ones in bounded time."""

import pytest
from own_cpu import own_cpu

from rlvr_jax.verifiers.programs import swe_rl

SECONDS = 2.0  # of this process; a quadratic rule takes minutes

FILES = {"a.py": "x = 1\ny = 2\nx = 1\n"}
ORACLE = {"a.py": "x = 3\ny = 2\nx = 3\n"}


def response(*edits, path="a.py"):
    blocks = [
        f"```python\n### {path}\n<<<<<<< SEARCH\n{search}\n=======\n{new}\n>>>>>>> REPLACE\n```"
        for search, new in edits
    ]
    return "<think>t</think><solution>\n" + "\n".join(blocks) + "\n</solution>"


def finding(text, files=FILES, oracle=ORACLE):
    return swe_rl.check(text, {"files": files, "oracle": oracle})


def test_all_places_are_replaced():
    found = finding(response(("x = 1", "x = 3")))
    assert (found.outcome, found.info["exact"]) == (1.0, 1.0)


def test_edits_that_undo_each_other_change_nothing():
    text = response(("x = 1", "x = 9"), ("x = 9", "x = 1"))
    assert finding(text).outcome == 0
    assert finding(text, oracle=FILES).outcome == 1


def test_an_empty_search_makes_a_file():
    text = response(("", "z = 1"), path="b.py")
    found = finding(text, oracle={"b.py": "z = 1"})
    assert found.info["malformed"] == 0
    assert swe_rl.edited(text, FILES) == {"b.py": "z = 1"}


@pytest.mark.parametrize(
    "text",
    (
        "",
        response(),
        response(("x = 1", "x = 3")).replace("=======", "======"),
        response(("x = 1", "x = 3")).replace("### a.py", "### a.py\n"),
        response(("x = 1", "x = 3")).replace("</solution>", ""),
        response(("x = 1", "<think>")),
        response((" x = 1", "x = 3")),
    ),
)
def test_what_the_paper_rewards_with_minus_one_is_malformed(text):
    found = finding(text)
    assert (found.outcome, found.info["malformed"]) == (0, 1)


def test_edits_that_multiply_a_text_are_stopped():
    doubling = [("x", "x\nx" + "y" * 1000)] * 30
    found = finding(response(*doubling), files={"a.py": "x\n"})
    assert (found.outcome, found.stage) == (0, "size")


@pytest.mark.parametrize(
    "part", ("```\n### a.py\n<<<<<<< SEARCH\n", "`", "```", "```\n", "\n### a.py\n<<<<<<< SEARCH\n")
)
def test_a_megabyte_of_openings_is_read_in_linear_time(part):
    text = f"<think>t</think><solution>{part * (10**6 // len(part))}</solution>"
    with own_cpu() as spent:
        assert finding(text).stage == "no edit"
    assert spent[0] < SECONDS


def test_a_heading_without_a_fence_in_the_line_before_opens_no_edit():
    edit = "### a.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 3\n>>>>>>> REPLACE\n```"
    for before in ("", "\n", "```python\n\n", "``\n"):
        assert finding(f"<think>t</think><solution>{before}{edit}</solution>").stage == "no edit"
    assert finding(f"<think>t</think><solution>so ```diff a\n{edit}</solution>").outcome == 1
    again = edit.replace("x = 1", "y = 2").replace("x = 3", "y = 4")
    found = swe_rl.edited(
        f"<think>t</think><solution>```\n{edit}\n{again}\n```\n{again}</solution>", FILES
    )
    assert found == {"a.py": "x = 3\ny = 4\nx = 3\n"}


@pytest.mark.parametrize("gold", (None, {}, {"files": FILES}, {"files": FILES, "oracle": {"a": 1}}))
def test_a_gold_without_files_is_no_verdict(gold):
    assert swe_rl.check(response(("x = 1", "x = 3")), gold).outcome is None
