"""The overview of the results, and the pages about brackets, have the numbers of committed runs."""

import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from experiments.quickstart import ROWS
from rlvr_jax.analysis.evidence.ranking import Standing, standings
from rlvr_jax.analysis.evidence.rows import read_rows
from rlvr_jax.analysis.run_directory import read_json_lines
from rlvr_jax.analysis.seed_statistics import mean_interval

RESULTS = Path(__file__).parents[1] / "docs" / "results"
PAGE = (RESULTS / "README.md").read_text()
TABLE = re.compile(r"^\| method \| board \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
PLAIN = {"pass@1": "pass@1", "pass@8": "pass@8", "pass@32": "pass@32", "entropy": "entropy"}
PLAIN |= {"hard pass@1": "hard/pass@1"}


@functools.cache
def board_rows(board: str) -> list[Mapping]:
    """Ended runs of a board of the leaderboard, or of the page about the experience."""
    if board != "experience":
        rows = read_rows(RESULTS / "leaderboard" / "results.jsonl")
        return [row for row in rows if row["board"] == board and "end" in row]
    same = {"commit": "", "processor": "", "versions": {"jax": ""}}
    runs = read_json_lines(RESULTS / "experience" / "runs.jsonl")
    return [{**run, **same, "entry": run["method"], "end": run} for run in runs]


def tokens_per_response(row: Mapping) -> float:
    settings = row["settings"]
    responses = settings["prompts_per_step"] * settings["samples_per_prompt"]
    return row["sampled_tokens"] / (row["steps"] * responses)


@functools.cache
def differences(board: str, metric: str) -> Mapping[str, Standing]:
    return {each.entry: each for each in standings(board_rows(board), metric, "grpo")}


def cell(name: str, board: str, method: str) -> str:
    own = [row for row in board_rows(board) if row["entry"] == method]
    if name == "seeds":
        return str(len(own))
    if name in PLAIN:
        return str(mean_interval([row["end"][PLAIN[name]] for row in own]))
    if name == "tokens per response":
        return str(mean_interval([tokens_per_response(row) for row in own]))
    if name == "million sampled tokens":
        return f"{sum(row['sampled_tokens'] for row in own) / len(own) / 1e6:.2f}"
    of_board = "pass@32" if "pass@32" in own[0]["end"] else "pass@8"
    metric = of_board if name == "p" else name.removesuffix(" − GRPO")
    found = differences(board, metric)[method]
    if method == "grpo":
        return ""
    if name == "p":
        return "< 0.001" if found.holm < 0.001 else f"{found.holm:.3f}"
    return found.difference.signed


def lines() -> list[tuple[list[str], list[str]]]:
    """Every row of the tables of methods with the head of its table."""
    found = []
    for table in TABLE.finditer(PAGE):
        head = [name.strip() for name in table[0].split("\n")[0].strip("| ").split("|")]
        for row in table[1].strip().split("\n"):
            method, board, *numbers = (one.strip() for one in row[1:-1].split("|"))
            board = re.match(r"\[(\w+)\]", board)[1]
            found.append((head, [method.strip("`"), board, *numbers]))
    return found


LINES = lines()


def test_the_overview_has_a_table_for_most_symptoms():
    assert len(TABLE.findall(PAGE)) >= 6 and len(LINES) > 25


@pytest.mark.parametrize("board", sorted({cells[1] for _, cells in LINES}))
def test_the_tables_have_the_numbers_of_the_runs(board):
    for head, cells in LINES:
        if cells[1] == board:
            wanted = [cell(name, board, cells[0]) for name in head[2:]]
            assert cells[2:] == wanted, cells[0]


def test_the_pages_about_brackets_have_one_set_of_numbers():
    page = (RESULTS / "brackets" / "README.md").read_text()
    tutorial = (RESULTS.parent / "tutorials" / "quickstart.md").read_text()
    comparison = (RESULTS / "brackets" / "comparison.md").read_text()
    run = json.loads((RESULTS / "brackets" / "quickstart.json").read_text())
    listed = {
        name: (grpo, clip_cov)
        for name, grpo, clip_cov in re.findall(
            r"^\| \[([\w.]+)\]\(.*\| ([^|]+) \| ([^|]+) \|$",
            page.partition("## Other runs of this task")[2],
            re.MULTILINE,
        )
    }
    methods = ("grpo", "clip_cov")
    fourth = r"(?: [^|]+\|){2} ([^|(]+) \(5\) \|"
    own = {m: re.search(rf"^\| {m} \|{fourth}", comparison, re.MULTILINE)[1] for m in methods}
    assert listed["comparison.md"] == tuple(own.values())
    assert listed["objectives"] == tuple(cell("pass@32", "objectives", m) for m in methods)
    assert listed["quickstart.json"] == tuple(
        f"{run[method]['held_out_pass_at_32_end']:.3f}" for method in methods
    )
    for method in methods:
        assert re.search(rf"^\| `{method}` \|.*\| {re.escape(own[method])} \|", page, re.MULTILINE)
    for name in ("comparison.md", "objectives"):
        assert " | ".join(listed[name]) in tutorial
    screen = (RESULTS.parent / "images" / "quickstart.svg").read_text().replace("&#160;", " ")
    shown = [f"{run[method][f'{key}_end']:.3f}" for key in ROWS.values() for method in methods]
    assert all(number in screen for number in shown)
    trained = [re.search(rf"{method} +seed 0.*?entropy +([\d.]+)", screen)[1] for method in methods]
    assert f"({' and '.join(trained)})" in tutorial
