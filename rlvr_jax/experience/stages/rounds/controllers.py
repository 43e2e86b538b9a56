"""Some prompts again at another temperature, for an objective that holds the entropy."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience.parts import Stage
from rlvr_jax.objectives import (
    advantage_by_origin,
    choose_controllers,
    control_temperature,
    has_tokens,
    sampled_entropy,
)
from rlvr_jax.types.hyperparameters import Count, Finite, Positive, Unit
from rlvr_jax.types.parts import part

__all__ = ["draw_controllers"]


@part
def draw_controllers(
    target: Finite,
    high: Positive = 1.2,
    low: Positive = 0.8,
    share: Unit = 0.25,
    threshold: Finite = 0.05,
    max_samples: Count = 60,
    epsilon: Positive = 1e-6,
) -> Stage:
    """Draws the first prompts of a step again, hotter while the entropy is low and colder above.

    The new rows stand behind those of their groups and are marked `off_policy`. They are scored and
    trained at the temperature of the others: the one that they were drawn with enters only by which
    rows there are. The entropy is that of the last update, as `imitate_controllers` estimates it: 0
    before the first one.

    Args:
      target: entropy to hold, nats.
      high, low: temperatures up to the target, and above it.
      share: of the groups, that are drawn again; rounded up.
      threshold, max_samples, epsilon: of `choose_controllers` and `normalized_by_origin`, as the
        objective has them.
    Writes: off_policy. Draws: as many rows as these groups have. Metrics: control_temperature;
      after the update entropy_of_update.
    Raises:
      ValueError: a target or threshold that is not finite, a temperature or epsilon that is not
        positive, a share outside [0, 1], or no sample.
    Source: https://github.com/597358816/DCPO.
    """

    def init(setting):
        del setting
        return {"entropy": np.zeros((), np.float32)}

    def apply(batch, actor, state, turn):
        heat = float(control_temperature(state["entropy"], target, high, low))
        again = np.arange(len(batch.groups)) < np.ceil(share * len(batch.groups))
        asks = [replace(ask, temperature=heat) for ask in batch.asks_of(again)]
        batch = batch.with_rollouts(off_policy=np.zeros(len(batch), bool))
        told = {"control_temperature": heat}
        if not asks:
            return batch, state, told
        drawn = actor.grade(actor.draw(asks, turn.key))
        first = [rows[0] for rows, one in zip(batch.groups, again, strict=True) if one]
        own = np.asarray(batch.rollouts.temperature)[first, :1]
        rollouts = drawn.rollouts
        drawn = drawn.with_rollouts(
            off_policy=np.ones(len(drawn), bool),
            drawn_temperature=rollouts.temperature,
            temperature=np.broadcast_to(own[rollouts.group], rollouts.tokens.shape).copy(),
        )
        if batch.rollouts.drawn_temperature is None:
            batch = batch.with_rollouts(drawn_temperature=batch.rollouts.temperature)
        return batch.with_groups(again, drawn, "append"), state, told

    def observe(state, turn, seen, learned):
        del turn, seen
        rollouts = learned.rollouts
        advantage = advantage_by_origin(rollouts, epsilon)
        chosen = choose_controllers(
            jnp.asarray(advantage),
            jnp.asarray(rollouts.off_policy),
            jnp.asarray(rollouts.rollout_id),
            has_tokens(jnp.asarray(rollouts.mask)),
            too_high=jnp.asarray(state["entropy"] > target),
            threshold=threshold,
            max_samples=max_samples,
        )
        kept = rollouts.mask & np.asarray(chosen.keep)[:, None]
        if not kept.any():
            return state, {}
        entropy = float(sampled_entropy(jnp.asarray(rollouts.old_logp), jnp.asarray(kept)))
        return {"entropy": np.array(entropy, np.float32)}, {"entropy_of_update": entropy}

    named = {"target": float(target), "high": high, "low": low, "share": float(share)}
    named |= {"threshold": threshold, "max_samples": max_samples, "epsilon": epsilon}
    gives = frozenset({"off_policy"})
    return Stage(apply, init, observe, writes=gives, most=2.0)
