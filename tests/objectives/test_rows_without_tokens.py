"""Rows without tokens, as runs make them of cut responses: nothing that was written is theirs."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from everyday import everyday
from golden_vectors import array, assert_agrees

from rlvr_jax.methods import recipe
from rlvr_jax.methods.credit.apo import long_error_factor
from rlvr_jax.methods.entropy.canon import in_high_half, mean_sampling_entropy
from rlvr_jax.methods.entropy.ppl_position_shaping import standardized_perplexity
from rlvr_jax.methods.entropy.siren import peak_entropy
from rlvr_jax.methods.entropy.ucas import standardized_certainty
from rlvr_jax.methods.exploration.d3s import down_sampling_rows
from rlvr_jax.methods.exploration.seed_grpo import relative_semantic_entropy
from rlvr_jax.objectives import self_certainty
from rlvr_jax.objectives.statistics.groups import group_others_mean, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_count, masked_mean, masked_sum
from rlvr_jax.objectives.statistics.scopes import within_batch

GONE = 0


# Methods without a baseline of rewards, in which every row of a group counts.
METHODS = ("canon", "cgpo", "copg", "dpo_q", "f_dpg", "implicit_prm", "pacs", "sweet_rl", "vpo")


def certainty(stats, batch):
    total = masked_sum(
        self_certainty(batch.records["old_logsumexp"], batch.records["old_mean_logit"]),
        batch.mask,
        axis=1,
    )
    return standardized_certainty(total, batch.mask, batch)


PARTS = {
    "perplexity": lambda stats, batch: standardized_perplexity(
        batch.old_logp, batch.mask, batch, within_batch
    ),
    "certainty": certainty,
    "semantic entropy": lambda stats, batch: relative_semantic_entropy(
        masked_mean(batch.old_logp, batch.mask, axis=1),
        batch.records["answer"],
        batch.group,
        has_tokens(batch.mask),
    ),
    "peak entropy": lambda stats, batch: peak_entropy(stats.records["nucleus_entropy"], batch, 0.8)[
        0
    ],
    "high half": lambda stats, batch: in_high_half(
        mean_sampling_entropy(batch), batch.group, batch.rollout_id, has_tokens(batch.mask)
    ),
    "others": lambda stats, batch: group_others_mean(
        batch.records["values"][:, 0], batch.group, has_tokens(batch.mask)
    ),
    "length": lambda stats, batch: long_error_factor(
        batch.reward,
        batch.group,
        jnp.where(has_tokens(batch.mask), 12 - masked_count(batch.mask, axis=1), 0),
        1.1,
        1e-9,
    ),
    "most varied": lambda stats, batch: down_sampling_rows(
        stats.entropy[:, 0],
        batch.group,
        has_tokens(batch.mask),
        batch.rollout_id,
        group_fraction=0.6,
        batch_fraction=0.8,
    )[0],
}


def cleared_and_without(batch):
    mask = np.asarray(batch.mask).copy()
    mask[GONE] = False
    cleared = batch.replace(mask=array(mask, bool))
    return (cleared, golden.stats("b")), without((cleared, golden.stats("b")))


def without(tree):
    return jax.tree.map(lambda v: array(np.delete(np.asarray(v), GONE, axis=0), v.dtype), tree)


@pytest.mark.thorough
@pytest.mark.parametrize("part", PARTS)
def test_what_is_compared_is_compared_among_the_others(part):
    (cleared, stats), (fewer, own_stats) = cleared_and_without(golden.rollouts("b"))
    found, wanted = PARTS[part](stats, cleared), PARTS[part](own_stats, fewer)
    assert_agrees(np.delete(found, GONE) if np.ndim(found) else found, wanted)
    plain = PARTS[part](stats, golden.rollouts("b"))
    assert np.any(np.asarray(found) != np.asarray(plain)), "the row would have counted"


@pytest.mark.thorough
@pytest.mark.parametrize("name", everyday(METHODS, "canon", "dpo_q", "pacs", "vpo"))
def test_a_method_without_a_baseline_of_rewards_does_not_know_of_them(name):
    own = recipe(name)
    (cleared, stats), (fewer, own_stats) = cleared_and_without(
        golden.prepared(own, golden.rollouts("b"))
    )
    found = golden.step(own.objective, stats, cleared)
    wanted = golden.step(own.objective, own_stats, fewer)
    assert_agrees(found.loss, wanted.loss)
    jax.tree.map(assert_agrees, without(found.dstats), wanted.dstats)
    jax.tree.map(assert_agrees, found.state, wanted.state)
