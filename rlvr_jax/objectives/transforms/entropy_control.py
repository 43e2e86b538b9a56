"""Entropy held at a target by a few right rollouts from a hotter or colder sampler."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.advantages.group_relative import rollout_advantage
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.choices import masked_top_k
from rlvr_jax.objectives.statistics.groups import group_deviation, group_std, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_count, masked_max, masked_mean
from rlvr_jax.types import Rollouts, replace
from rlvr_jax.types.hyperparameters import Count, Finite, Positive
from rlvr_jax.types.parts import part

__all__ = [
    "Controllers",
    "LastEntropy",
    "advantage_by_origin",
    "choose_controllers",
    "control_temperature",
    "imitate_controllers",
    "normalized_by_origin",
    "sampled_entropy",
]


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
    Reads: reward, group, off_policy. Writes: advantage. Metrics: none.
    Raises:
      ValueError: epsilon not positive.
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
    Reads: advantage, old_logp, off_policy (the redrawn rows). Writes: advantage, mask.
    Metrics: controllers (their number), entropy_estimate (nats, of this batch).
    Raises:
      ValueError: max_samples not positive, or target or threshold not finite.
    Source: https://github.com/597358816/DCPO.
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
