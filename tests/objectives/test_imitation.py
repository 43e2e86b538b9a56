"""Rows to imitate, losses by who wrote a token, statistics by cell."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from adapters.common import only
from golden_vectors import array, assert_agrees

from rlvr_jax.methods import recipe
from rlvr_jax.objectives import (
    by_origin,
    group_centered,
    imitate,
    importance_weighted,
    objective,
    plain_reward,
    ppo_clip,
    shaped_probability,
    token_mean,
)

# Its parts read old log-probs, group statistics and a reference: GRPO is the plainest of them.
PLAIN = recipe("grpo").objective


def with_supervised(batch, rows):
    """The batch with some rows to imitate, and which rows those are."""
    chosen = np.zeros(batch.mask.shape[0], bool)
    chosen[rows] = True
    mask = np.asarray(batch.mask) & ~chosen[:, None]
    return batch.replace(supervised=array(chosen, bool), mask=array(mask, bool)), chosen


def test_imitation_is_the_mean_log_likelihood_of_supervised_rows_up_to_their_length():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    batch, chosen = with_supervised(batch, [1, 6])
    done = golden.step(only(imitate(0.5)).objective, stats, batch)
    tokens = chosen[:, None] & (np.arange(batch.mask.shape[1]) < np.asarray(batch.length)[:, None])
    assert_agrees(done.loss, -0.5 * np.asarray(stats.logp)[tokens].mean())
    assert_agrees(done.dstats.logp, np.where(tokens, -0.5 / tokens.sum(), 0))
    assert float(done.metrics["imitated_tokens"]) == tokens.sum()


@pytest.mark.thorough
def test_supervised_rows_and_imitation_change_nothing_for_the_others():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    batch, chosen = with_supervised(batch, [1, 6])
    mixed = golden.step(PLAIN, stats, batch)
    others = jax.tree.map(lambda v: array(np.asarray(v)[~chosen], v.dtype), (stats, batch))
    alone = golden.step(PLAIN, *others)
    assert_agrees(mixed.loss, alone.loss)
    assert_agrees(np.asarray(mixed.dstats.logp)[~chosen], alone.dstats.logp)
    assert not np.asarray(mixed.dstats.logp)[chosen].any()


def test_nothing_to_imitate_is_no_loss():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    batch, _ = with_supervised(batch, [])
    done = golden.step(only(imitate(1.0)).objective, stats, batch)
    assert done.loss == 0 and not np.asarray(done.dstats.logp).any()


def test_a_negative_weight_is_refused():
    with pytest.raises(ValueError, match="imitate: weight must be at least 0, got -1"):
        imitate(-1.0)


@pytest.mark.thorough
def test_a_loss_by_origin_is_that_of_the_writer():
    batch, stats = golden.rollouts("b"), golden.stats("b")

    def loss_of(surrogate):
        made = objective(group_centered(), surrogate=surrogate, aggregation=token_mean())
        return np.asarray(golden.step(made, stats, batch).token_loss)

    mixed = loss_of(by_origin(ppo_clip(0.2, 0.2), shaped_probability(0.1)))
    foreign = np.asarray(batch.records["off_policy"])
    assert_agrees(mixed[~foreign], loss_of(ppo_clip(0.2, 0.2))[~foreign])
    assert_agrees(mixed[foreign], loss_of(shaped_probability(0.1))[foreign])


def test_tokens_of_a_teacher_within_a_row_are_foreign():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    origin = np.zeros(batch.mask.shape, np.int32)
    origin[:, 0] = 1
    batch = batch.replace(
        off_policy=batch.records["off_policy"] & False, origin=array(origin, np.int32)
    )
    surrogate = by_origin(importance_weighted(), shaped_probability(0.1))
    made = objective(plain_reward(), surrogate=surrogate, aggregation=token_mean())
    ratio = np.asarray(golden.step(made, stats, batch).signals.ratio)
    probability = np.exp(np.asarray(stats.logp)[:, 0])
    there = np.asarray(batch.mask)[:, 0]
    assert_agrees(ratio[there, 0], (probability / (probability + 0.1))[there])


def test_old_log_probs_of_foreign_rows_are_unread():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    far = jnp.where(batch.records["off_policy"][:, None], -3000.0, batch.old_logp)
    surrogate = by_origin(ppo_clip(0.2, 0.2), shaped_probability(0.1))
    made = objective(group_centered(), surrogate=surrogate, aggregation=token_mean())
    found, wanted = (
        golden.step(made, stats, batch.replace(old_logp=old)) for old in (far, batch.old_logp)
    )
    assert_agrees(found.loss, wanted.loss)
    assert_agrees(found.dstats.logp, wanted.dstats.logp)
