"""ARES' vectors; tokens whose id is a multiple stand for trigger words."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
from adapters.common import on_mask, recipe_with

from rlvr_jax.methods.rewards.ares import (
    HesitationScale,
    ThresholdState,
    batch_threshold,
    difficulty_level,
    hesitation_count,
    hesitation_score,
    hesitation_target,
    response_threshold,
    window_entropy,
)
from rlvr_jax.objectives import has_tokens, masked_quantile
from rlvr_jax.types import is_correct

LEFT_OUT = {"soft_cost": "the method does not read it"}
USED_QUANTILE = 0.4  # of the vectors: the 95th percentile would leave no token
TABLE_COUNTS, TABLE_TARGET = 25, 6


def outputs(case, hyper):
    batch = golden.rollouts(case)
    trigger = batch.mask & (batch.tokens % hyper["trigger_mod"] == 0)
    batch = batch.replace(trigger=trigger)
    entropy, window, percentile = batch.entropy, hyper["window"], hyper["percentile"]
    scale = HesitationScale(
        hyper["alpha"],
        tuple(hyper["frac"]),
        tuple(hyper["kappa"]),
        tuple(hyper["temp"]),
        tuple(hyper["cap_scale"]),
    )
    half = jax.tree.map(lambda values: values[::2], batch)
    state = ThresholdState(jnp.zeros(()), jnp.zeros((), bool))
    for one in (batch, half):
        measured = batch_threshold(one.entropy, one, window, percentile)
        state = state.moved(measured, hyper["threshold_ema"])
    used = masked_quantile(entropy, batch.mask, USED_QUANTILE)
    count = hesitation_count(entropy, batch, used, window)
    level = difficulty_level(batch.outcome, batch.group)
    target = hesitation_target(count, level, batch.group, batch.rollout_id, has_tokens(batch.mask))
    score = hesitation_score(count, target, level, is_correct(batch.outcome), scale)
    ares = recipe_with(
        hyper,
        "ares",
        window=window,
        percentile=percentile,
        threshold_keep=hyper["threshold_ema"],
        scale=scale,
    )
    past = {"hesitation_advantage": ThresholdState(used, jnp.ones((), bool))}
    done = golden.evaluate(ares, case, state=past, batch=batch)
    return {
        **done.outputs(),
        "sample_threshold": response_threshold(entropy, batch, window, percentile),
        "threshold_ema": state.threshold,
        "threshold_used": done.metrics["hesitation_threshold"],
        "trigger": trigger,
        "window_entropy": on_mask(window_entropy(entropy, batch.mask, window)[0], batch),
        "count": count,
        "difficulty": level,
        "target": target,
        "entropy_score": score,
        "reward": batch.reward + score,
        "score_table": score_table(scale),
    }


def score_table(scale):
    """Scores by count, for right and wrong answers to easy, medium and hard prompts."""
    count = jnp.tile(jnp.arange(TABLE_COUNTS), (6, 1))
    level = jnp.repeat(jnp.arange(3), 2)[:, None]
    correct = jnp.asarray(np.arange(6) % 2 == 0)[:, None]
    target = jnp.full(count.shape, float(TABLE_TARGET))
    wide = [jnp.broadcast_to(values, count.shape) for values in (level, correct)]
    return hesitation_score(count, target, *wide, scale)
