"""Notebooks: the two forms of one say the same, they run, and what they show is what comes out."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from everyday import everyday
from numpy.testing import assert_allclose
from shown_output import assert_shows

from rlvr_jax import methods, policy
from rlvr_jax.rollout import load_rollouts

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.py"))
ROLLOUTS = FOLDER.parent / "rlvr_jax/rollout/examples/brackets_rollouts.npz"
LARGEST_FILE = 300_000  # bytes; a clone of the repository should stay small
# float32 log-probs of the sampler's cached pass and the scorer's full pass
SINGLE = dict(rtol=1e-5, atol=1e-4)


def cells_of_script(text: str) -> list[tuple[str, str]]:
    """Kind and source of the cells of a script in the percent format."""
    cells = []
    for part in re.split(r"^# %%", text, flags=re.MULTILINE)[1:]:
        head, _, source = part.partition("\n")
        kind = head.strip(" []") or "code"
        if kind == "markdown":
            source = re.sub(r"^# ?", "", source, flags=re.MULTILINE)
        cells.append((kind, source.strip("\n")))
    return cells


def notebook_cells(name: str) -> list[dict]:
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def cells_of_notebook(name: str) -> list[tuple[str, str]]:
    return [(cell["cell_type"], "".join(cell["source"])) for cell in notebook_cells(name)]


def shown_text(name: str) -> str:
    """What the notebook's cells have printed when it was stored."""
    outputs = [output for cell in notebook_cells(name) for output in cell.get("outputs", [])]
    return "".join("".join(output.get("text", [])) for output in outputs)


def trains(name: str) -> bool:
    """Whether a notebook trains; its numbers depend on the processor."""
    return "train(" in (FOLDER / f"{name}.py").read_text()


def printed_by(name: str, path: Path, *changes: tuple[str, str]) -> list[list[str]]:
    """The words of the lines that a notebook's code prints as a program, after small changes."""
    code = "\n\n".join(source for kind, source in cells_of_notebook(name) if kind == "code")
    for before, after in changes:
        assert before in code
        code = code.replace(before, after)
    path.write_text(code)
    command = [sys.executable, str(path)]
    environment = os.environ | {"MPLBACKEND": "Agg"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=path.parent)
    assert done.returncode == 0, done.stderr[-3000:]
    words, shown = done.stdout.split(), shown_text(name).split()
    assert [w for w in words if w[0].isalpha()] == [w for w in shown if w[0].isalpha()]
    return [line.split() for line in done.stdout.splitlines()]


def test_there_are_notebooks():
    assert NOTEBOOKS
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == NOTEBOOKS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_both_forms_of_a_notebook_have_the_same_cells(name):
    """After a change: `jupytext --update --opt comment_magics=false --to ipynb notebooks/NAME.py`.

    Without the option, the command to install becomes active.
    """
    script = cells_of_script((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    assert {kind for kind, _ in script} == {"code", "markdown"}
    assert script == cells_of_notebook(name)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", everyday(NOTEBOOKS, *(name for name in NOTEBOOKS if name != "other_rollouts"))
)
def test_a_notebook_runs_and_prints_what_it_shows(name, monkeypatch, capsys):
    if name == "token_entropy":
        pytest.importorskip("gguf")
        try:
            policy.shipped_weights()
        except ValueError as missing:
            pytest.skip(str(missing))
    if trains(name):
        pytest.skip("it has a test of its own")
    matplotlib.use("Agg")
    monkeypatch.chdir(FOLDER)
    code = "\n\n".join(source for kind, source in cells_of_notebook(name) if kind == "code")
    exec(compile(code, f"{name}.ipynb", "exec"), {"__name__": "__main__"})
    plt.close("all")
    assert_shows(shown_text(name), capsys.readouterr().out)


@pytest.mark.thorough
def test_the_notebook_about_collapse_shows_it(tmp_path):
    fewer = ("STEPS = 60", "STEPS = 20"), ("STEPS // 3", "STEPS")
    lines = printed_by("entropy_collapse", tmp_path / "own.py", *fewer)
    ends = {line[0]: [float(word) for word in line[-3:]] for line in lines[1:]}
    start, grpo, clip_cov = ends["pass@32"]
    assert grpo < start < clip_cov
    start, grpo, clip_cov = ends["pass@1"]
    assert start < min(grpo, clip_cov)


@pytest.mark.thorough
def test_the_notebook_about_a_loop_reaches_the_reward(tmp_path):
    counts = [
        list(map(int, re.findall(r": *(\d+)", " ".join(line))))
        for line in printed_by("own_loop", tmp_path / "own.py")
    ]
    assert len(counts) == 6 and all(sum(own) > 48 for own in counts)


def test_the_loss_of_the_notebook_can_be_called_by_name(tmp_path, monkeypatch):
    """The file is made as the notebook says: the lines it gives, then the cell of the loss."""
    cells = cells_of_notebook("design_a_loss")
    lines = re.findall(r"^    (from rlvr_jax.*)$", cells[-1][1], flags=re.MULTILINE)
    (loss,) = (source for kind, source in cells if kind == "code" and "def my_loss" in source)
    (tmp_path / "my_loss.py").write_text("\n".join([*lines, "", "", loss, ""]))
    monkeypatch.chdir(tmp_path)
    try:
        recipe = methods.recipe("my_loss:my_loss", strength=0.5)
    finally:
        sys.modules.pop("my_loss", None)
    assert "mild_on_habits(strength=0.5)" in recipe.objective.labels
    assert "p_squared" in recipe.objective.reads


def test_the_stored_batch_has_moved_a_little_from_the_policy_that_sampled_it():
    rollouts, stats, texts = load_rollouts(ROLLOUTS)
    assert ROLLOUTS.stat().st_size <= LARGEST_FILE
    mask = rollouts.mask
    assert_allclose(rollouts.old_logp[mask], rollouts.behaviour_logp[mask], **SINGLE)
    ratio = np.exp(stats.logp - rollouts.old_logp)[mask]
    assert 0.5 < np.quantile(ratio, 0.01) < 1
    assert 1 < np.quantile(ratio, 0.99) < 2
    ends = rollouts.length - ~rollouts.truncated
    assert [len(text.split()) for text in texts["response"]] == ends.tolist()
