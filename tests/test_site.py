"""The site: pages that are made of the code, and a strict build."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.method_pages import method_index, method_page
from docs.method_section import method_section
from rlvr_jax import methods

ROOT = Path(__file__).parents[1]
HEADS = ["Definition", "Hyperparameters", "What it changes of a step", "Needs", "Command"]


@pytest.mark.parametrize("name", methods.names())
def test_every_method_has_a_page(name):
    page, about = method_page(name), methods.method(name)
    heads = re.findall(r"^## (.+)$", page, re.MULTILINE)
    wanted = [*HEADS, *["Its curve"] * ("Its curve" in heads)]
    wanted += ["What its authors report"] * bool(about.reports) + ["Traps"] * bool(about.traps)
    open_ = "(must be given)" in page
    assert heads == [head for head in wanted if not open_ or head not in HEADS[2:4]]
    assert page.startswith(f"# {name}\n") and about.url in page
    assert f"--method {name} " in page


def test_the_page_of_clip_cov_says_what_there_is_to_say():
    page = method_page("clip_cov", ["![A curve](clip_cov.svg)"])
    assert "[The Entropy Mechanism" in page and "It agrees with the authors'" in page
    (row,) = [line for line in page.splitlines() if line.startswith("| `fraction` |")]
    assert row.split(" | ")[1:3] == ["0.0002", "0.0075"]
    assert len(row.split(" | ")[3]) > 10
    assert "- `drop_high_covariance(fraction=0.0002, low=1, high=5)`" in page
    assert "## Its curve\n\n![A curve](clip_cov.svg)\n" in page
    assert "never clips" not in page.split("## Needs")[1]
    assert "38.6 to 40.4" in page and "another method" in page


def test_the_index_has_a_row_and_a_link_for_each_method():
    page = method_index()
    rows = re.findall(r"^\| \[`(\w+)`\]\((\w+)\.md\) \|", page, re.MULTILINE)
    assert sorted(name for name, link in rows if name == link) == methods.names()


def test_a_bar_in_a_title_makes_no_column():
    (row,) = [line for line in method_index().splitlines() if line.startswith("| [`prerl`]")]
    assert len(re.split(r"(?<!\\)\|", row)) == 6


def _lines(entry, method, gain):
    row = {"board": "small", "entry": entry, "method": method, "commit": "c", "processor": "p"}
    row["versions"] = {"jax": "1"}
    rows = [
        row | {"seed": seed, "end": {"pass@1": 0.3, "pass@32": 0.5 + gain + seed / 100}}
        for seed in range(3)
    ]
    curves = [
        {
            "board": "small",
            "entry": entry,
            "seed": seed,
            "sampled_tokens": [0, 1_000_000, 2_000_000 + seed],
            "held_out/pass@32": [0.4, 0.45, 0.5 + gain + seed / 100],
        }
        for seed in range(3)
    ]
    return rows, curves


def test_a_page_shows_what_the_leaderboard_has_of_a_method():
    base, other = _lines("grpo", "grpo", 0.0), _lines("clip_cov:fraction=0.1", "clip_cov", 0.2)
    rows, curves = (one + two for one, two in zip(base, other, strict=True))
    lines = method_section("clip_cov", "small", "grpo", rows, curves)
    (own,) = [line for line in lines if line.startswith("| `clip_cov:fraction=0.1`")]
    assert own.split(" | ")[1:5] == ["3", "0.300", "0.710 ± 0.025", "+0.200"]
    (picture,) = [line for line in lines if line.startswith("<div><svg")]
    assert picture.count("<polyline") == 2 and "2.0 million" in picture
    assert "## Its curve\n\n| | seeds" in method_page("clip_cov", lines)
    assert method_section("clip_cov", "other", "grpo", rows, curves) == []
    assert method_section("kl_cov", "small", "grpo", rows, curves) == []
    # By another number that a board compares by.
    renamed = json.loads(json.dumps([rows, curves]).replace("pass@32", "pass@8"))
    lines = method_section("clip_cov", "small", "grpo", *renamed, "pass@8")
    assert "pass@8" in lines[0] and "0.710 ± 0.025" in "".join(lines)
    # The baseline's own page has its own curve alone.
    (alone,) = [x for x in method_section("grpo", "small", "grpo", rows, curves) if "<svg" in x]
    assert alone.count("<polyline") == 1


def test_the_types_of_a_part_describe_its_arguments():
    pytest.importorskip("griffe", reason="pip install -e .[docs]")
    from docs.described_arguments import in_sections, one_per_line, with_descriptions

    words = {"low": "half-width, at least 0", "high": "cap"}
    described = with_descriptions("A loss.\n\nArgs:\n  low: ε.\nSource: a paper.", words)
    assert described.splitlines()[2:5] == [
        "Args:",
        "  high: cap.",
        "  low: half-width, at least 0. ε.",
    ]
    assert with_descriptions("A loss.", {"low": "ε"}) == "A loss.\n\nArgs:\n  low: ε.\n"
    shared = (
        "A loss.\n\nArgs:\n  low, high: widths,\n    positive.\n  key: random key.\nRaises:\n  x"
    )
    assert one_per_line("A loss.") == "A loss."
    sections = in_sections("A loss.\n\nArgs:\n  low: ε.\nRaises:\n  x\nSource: a paper.")
    assert sections == "A loss.\n\nArgs:\n  low: ε.\n\nRaises:\n  x\n\n**Source:** a paper."
    assert (
        with_descriptions("Args:\n  low: ε.", {"low": "in [0, 1]"}) == "Args:\n  low: in [0, 1]: ε."
    )
    split = "  low: widths,\n    positive.\n  high: widths,\n    positive.\n  key: random key.\n"
    assert one_per_line(shared) == f"A loss.\n\nArgs:\n{split}Raises:\n  x"


@pytest.mark.slow  # a minute
def test_the_site_is_built_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="pip install -e .[docs]")
    pytest.importorskip("mkdocstrings")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    start = (tmp_path / "site/index.html").read_text()
    assert "Reinforcement learning with verifiable rewards" in start
    for page in ("methods/clip_cov", "api/objectives", "from_trl", "results/brackets"):
        assert (tmp_path / "site" / page / "index.html").is_file()
    tasks = (tmp_path / "site/tasks/index.html").read_text()
    assert "How a response becomes a reward" in tasks and "arithmetic:hard" in tasks
    api = tmp_path / "site/api/objectives"
    assert "ppo_clip" in (api / "index.html").read_text()
    losses = (api / "surrogates.policy_gradient/index.html").read_text()
    assert "ppo_clip" in losses and "half-width of the trust region" in losses
