"""HPT: reinforcement where the policy solves the prompt, imitation where it does not."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import only
from golden_vectors import assert_agrees
from walks import walked

from rlvr_jax.methods.guidance.hpt import num_solved, off_policy_tokens
from rlvr_jax.objectives import imitate


def test_demonstrations_do_not_count_as_solved():
    batch = golden.rollouts("b")
    solved = batch.replace(outcome=jnp.ones_like(batch.outcome))
    assert_agrees(num_solved(solved), np.full(12, 3))  # groups of 4 with one demonstration


def test_imitation_of_another_policy_reads_rows_on_the_mask():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    part = imitate(1.0, off_policy_tokens, {"off_policy"})
    done = golden.step(only(part).objective, stats, batch)
    tokens = np.asarray(batch.mask) & np.asarray(batch.records["off_policy"])[:, None]
    assert_agrees(done.loss, -np.asarray(stats.logp)[tokens].mean())


def test_demonstrations_stand_in_groups_that_are_solved_too_seldom():
    shown = 0
    for collected, _, _ in walked("hpt", 3, solved=1):
        batch, (sampled,) = collected.batch, collected.seen
        correct = (sampled.outcomes() > 0.5).sum(axis=1)
        foreign = batch.by_group(batch.rollouts.records["off_policy"], False)
        np.testing.assert_array_equal(foreign[:, -1], correct <= 1)
        assert not foreign[:, :-1].any() and len(batch) == len(sampled)
        own = ~batch.rollouts.records["off_policy"]
        np.testing.assert_array_equal(batch.rollouts.tokens[own], sampled.rollouts.tokens[own])
        shown += int(foreign.sum())
    assert shown > 0
