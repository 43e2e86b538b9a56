"""RLMEC: the teacher reads the rewriting prompt; correct rewrites are imitated by their edits."""

import numpy as np
import pytest
import training_runs

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe
from rlvr_jax.methods.credit.rlmec import edits_of
from rlvr_jax.types import Rollouts


def rows(*texts):
    tokens = np.array([[*map(ord, text.ljust(4))] for text in texts])
    mask = np.array([[place < len(text) for place in range(4)] for text in texts])
    batch = Rollouts.of_responses(tokens, mask, np.zeros(len(texts)), np.arange(len(texts)))
    return batch.replace(length=np.array([*map(len, texts)], np.int32))


def test_edited_and_kept_tokens_of_rewrites_are_told_apart_up_to_the_end():
    found = edits_of(rows("abc", "abd", "xab"), rows("axc", "abcd", "abx"))
    assert found.tolist() == [[1, 2, 1, 0], [1, 1, 2, 1], [1, 1, 2, 0]]


def test_the_teacher_reads_the_rewriting_prompt_and_correct_rewrites_follow_the_plain_one():
    actor, accepted = numpy_actor.NumpyActor(chance=0.5), 0
    for collected, _, _ in numpy_actor.walk(recipe("rlmec").experience, actor, steps=4):
        batch, rollouts = collected.batch, collected.batch.rollouts
        rewritten = rollouts.records["supervised"]
        edits, second = rollouts.records["edits"], rollouts.records["second_length"]
        accepted += int(rewritten.sum())
        assert (second[rewritten] == 0).all() and (second[~rewritten] > 0).all()
        assert not rollouts.mask[rewritten].any() and (rollouts.outcome[rewritten] == 1).all()
        assert collected.metrics["accepted_rewrites"] == rewritten.sum()
        plain = actor.prompts(batch.requests)[0]
        np.testing.assert_array_equal(rollouts.prompt_tokens[rewritten], plain[rewritten])
        assert (edits[rewritten] > 0).any(axis=1).all()
        correct = rollouts.outcome[~rewritten, None] * rollouts.mask[~rewritten]
        np.testing.assert_array_equal(edits[~rewritten], correct)
    assert accepted > 0


@pytest.mark.slow
def test_training_on_rewrites(tmp_path):
    steps = training_runs.on_brackets("rlmec", tmp_path)
    for name in ("experience/accepted_rewrites", "key_tokens_fraction", "gradient_norm"):
        assert max(training_runs.values(steps, name)) > 0
