"""The programs of README, docs and tutorials are run as the pages have them."""

import importlib
import json
import re
import runpy
import sys
from pathlib import Path

import golden_vectors as golden
import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest
from everyday import everyday
from shown_output import assert_shows

from docs import entropy_figure
from experiments import quickstart
from rlvr_jax import laws, methods, tasks
from rlvr_jax.experience import experience, laws as of_experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.objectives import laws as of_objective
from rlvr_jax.runs import parse_config, preset
from rlvr_jax.runs.resolved import resolve
from rlvr_jax.runs.run import make_run
from rlvr_jax.runs.screen import run_lines
from rlvr_jax.tasks import Response
from rlvr_jax.types import STATISTICS

README = (Path(__file__).parents[1] / "README.md").read_text()
DOCS = Path(__file__).parents[1] / "docs"
TUTORIALS = sorted(path.stem for path in (DOCS / "tutorials").glob("*.md"))
# A program, and directly after it the output that the page shows.
SHOWN = re.compile(
    r"^```python\n(.*?)^```\n(?:(?:\n    python \w+\.py\n)?\n```text\n(.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
OWN_FILE = re.compile(r"# (\w+)\.py\b")


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Writes every python block that begins with a file name into the current directory.

    Modules of these names are forgotten afterwards: another test may write others.
    """
    written = re.findall(r"```python\n# (\w+)\.py(.*?)```", README, re.DOTALL)
    for name, text in written:
        (tmp_path / f"{name}.py").write_text(f"# {name}.py{text}")
    monkeypatch.chdir(tmp_path)
    yield
    for name, _ in written:
        sys.modules.pop(name, None)


def test_the_families_of_methods_are_counted():
    changes = [set(methods.method(name).changes.split(", ")) for name in methods.names()]
    assert f" {len(changes)} published methods" in README
    families = README.partition("by the part of a step that they change: ")[2]
    families = families.partition(" (many change several)")[0]
    counted = dict(re.findall(r"([a-z]+(?: or [a-z]+)?)(?:\]\(\S+\))? (\d+)", families))
    assert {kind for text in counted for kind in text.split(" or ")} == set().union(*changes)
    for text, number in counted.items():
        assert int(number) == sum(bool({*text.split(" or ")} & own) for own in changes), text


def test_the_tasks_are_counted():
    assert f"[{len(tasks.names())} tasks]" in README


def test_the_picture_is_drawn_from_the_lines_of_the_leaderboard(tmp_path, monkeypatch):
    drawn = entropy_figure.PICTURE.read_text()
    monkeypatch.setattr(entropy_figure, "PICTURE", tmp_path / "again.svg")
    entropy_figure.draw()
    assert all(len(rows) == 5 for rows in entropy_figure.curves().values())
    by = re.search(r"Matplotlib v([0-9.]+)", drawn)[1]
    if matplotlib.__version__ != by:
        pytest.skip(f"the picture was drawn by matplotlib {by}")
    assert (tmp_path / "again.svg").read_text() == drawn


def test_the_table_has_the_numbers_of_the_committed_run():
    kept = json.loads((DOCS / "results" / "brackets" / "pair" / "summary.json").read_text())
    for row, key in quickstart.ROWS.items():
        (found,) = re.findall(rf"^    {re.escape(row)} +(\S+) +(\S+) +(\S+)$", README, re.MULTILINE)
        ends = [kept["grpo"][f"{key}_start"], *(kept[m][f"{key}_end"] for m in quickstart.METHODS)]
        assert found == tuple(f"{value:.3f}" for value in ends)


def test_the_first_loss_is_a_method_whose_strength_scales_its_gradient(programs):
    losses = {}
    for strength in (0.0, 0.5):
        recipe = methods.recipe("my_loss:my_loss", strength=strength)
        found = golden.evaluate(recipe, "a")
        losses[strength] = found.loss
        assert np.all(np.isfinite(found.dlogits))
    plain = methods.recipe(
        "entropy_bonus", entropy_coefficient=0.0, kl_coefficient=0.0, clip_high=0.28
    )
    golden.assert_agrees(losses[0.0], golden.evaluate(plain, "a").loss)
    assert losses[0.5] != losses[0.0]


def test_an_update_in_anybodys_loop_makes_the_rewarded_token_likelier(programs, monkeypatch):
    monkeypatch.syspath_prepend(".")
    names = runpy.run_path("any_loop.py")
    assert int(names["logits"].argmax()) == 2


def test_the_reward_of_the_readme_grades(programs):
    task = tasks.load("my_rewards:my_task")
    prompt = task.train[0]
    grades = task.verify([prompt, prompt], [Response(f" {prompt.answer}"), Response("0")])
    assert [grade.outcome for grade in grades] == [1.0, 0.0]


def test_the_programs_about_the_experience_run():
    page = (DOCS / "experience.md").read_text()
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    stage = names["mask_long"](tokens=4)
    own = experience(names["unsolved_first"](), names["cooling"]())
    for made in (names["dapo_like"], names["hinted"], own, experience(stages=[stage])):
        assert len(numpy_actor.walk(made, steps=2)) == 2
    ((collected, _, _),) = numpy_actor.walk(experience(stages=[stage]), steps=1)
    rollouts = collected.batch.rollouts
    np.testing.assert_array_equal(rollouts.mask.any(axis=1), rollouts.length <= 4)
    assert collected.metrics["long_fraction"] == np.mean(rollouts.length > 4)


def test_the_toolbox_of_the_rollouts_page_answers_its_call():
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / "rollouts.md").read_text(), re.DOTALL)
    names: dict = {}
    exec(block, names)
    box = names["box"]
    state, messages = box.start(None)
    assert "population" in messages[0]["content"]
    call = '<tool_call>{"name": "population", "arguments": {"country": "Malta"}}</tool_call>'
    assert box.reply(state, call).text == "542,051"
    assert names["chain"].draw[1].of_policy


def test_the_programs_of_the_pages_about_kernels_and_design_run(monkeypatch):
    (kernels,) = re.findall(r"```python\n(.*?)```", (DOCS / "kernels.md").read_text(), re.DOTALL)
    random = np.random.default_rng(0)
    names: dict = {
        "hidden": jnp.asarray(random.normal(size=(5, 4)), jnp.float32),
        "unembedding": jnp.asarray(random.normal(size=(7, 4)), jnp.float32),
        "targets": jnp.arange(5),
        "mask": jnp.ones(5, bool),
    }
    exec(kernels, names)
    logs = jax.nn.log_softmax(names["hidden"] @ names["unembedding"].T)
    np.testing.assert_allclose(names["stats"].entropy, -(jnp.exp(logs) * logs).sum(1), rtol=1e-5)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "design.md").read_text(), re.DOTALL)
    (design,) = [block for block in blocks if "jax.vjp" in block]
    (statistic,) = [block for block in blocks if "statistic(" in block]
    monkeypatch.delitem(STATISTICS, "collision_entropy", raising=False)
    exec(statistic, {})
    given = {"score": jnp.sin, "objective": lambda stats: (stats**2).sum()}
    names = {"jax": jax, "params": jnp.arange(3.0), **given}
    exec(design, names)
    wanted = jax.grad(lambda params: (jnp.sin(params) ** 2).sum())(jnp.arange(3.0))
    np.testing.assert_allclose(names["grads"], wanted)


@pytest.mark.parametrize(
    "page",
    everyday(
        [*(f"tutorials/{name}" for name in TUTORIALS), "how_to/will_it_fit"],
        *(f"tutorials/{name}" for name in TUTORIALS),
        "how_to/will_it_fit",
        first=["tutorials/quickstart", "tutorials/custom_task", "how_to/will_it_fit"],
    ),
)
def test_the_programs_of_a_page_print_what_it_shows(page, tmp_path, monkeypatch, capsys):
    """In the order of the page: blocks with a file name are modules, others share their names."""
    blocks = SHOWN.findall((DOCS / f"{page}.md").read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    names: dict = {}
    try:
        # JAX as readers have it.
        with (
            jax.enable_x64(False),
            jax.numpy_dtype_promotion("standard"),
            jax.numpy_rank_promotion("allow"),
        ):
            for program, shown in blocks:
                if module := OWN_FILE.match(program):
                    (tmp_path / f"{module[1]}.py").write_text(program)
                    importlib.invalidate_caches()
                    importlib.import_module(module[1])
                else:
                    exec(program, names)
                printed = capsys.readouterr().out
                assert_shows(shown, printed)
    finally:
        for program, _ in blocks:
            if module := OWN_FILE.match(program):
                sys.modules.pop(module[1], None)


def test_the_quickstart_page_has_the_lines_of_the_command():
    page = (DOCS / "tutorials" / "quickstart.md").read_text()
    config = quickstart.Config()
    runs = {
        method: preset("brackets", method).replace(run_dir=config.run_dir / method)
        for method in quickstart.METHODS
    }
    assert "\n".join(quickstart._begin(config, runs)) in page
    for row in quickstart.ROWS:
        numbers = re.search(rf"{re.escape(row)}[ |]+([\d.]+)[ |]+([\d.]+)[ |]+([\d.]+)", README)
        assert numbers and f"| {row} | {' | '.join(numbers.groups())} |" in page


@pytest.mark.parametrize(
    ("page", "known"), [("custom_loss", of_objective.LAWS), ("custom_stage", of_experience.LAWS)]
)
def test_a_page_has_the_laws_that_a_check_prints(page, known):
    text = (DOCS / "tutorials" / f"{page}.md").read_text()
    for name, law in known.items():
        assert re.search(rf"^  holds   {name} +{re.escape(laws.statement(law))}$", text, re.M), name


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("page", "options", "shown"),
    [
        ("custom_loss", ["--method", "my_loss:my_loss", "--hyperparameters", "strength=0.3"], 5),
        ("custom_task", ["--task", "first_attempt:first_attempt"], 1),
    ],
)
def test_a_page_has_the_first_lines_of_its_run(page, options, shown, tmp_path, monkeypatch):
    text = (DOCS / "tutorials" / f"{page}.md").read_text()
    modules = {found[1]: one for one, _ in SHOWN.findall(text) if (found := OWN_FILE.match(one))}
    for name, program in modules.items():
        (tmp_path / f"{name}.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    try:
        resolved = resolve(parse_config([*options, "--run-dir", "runs/mine"]))
        run = make_run(resolved)
        check = tasks.self_check(run.experience.verified(run.task))
        lines = run_lines(run, resolved.card(), check)
    finally:
        for name in modules:
            sys.modules.pop(name, None)
    # That of the policy has the memory of a device, of which tests have eight.
    assert sum(line in text.splitlines() for line in lines if "memory" not in line) >= shown
