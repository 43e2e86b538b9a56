"""The README's programs are run as they stand there."""

import re
import runpy
import sys
from pathlib import Path

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax import methods, tasks
from rlvr_jax.analysis.evidence.rows import read_rows
from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experiments.boards.definitions import BOARDS
from rlvr_jax.runs.composition import own_stage
from rlvr_jax.tasks import Response
from rlvr_jax.types import STATISTICS

README = (Path(__file__).parents[1] / "README.md").read_text()
DOCS = Path(__file__).parents[1] / "docs"


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


def test_the_table_of_methods_counts_them():
    changes = [set(methods.method(name).changes.split(", ")) for name in methods.names()]
    assert f" {len(changes)} published methods" in README
    table = re.findall(r"^\| (`\w+`(?:, `\w+`)*): .* \| (\d+) \| (.*) \|$", README, re.MULTILINE)
    assert {name for told, _, _ in table for name in re.findall(r"\w+", told)} == set().union(
        *changes
    )
    for told, number, some in table:
        kinds = set(re.findall(r"\w+", told))
        assert int(number) == sum(bool(kinds & own) for own in changes), told
        for name in re.findall(r"\w+", some):
            assert kinds & set(methods.method(name).changes.split(", ")), (told, name)


def test_the_table_of_methods_has_the_numbers_of_the_leaderboard():
    rows = [
        row
        for row in read_rows(DOCS / "results" / "leaderboard" / "results.jsonl")
        if row["board"] == "objectives" and "end" in row
    ]
    table = re.findall(r"^\| `(\w+)` \| [^|]* \| (\S+) \| (\S+) \| (\S+) \|$", README, re.MULTILINE)
    assert len(table) == 11
    # Some methods get more.
    seeds = set(range(BOARDS["objectives"].seeds))
    assert f"{len(seeds)} seeds" in README.partition("A few to begin with")[2][:400]
    for name, *told in table:
        own = [row["end"] for row in rows if row["entry"] == name and row["seed"] in seeds]
        assert len(own) == len(seeds), name
        for number, text in zip(("pass@1", "pass@32", "entropy"), told, strict=True):
            mean = np.mean([end[number] for end in own])
            assert text == f"{mean:.{len(text) - 2}f}", (name, number)


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


def test_the_task_of_ones_own_grades_the_first_attempt(programs):
    task = tasks.load("first_try:first_try")
    prompt = task.train[0]
    wrong_then_right = Response(f"( 1 + 1 = 3 ) + 1 = 4 ; {prompt.gold}")
    grades = task.verify([prompt, prompt], [Response(prompt.gold), wrong_then_right])
    assert [grade.outcome for grade in grades] == [1.0, 0.0]


@pytest.mark.parametrize("name", ["as_in_trl", "as_in_verl"])
def test_rewards_of_others_grade_as_they_are(programs, name):
    task = tasks.load(f"my_rewards:{name}")
    prompt = task.train[0]
    grades = task.verify([prompt, prompt], [Response(f" {prompt.answer}"), Response("0")])
    assert [grade.outcome for grade in grades] == [1.0, 0.0]


def test_the_stage_of_ones_own_asks_failed_prompts_again(programs):
    chain = experience(stages=[own_stage("once_more:once_more")])
    actor = numpy_actor.NumpyActor(chance=0.2)
    for collected, _, _ in numpy_actor.walk(chain, actor):
        again = collected.metrics["asked_again"]
        assert len(collected.batch) == round(16 * (1 + again))
    assert again > 0


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
