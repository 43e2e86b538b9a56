"""`python -m rlvr_jax.methods my_file:name --check` names the law that custom code breaks."""

import pytest

from rlvr_jax.laws import statement
from rlvr_jax.methods.__main__ import main
from rlvr_jax.methods._check import report
from rlvr_jax.objectives.laws import LAWS

FILE = """
import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience import Curriculum, Draw, Stage, experience
from rlvr_jax.experience.curricula.batches import requests_for
from rlvr_jax.objectives import Transform, clipped_objective, part, token_mean
from rlvr_jax.tasks import Grade, Prompt, Task
from rlvr_jax.types import Method, Recipe, replace


@part(reads={"entropy"}, writes={"weight"})
def scale(by: float = 0.5) -> Transform:
    def apply(signals, context, state):
        weight = signals.weight * (1 - by * jnp.exp(-context.stats.entropy))
        return replace(signals, weight=weight), state, {}

    return apply


@part(reads={"entropy"}, writes={"weight"})
def scale_by_padding() -> Transform:
    def apply(signals, context, state):
        entropy = context.stats.entropy
        return replace(signals, weight=signals.weight * entropy / entropy.mean()), state, {}

    return apply


@part
def count_calls() -> Stage:


    def apply(batch, actor, state, turn):
        CALLS.append(1)
        return batch.with_rollouts(reward=batch.rollouts.reward + len(CALLS)), state, {}

    return Stage(apply)


@part
def halve_rewards() -> Stage:
    def apply(batch, actor, state, turn):
        return batch.with_rollouts(reward=batch.rollouts.reward / 2), state, {}

    return Stage(apply)


@part
def in_order() -> Curriculum:
    def propose(requests, state, turn):
        first = (turn.step + turn.round) * turn.setting.prompts
        numbers = np.arange(first, first + turn.setting.prompts) % len(turn.setting.task.train)
        return requests_for(turn, numbers)

    return Curriculum(propose)


CALLS = []
MADE = scale(0.25)
MEAN = token_mean()


def kept() -> Recipe:
    return Recipe(clipped_objective(transforms=[scale()]), experience(stages=[halve_rewards()]))


def broken() -> Recipe:
    return Recipe(clipped_objective(transforms=[scale_by_padding()]))


def critic_like() -> Recipe:
    return Recipe(clipped_objective(advantage=constant()))


@part(writes={"advantage"})
def constant() -> Transform:
    def apply(signals, context, state):
        return replace(signals, advantage=jnp.ones_like(signals.advantage)), state, {}

    return apply


METHOD = Method(critic_like, "An advantage without a group", "", baseline="other")


def prompts(numbers):
    return [Prompt(f"write {n}", answer=str(n), gold=str(n)) for n in numbers]


def verify(prompts, responses):
    return [Grade(float(r.text.strip() == p.answer)) for p, r in zip(prompts, responses)]


def task():
    return Task("numbers", prompts(range(9)), prompts(range(9, 12)), verify, response_tokens=4)


def pays_nothing():
    def verify(prompts, responses):
        return [Grade(float(len(r.text) > 40)) for p, r in zip(prompts, responses)]

    return Task("numbers", prompts(range(9)), prompts(range(9, 12)), verify, response_tokens=4)


def needs(value):
    return scale(value)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "custom_laws.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)


def of(name):
    """The names of the broken laws, with the whole report."""
    text, broken = report(f"custom_laws:{name}")
    lines = [line.split() for line in text.splitlines()]
    found = [line[1] for line in lines if line[:1] == ["BROKEN"]]
    assert len(found) == broken
    return found, text


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", ["kept", "scale", "MADE", "MEAN", "halve_rewards", "in_order", "task"]
)
def test_code_that_keeps_the_laws_is_reported_so(name):
    found, text = of(name)
    assert found == [] and "laws hold" in text


@pytest.mark.thorough
def test_a_method_is_held_to_the_laws_of_both_chains():
    _, text = of("kept")
    assert "laws of the objective" in text and "laws of the experience" in text


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["broken", "scale_by_padding"])
def test_a_mean_over_padding_breaks_three_laws(name):
    found, text = of(name)
    assert found == ["padding", "supervised_rows", "micro_batches"]
    assert statement(LAWS["padding"]) in text and "the loss differs by" in text


def test_state_outside_of_a_stage_breaks_resume():
    found, text = of("count_calls")
    assert found == ["resume"]
    assert "rollouts.reward differs" in text


@pytest.mark.thorough
def test_the_card_declares_the_baseline():
    assert of("critic_like")[0] == []
    assert of("constant")[0] == ["groups_of_one", "equal_rewards"]


def test_a_verifier_that_pays_nothing_is_found():
    assert of("pays_nothing")[0] == ["known_answers"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("custom_laws:needs", "must have defaults for value; name an object that is made"),
        ("custom_laws:FILE", "must have 'FILE', got no such name"),
        ("custom_laws:CALLS", "must be a Recipe, an Objective, a part of one of them, or a Task"),
        ("no_such_file:method", "no module 'no_such_file'"),
        ("clip_covv", "closest: clip_cov"),
    ],
)
def test_a_name_that_cannot_be_checked_is_refused(name, message):
    with pytest.raises(ValueError, match=message):
        report(name)


@pytest.mark.thorough
def test_the_command_ends_with_1_where_a_law_is_broken(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["methods", "custom_laws:scale_by_padding", "--check"])
    with pytest.raises(SystemExit, match="1"):
        main()
    assert "3 are broken" in capsys.readouterr().out


def test_the_command_needs_a_name(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["methods", "--check"])
    with pytest.raises(SystemExit):
        main()
    assert "--check must follow a name" in capsys.readouterr().err


def test_a_file_that_cannot_be_imported_is_one_sentence(tmp_path, monkeypatch, capsys):
    (tmp_path / "slipped.py").write_text("from rlvr_jax.methods import NoSuchThing\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.argv", ["methods", "slipped:my_method", "--check"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "slipped.py, line 1, in <module>: ImportError: cannot" in capsys.readouterr().err
