"""The overview of the results, and the pages about brackets, have the numbers of committed runs."""

import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from experiments.quickstart import METHODS, ROWS
from rlvr_jax.analysis.evidence.ranking import Standing, prediction_interval, standings
from rlvr_jax.analysis.evidence.rows import read_rows
from rlvr_jax.analysis.run_directory import read_json_lines
from rlvr_jax.analysis.seed_statistics import mean_interval

RESULTS = Path(__file__).parents[1] / "docs" / "results"
OVERVIEW = RESULTS / "README.md"
BRACKETS = RESULTS / "brackets" / "README.md"
TUTORIAL = RESULTS.parent / "tutorials" / "quickstart.md"
ONE_RUN = RESULTS / "brackets" / "pair" / "summary.json"
TABLE = re.compile(r"^\| method \| board \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
PLAIN = {"pass@1": "pass@1", "pass@8": "pass@8", "pass@32": "pass@32", "entropy": "entropy"}
PLAIN |= {"hard pass@1": "hard/pass@1"}
RARE = "hard/info/right_form"


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
    if name == "rare form":
        mean = mean_interval([row["end"][RARE] for row in own]).mean
        risen = sum(row["end"][RARE] > row["start"][RARE] for row in own)
        return f"{mean:.2f}, {risen} of {len(own)}"
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


def lines(page: Path) -> list[tuple[list[str], list[str]]]:
    """Every row of the tables of methods of a page with the head of its table."""
    found = []
    for table in TABLE.finditer(page.read_text()):
        head = [name.strip() for name in table[0].split("\n")[0].strip("| ").split("|")]
        for row in table[1].strip().split("\n"):
            method, board, *numbers = (one.strip() for one in row[1:-1].split("|"))
            board = re.match(r"\[(\w+)\]", board)[1]
            found.append((head, [method.strip("`"), board, *numbers]))
    return found


LINES = {page: lines(page) for page in (OVERVIEW, BRACKETS, TUTORIAL)}


def test_the_overview_has_a_table_for_most_symptoms():
    assert len(TABLE.findall(OVERVIEW.read_text())) >= 6 and len(LINES[OVERVIEW]) > 25
    assert len(LINES[BRACKETS]) >= 6 and len(LINES[TUTORIAL]) == 2


@pytest.mark.parametrize(
    ("page", "board"),
    sorted({(page, cells[1]) for page, found in LINES.items() for _, cells in found}),
)
def test_the_tables_have_the_numbers_of_the_runs(page, board):
    for head, cells in LINES[page]:
        if cells[1] == board:
            wanted = [cell(name, board, cells[0]) for name in head[2:]]
            assert cells[2:] == wanted, cells[0]


def test_the_page_about_brackets_names_each_file_with_numbers_of_the_task():
    """Boards have the runs of several methods and seeds, the quickstart has one."""
    with_numbers = {
        path
        for kind in ("*.json", "*.jsonl")
        for path in RESULTS.rglob(kind)
        if '"task": "brackets"' in path.read_text()
    }
    files = BRACKETS.read_text().partition("## Files")[2].partition("## ")[0]
    named = {BRACKETS.parent / link for link in re.findall(r"\]\((\S+\.jsonl?)\)", files)}
    curves = RESULTS / "leaderboard" / "curves.jsonl"
    assert {path.resolve() for path in named} == with_numbers | {curves}


def test_the_run_of_the_quickstart_is_in_the_range_of_the_board():
    run = json.loads(ONE_RUN.read_text())
    keys = ("entropy", *(f"pass@{k}" for k in (1, 8, 32)))
    for method in METHODS:
        own = [row for row in board_rows("objectives") if row["entry"] == method]
        for key in keys:
            low, high = prediction_interval([row["end"][key] for row in own])
            name = key if key == "entropy" else f"held_out_{key.replace('@', '_at_')}"
            assert low <= run[method][f"{name}_end"] <= high, (method, key)
            assert run[method][f"{name}_start"] == pytest.approx(own[0]["start"][key], abs=1e-5)


def test_the_screen_of_the_quickstart_is_of_the_committed_run():
    run = json.loads(ONE_RUN.read_text())
    screen = (RESULTS.parent / "images" / "quickstart.svg").read_text().replace("&#160;", " ")
    shown = [f"{run[method][f'{key}_end']:.3f}" for key in ROWS.values() for method in METHODS]
    assert all(number in screen for number in shown)
    trained = [re.search(rf"{method} +seed 0.*?entropy +([\d.]+)", screen)[1] for method in METHODS]
    assert f"({' and '.join(trained)})" in TUTORIAL.read_text()
