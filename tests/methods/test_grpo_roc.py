"""Which answers of a group are kept, of more that were drawn."""

from dataclasses import replace

import numpy as np
import pytest
import training_runs
from small_environments import Counting

from rlvr_jax.experience import experience, turns
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.grpo_roc import (
    call_penalty,
    cleanest_rows,
    missed_rewards,
    select_cleanest,
    tag_penalty,
    untidy_tool_use,
)


def counts(incorrect, correct, number=16, least=2):
    """How many wrong and right ones of a group are kept."""
    answers = np.arange(incorrect + correct) >= incorrect
    kept = cleanest_rows(answers, np.zeros(len(answers)), number, least, least)
    return int(np.sum(kept & ~answers)), int(np.sum(kept & answers))


@pytest.mark.parametrize(
    ("incorrect", "kept"),
    [(1, 1), (2, 2), (3, 2), (5, 2), (7, 4), (16, 8), (25, 12), (27, 14), (29, 14), (31, 15)],
)
def test_half_of_each_kind_is_kept_rounded_half_to_even_and_two_at_least(incorrect, kept):
    assert counts(incorrect, 32 - incorrect) == (kept, 16 - kept)


def test_every_size_keeps_as_many_as_asked():
    for number in range(2, 12):
        for sampled in (1, 2, 3):
            for incorrect in range(1, number * sampled):
                found = counts(incorrect, number * sampled - incorrect, number, least=1)
                assert sum(found) == number and min(found) >= 1


def test_right_ones_are_the_cleanest_and_wrong_ones_the_first():
    correct = np.array([1, 1, 1, 1, 0, 0, 0, 0], bool)
    penalty = np.array([0.5, 0.0, 0.5, 0.2, 9, 0, 0, 0])
    kept = cleanest_rows(correct, penalty, 4, 1, 1)
    np.testing.assert_array_equal(np.flatnonzero(kept), [1, 3, 4, 5])
    # Of equal ones the earlier.
    tied = cleanest_rows(correct, np.full(8, 0.5), 4, 1, 1)
    np.testing.assert_array_equal(np.flatnonzero(tied), [0, 1, 4, 5])


def test_tags_are_tidy_if_there_is_one_pair():
    texts = ["<answer>1</answer>", "1", "<answer>1", "<answer>1</answer> <answer>2</answer>", "1"]
    np.testing.assert_array_equal(tag_penalty(texts, [1, 1, 1, 4, 0]), [0, 1, 1, 0.25, 1])
    many = "<answer></answer>" * 4
    np.testing.assert_array_equal(tag_penalty([many, many], [1, 0]), [1, 1])


def test_a_call_has_failed_whose_reply_has_the_word_error():
    replies = [["4"], [], ["Error: no", "TypeError"], ["the errors", "7", "8", "fine"]]
    np.testing.assert_array_equal(call_penalty(replies), [0, 0.5, 1, 0.25])


class Failing(Counting):
    """Says "d" first, and "c" to whoever asks again."""

    def reply(self, state, text):
        told = super().reply(state, text)
        return replace(told, text=told.text and ("c" if state else "d"))


def test_tool_use_is_as_untidy_as_what_was_told_and_written(monkeypatch):
    incorrect, fine, tagged = (numpy_actor.NumpyActor().encode(text)[0] for text in ("c", "d", "e"))
    words = [*numpy_actor.WORD]
    words[incorrect], words[tagged] = "an Error", "<answer></answer>"
    monkeypatch.setattr(numpy_actor, "WORD", words)
    chain = experience(draw=turns(Failing()))
    own_setting = numpy_actor.setting(chain, prompts=12, samples=6)
    again, tidy = 0, 0
    for found, _, _ in numpy_actor.walk(chain, own=own_setting, steps=3):
        rollouts = found.batch.rollouts
        told = untidy_tool_use(found.batch, None)
        for row, length in enumerate(rollouts.length):
            tokens, turn = rollouts.tokens[row, :length], rollouts.records["turn"][row, :length]
            replies, own = tokens[turn % 2 == 1], tokens[turn % 2 == 0]
            assert set(replies.tolist()) <= {incorrect, fine}
            fraction = np.mean(replies == incorrect) if len(replies) else 0.5
            answers = np.sum(own == tagged)
            untidy = min((answers - 1) / (turn.max() // 2 + 1), 1) if answers else 1
            assert told[row] == pytest.approx(fraction + untidy)
            again += fraction > 0 and len(replies) > 0
            tidy += answers == 1
    assert again > 3 and tidy > 3


@pytest.mark.slow
def test_of_rows_that_call_tools_the_cleanest_right_ones_are_kept(tmp_path):
    chain = recipe("grpo_roc", tools=None).experience
    assert "untidy_tool_use" in chain.labels[-1]
    config = training_runs.settings(
        training_runs.write_policy(tmp_path / "policy"),
        tmp_path / "run",
        task="small_environments:answering_sums",
        method="grpo_roc",
        hyperparameters=("tools=None", "min_incorrect=1", "min_correct=1"),
        response_tokens=10,
    )
    training_runs.quietly(config)
    steps = training_runs.metrics(tmp_path / "run")
    assert max(training_runs.values(steps, "experience/tool_tokens")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


def test_groups_of_equal_outcomes_teach_nothing_and_the_others_are_cleaner():
    chain = experience(stages=[select_cleanest(min_incorrect=1, min_correct=1)])
    own = numpy_actor.setting(chain)
    for collected, _, _ in numpy_actor.walk(chain, own=own):
        sampled, batch = collected.seen[0], collected.batch
        assert len(sampled) == 2 * len(batch)
        outcome = sampled.outcomes()
        mixed = outcome.min(axis=1) < outcome.max(axis=1)
        trained = [bool(batch.rollouts.mask[rows].any()) for rows in batch.groups]
        np.testing.assert_array_equal(trained, mixed)
        assert collected.metrics["dropped_groups"] == 1 - mixed.mean()
        saved = []
        for before, after, some in zip(sampled.groups, batch.groups, mixed, strict=True):
            penalty = [
                missed_rewards(one.take(rows[one.rollouts.outcome[rows] > 0]), own.task)
                for one, rows in ((sampled, before), (batch, after))
            ]
            if len(penalty[1]):
                assert penalty[1].max() <= np.sort(penalty[0])[len(penalty[1]) - 1]
            saved += [penalty[0].mean() - penalty[1].mean()] if some else []
        wanted = np.mean(saved) if saved else 0
        assert collected.metrics["penalty_saved"] == pytest.approx(wanted)


def test_nothing_is_saved_if_all_rows_are_selected():
    chain = experience(stages=[select_cleanest(oversampling=1, min_incorrect=1, min_correct=1)])
    for collected, _, _ in numpy_actor.walk(chain):
        assert collected.metrics["penalty_saved"] == 0


def test_more_minima_than_rows_are_refused():
    chain = experience(stages=[select_cleanest(min_incorrect=3, min_correct=2)])
    with pytest.raises(ValueError, match="must be at most 4 together"):
        numpy_actor.walk(chain, steps=1)
