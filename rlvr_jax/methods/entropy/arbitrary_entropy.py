"""AEPO (arbitrary entropy): steer the entropy with rollouts of another temperature.

"Arbitrary Entropy Policy Optimization: Entropy Is Controllable in Reinforcement Fine-tuning",
https://github.com/597358816/DCPO

    H      = -mean logp of the sampled tokens in the last update, 0 at first
    T      = T_high if H ≤ H_0 else T_low       a quarter of the prompts is drawn again at T
    k      = min(sample_num, redrawn rows with A > 0.05), halved if H > H_0
    update = k of those rows with A = 1, and the own rows but the first k
    loss   = Σ PPO clip with dual clip / Σ n_i

Both kinds of rows have their own group statistics. Both are drawn from the likeliest tokens of mass
0.99, and their old log-probs are those at temperature 1 over the whole vocabulary, with which the
ratio begins at 1: temperature and cut enter only by which rollouts are seen. In effect GRPO plus a
REINFORCE term. The redrawn rows are those marked `off_policy`. Where nothing qualifies the authors'
code fails; ours trains on the own rows. Their log-space clip is the same function. Evaluations are
drawn with the same cut.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.experience import experience, plain
from rlvr_jax.experience.parts import Stage
from rlvr_jax.objectives.advantages.group_relative import rollout_advantage
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.arguments import check_within
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.choices import masked_top_k
from rlvr_jax.objectives.statistics.groups import group_deviation, group_std, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_count, masked_max, masked_mean
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Count,
    DualClip,
    Epsilon,
    Finite,
    Positive,
    Unit,
)
from rlvr_jax.types.parts import part
from rlvr_jax.types.rollouts import Rollouts


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


def sampled_entropy(logp: Float[Array, "B T"], mask: Bool[Array, "B T"]) -> Float[Array, ""]:
    """-mean logp of the sampled tokens, nats: an estimate of the entropy of the policy."""
    return -masked_mean(logp, mask)


def control_temperature(
    entropy: Float[Array, ""], target: float, high: float = 1.2, low: float = 0.8
) -> Float[Array, ""]:
    """The temperature to draw the controllers at: `high` up to the target entropy, `low` above."""
    return jnp.where(entropy <= target, high, low)


@part
def normalized_by_origin(epsilon: Positive = 1e-6) -> Transform:
    """A_i = (R_i - mean) / (std + ε) over the rows of the same group and the same origin.

    The policy's own rows and those marked `off_policy` are compared among themselves.

    Args:
      epsilon: ε, added to the standard deviation (n - 1), outside its root.
    """
    return rollout_advantage(
        lambda rollouts: advantage_by_origin(rollouts, epsilon), reads={"off_policy"}
    )


def advantage_by_origin(rollouts: Rollouts, epsilon: float) -> Float[Array, "B"]:
    """The advantages of `normalized_by_origin`."""
    reward, group = jnp.asarray(rollouts.reward), jnp.asarray(rollouts.group)
    other = jnp.asarray(rollouts.off_policy)

    def scaled(rows):
        centered = group_deviation(reward, group, where=rows)
        return centered / (group_std(reward, group, where=rows) + epsilon)

    return jnp.where(other, scaled(other), scaled(~other))


class Controllers(NamedTuple):
    """Which rows make up an update.

    Fields:
      count: k, number of controllers.
      controller: [B], redrawn rows that are imitated.
      keep: [B], the controllers and the policy's own rows but for the first k.
    """

    count: Int[Array, ""]
    controller: Bool[Array, "B"]
    keep: Bool[Array, "B"]


def choose_controllers(
    advantage: Float[Array, "B"],
    redrawn: Bool[Array, "B"],
    rollout_id: Int[Array, "B"],
    where: Bool[Array, "B"],
    *,
    too_high: Bool[Array, ""],
    threshold: float,
    max_samples: int,
) -> Controllers:
    """Replaces the first k own rows by the first k redrawn ones of positive advantage.

    k = min(max_samples, number of redrawn rows with A > threshold), halved and rounded down if the
    entropy is too high. First means by `rollout_id`.

    Args:
      advantage: of the rows, redrawn ones among themselves.
      redrawn: rows from the second sampler.
      rollout_id: of the rows.
      where: the rows that count; the others are neither replaced nor controllers.
      too_high: whether the entropy is above its target.
      threshold, max_samples: as above.
    """
    candidate = where & redrawn & (advantage > threshold)
    count = jnp.minimum(max_samples, masked_count(candidate))
    count = jnp.where(too_high, count // 2, count)

    def first(rows):
        equal = jnp.zeros((rows.shape[0], 1), jnp.float32)
        return masked_top_k(equal, rows[:, None], count, rollout_id)[:, 0]

    controller = first(candidate)
    return Controllers(count, controller, controller | (~redrawn & ~first(where & ~redrawn)))


class LastEntropy(NamedTuple):
    """The entropy estimated in the last update, nats; 0 before the first."""

    entropy: Float[Array, ""]


@part(writes={"advantage", "mask"})
def imitate_controllers(
    target: Finite, threshold: Finite = 0.05, max_samples: Count = 60
) -> Transform:
    """Trains on controllers with advantage 1 in place of as many of the policy's own rows.

    Imitating right rollouts of a hot sampler raises the entropy, of a cold one lowers it. Rows that
    are not kept leave the mask. With no controller the batch is the policy's own.

    Args:
      target: wanted entropy (`sampled_entropy`), nats; above it half as many are used.
      threshold, max_samples: of `choose_controllers`.
    Metrics: controllers (their number), entropy_estimate (nats, of this batch).
    """

    def init(spec):
        del spec
        return LastEntropy(jnp.zeros((), float))

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        own = jax.vmap(masked_max)(signals.advantage, mask)
        chosen = choose_controllers(
            own,
            rollouts.off_policy,
            rollouts.rollout_id,
            has_tokens(mask),
            too_high=state.entropy > target,
            threshold=threshold,
            max_samples=max_samples,
        )
        kept = mask & chosen.keep[:, None]
        advantage = jnp.where(chosen.controller[:, None], 1, signals.advantage)
        now = sampled_entropy(context.old_logp, kept)
        any_token = jnp.any(kept)
        state = LastEntropy(jnp.where(any_token, now.astype(state.entropy.dtype), state.entropy))
        signals = replace(signals, advantage=jnp.where(kept, advantage, 0), mask=kept)
        return signals, state, {"controllers": chosen.count, "entropy_estimate": now}

    reads = frozenset({"logp", "off_policy", "batch_statistics"})
    return Transform(apply, init=init, reads=reads, once=True)


def arbitrary_entropy(
    target: float = 0.5,
    threshold: float = 0.05,
    max_samples: int = 60,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    dual_clip: DualClip = 3.0,
    epsilon: Epsilon = 1e-6,
    high: float = 1.2,
    low: float = 0.8,
    share: float = 0.25,
    top_p: float = 0.99,
) -> Recipe:
    """GRPO on the token mean with some rollouts replaced by right ones of another temperature.

    Args:
      target: entropy to hold (H_0), nats.
      threshold: advantage above which a redrawn rollout is imitated.
      max_samples: rollouts that are replaced at most, of the 2560 of a batch (sample_num).
      high, low: temperatures of the redrawn rows while the entropy is low, and above its target.
      share: of the prompts, that are drawn again.
      top_p: mass that is sampled from.
    Raises:
      ValueError: top_p outside [0, 1].
    """
    check_within(0, 1, "arbitrary_entropy", top_p=top_p)
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=normalized_by_origin(epsilon),
            transforms=[imitate_controllers(target, threshold, max_samples)],
            dual_clip=dual_clip,
        ),
        experience=experience(
            draw=plain(top_p=top_p),
            stages=[draw_controllers(target, high, low, share, threshold, max_samples, epsilon)],
        ),
    )


METHOD = Method(
    arbitrary_entropy,
    "Arbitrary Entropy Policy Optimization: Entropy Is Controllable in Reinforcement Fine-tuning",
    "https://github.com/597358816/DCPO",
    changes="sampling, advantage, mask",
    reports=(
        "Qwen2.5-Math-7B, mean of 7 sets: 53.87 (GRPO 51.60, entropy bonus 51.10); scores rise, "
        "then fall with the entropy held"
    ),
    traps=(
        "its entropy is -logp of drawn tokens, not the full one; it is 0 at first, so the first "
        "step heats; near the target the temperature flips every step; 60 rows are meant for a "
        "batch of 2560; top_p 0.99 is not corrected for"
    ),
)
