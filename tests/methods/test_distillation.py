"""OPD, SDPO, SRPO, SSB: policies that follow a teacher, which mostly is themselves shown more."""

import numpy as np
import pytest
import training_runs
from everyday import everyday

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.stages.choices.pairs import contrast_pairs, mixed_groups
from rlvr_jax.methods import recipe


def test_the_teacher_is_shown_a_right_answer_of_the_group_never_the_rows_own():
    shown = []

    class Showing(numpy_actor.NumpyActor):
        def prompts(self, asks):
            shown.append([ask.view.label for ask in asks])
            return super().prompts(asks)

    found = numpy_actor.walk(recipe("sdpo").experience, Showing(chance=0.3))
    # A step asks for the prompts twice: to draw from, and to be taught by.
    for (collected, _, _), labels_of in zip(found, shown[1::2], strict=True):
        batch, rollouts = collected.batch, collected.batch.rollouts
        for rows in batch.groups:
            right = rollouts.outcome[rows] == 1
            others = right.sum() - right > 0
            np.testing.assert_array_equal(rollouts.second_length[rows] > 0, others)
            labels = {labels_of[row] for row in rows if rollouts.second_length[row]}
            assert "plain" not in labels and len(labels) <= 2
        assert collected.metrics["shown_rows"] == np.mean(rollouts.second_length > 0)


def test_a_pair_is_a_right_row_and_one_of_the_commonest_wrong_answer():
    outcomes = np.array([[1, 0, np.nan], [1, 1, np.nan], [0, 0, 0], [np.nan, 1, 0]])
    assert mixed_groups(outcomes).tolist() == [True, False, False, True]
    (found,) = numpy_actor.walk(recipe("prefix_rl").experience, steps=1)
    batch = found[0].batch
    for pair in contrast_pairs(batch):
        rows = batch.groups[pair.group]
        assert pair.right in rows and pair.wrong in rows
        assert batch.rollouts.outcome[[pair.right, pair.wrong]].tolist() == [1, 0]


def test_replies_stand_under_the_bare_prompt_at_the_temperature_of_the_loss():
    actor, kept, other = numpy_actor.NumpyActor(chance=0.5), 0, 0
    for collected, _, _ in numpy_actor.walk(recipe("ssb").experience, actor):
        batch, rollouts = collected.batch, collected.batch.rollouts
        if not collected.metrics["accepted_replies"]:
            assert not rollouts.mask.any()
            continue
        assert (rollouts.outcome == 1).all() and (rollouts.temperature == 2).all()
        assert (rollouts.drawn_temperature == 1).all()
        np.testing.assert_array_equal(rollouts.prompt_tokens, actor.prompts(batch.asks)[0])
        other += (rollouts.second_tokens != rollouts.prompt_tokens).any(axis=1).sum()
        kept += len(batch)
    # The actor has one word of eleven for each view: two views may share theirs.
    assert kept > 0 and other > kept / 2


@pytest.mark.slow
def test_training_follows_a_teacher_of_another_folder(tmp_path):
    model = training_runs.write_policy(tmp_path / "model")
    teacher = training_runs.write_policy(tmp_path / "teacher", seed=1)
    config = training_runs.settings(
        model, tmp_path / "run", method="opd", hyperparameters=(f"teacher={teacher}",), steps=2
    )
    training_runs.quietly(config)
    steps = training_runs.metrics(tmp_path / "run")
    assert max(training_runs.values(steps, "teacher_log_ratio")) < 0
    assert min(training_runs.values(steps, "gradient_norm")) > 0


@pytest.mark.parametrize(
    ("name", "acted"),
    everyday(
        [
            ("sdpo", "taught_fraction"),
            ("srpo", "taught_fraction"),
            ("ssb", "experience/accepted_replies"),
        ],
        ("srpo", "taught_fraction"),
    ),
)
def test_training_distils_what_the_policy_knows_once_it_is_shown_more(name, acted, tmp_path):
    steps = training_runs.on_brackets(name, tmp_path, hyperparameters=("teacher=average:0.5",))
    assert max(training_runs.values(steps, acted)) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


@pytest.mark.parametrize(
    ("name", "tokens", "most"),
    [
        *(("sdpo", 48, 45), ("ssb", 32, 30), ("mel", 48, 30)),
        *((name, 48, 45) for name in ("clpo", "gar", "rlad", "ssp", "stp", "svs")),
    ],
)
def test_room_for_what_a_second_prompt_shows_is_asked_for_before_the_first_step(
    name, tokens, most, tmp_path
):
    sentence = (
        f"response_tokens must be at most {most} for this method, which shows .* got {tokens}"
    )
    run_dir = tmp_path / "run"
    with pytest.raises(ValueError, match=sentence):
        training_runs.on_brackets(name, run_dir, response_tokens=tokens)
