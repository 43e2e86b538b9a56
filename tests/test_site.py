"""The site: pages that are made of the code, and a strict build."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rlvr_jax import methods
from rlvr_jax.runs.method_pages import method_index, method_page

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
    page = method_page("clip_cov")
    assert "[The Entropy Mechanism" in page and "It agrees with the authors'" in page
    (row,) = [line for line in page.splitlines() if line.startswith("| `fraction` |")]
    assert row.split(" | ")[1:3] == ["0.0002", "0.0075"]
    assert len(row.split(" | ")[3]) > 10
    assert "- `drop_high_covariance(fraction=0.0002, low=1, high=5)`" in page
    assert "held_out_pass_at_32.png" in page and "never clips" not in page.split("## Needs")[1]
    assert "38.6 (GRPO) to 40.4" in page and "another method" in page


def test_the_index_has_a_row_and_a_link_for_each_method():
    page = method_index()
    rows = re.findall(r"^\| \[`(\w+)`\]\((\w+)\.md\) \|", page, re.MULTILINE)
    assert [name for name, link in rows if name == link] == methods.names()


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
    parts = (tmp_path / "site/api/objectives/index.html").read_text()
    assert "ppo_clip" in parts and "half-width below 1" in parts
