"""A revision is asked for in words that say what the best answer lacks."""

import dataclasses

import jax
import numpy as np
import pytest
import training_runs
from reward_rows import rollouts

from rlvr_jax.experience import Moment, by_rubric, experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.methods import recipe
from rlvr_jax.methods.judges.rgr_grpo import all_factual_or_fraction, refine
from rlvr_jax.runs.composition import compose
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.runs.hyperparameters import method_arguments
from rlvr_jax.types import Criterion

RUBRIC = [Criterion("0"), Criterion("1", text="It ends by itself.")]


NOW = Moment(0, jax.random.key(0), np.zeros(4, np.int32))


def asked_to_revise(rubric, **task):
    """What the policy is shown by a revision, and the answers of which it is one."""
    found = []

    class Watching(numpy_actor.NumpyActor):
        def draw(self, requests, key, sampling=None, constants=None):
            found.extend(
                request.view.show(request.prompt, own.task).text
                for request in requests
                if request.view.label.startswith("showing")
            )
            return super().draw(requests, key, sampling, constants)

    chain = experience(stages=[refine(rubric, by_rubric(rubric))])
    own = numpy_actor.setting(chain, dataclasses.replace(numbered_task(), **task), samples=3)
    numpy_actor.walk(chain, Watching(chance=0.2), steps=2, own=own)
    return found


@pytest.mark.thorough
def test_what_is_lacking_is_said_by_texts_or_by_names_of_rewards():
    told = asked_to_revise(RUBRIC, show_answer=None)
    assert told and all(text.startswith("question ") for text in told)
    lists = {text.partition("Revise it so that these are met:\n")[2] for text in told}
    # The first criterion has no text: the task calls that reward its outcome.
    assert lists <= {"outcome", "It ends by itself.", "outcome\nIt ends by itself."}
    assert any("outcome" in one for one in lists)


def test_a_task_shows_answers_in_its_own_way():
    told = asked_to_revise(RUBRIC, show_answer=lambda prompt, answer: f"<{prompt.answer}>")
    assert told and all(text.startswith("<") and "Revise" not in text for text in told)


def test_criteria_that_a_policy_cannot_read_are_refused_before_the_run(tmp_path):
    config = TrainConfig.of(
        task="hinted_brackets:train=64",
        method="rgr_grpo",
        hyperparameters=("weights=1", "factual=0", "criteria=correct"),
        run_dir=tmp_path,
    )
    with pytest.raises(ValueError, match=r"train, view revision_of_solution.* 'correct'"):
        training_runs.prepared(config)


def test_the_texts_of_a_judges_rubric_are_told(tmp_path):
    rubric = tmp_path / "rubric.json"
    rubric.write_text(
        '[{"name": "long", "kind": "factual", "text": "Ten words."}, {"name": "kind"}]'
    )
    config = TrainConfig.of(
        method="rgr_grpo",
        hyperparameters=("weights=1,1", "factual=0"),
        judge="own_judges:fair",
        judge_rubric=str(rubric),
    )
    arguments = method_arguments(config)
    own = recipe("rgr_grpo", **arguments)
    chain = compose(config, numbered_task(), own, arguments).experience
    (stage,) = [stage for name, stage in chain.stages.items() if name == "refine"]
    wanted = recipe(
        "rgr_grpo", weights=(1.0, 1.0), factual=(0,), criteria=("Ten words.", "kind")
    ).experience.stages["refine"]
    assert stage == wanted != own.experience.stages["refine"]
    with pytest.raises(ValueError, match="criteria must be 3 texts, one for each of the weights"):
        recipe("rgr_grpo", criteria=("a",))


def test_a_criterion_without_a_score_leaves_the_mean_and_a_row_without_any_has_no_reward():
    points = [[1, np.nan], [np.nan, 4], [np.nan, np.nan], [9, 2]]
    rubric = [Criterion("a", 2.0), Criterion("b", maximum=4)]
    own = by_rubric(rubric)
    found, _, told = own.apply(rollouts(points), (), NOW)
    np.testing.assert_array_equal(found, [1, 1, np.nan, 0.5])
    assert told == {"criterion/a": 1.0, "criterion/b": 0.75}
    factual = [Criterion("a", kind="factual"), Criterion("b", 3.0)]
    found = by_rubric(factual, all_factual_or_fraction())(
        rollouts([[1, 0], [0.4, 1], [np.nan, 1], [0, 0]])
    )
    np.testing.assert_array_equal(found, [1, 0.75, 1, 0])
