"""AEPO (arbitrary entropy): controls the entropy with rollouts of another temperature.

"Arbitrary Entropy Policy Optimization: Entropy Is Controllable in Reinforcement Fine-tuning",
https://github.com/597358816/DCPO

    H      = -mean logp of the sampled tokens in the last update, 0 at first
    T      = T_high if H ≤ H_0 else T_low       a quarter of the prompts is sampled again at T
    A_i    = (R_i - mean) / (std + 1e-6), std with n - 1, over the group's rows of one temperature
    k      = min(sample_num, resampled rows with A > 0.05), halved if H > H_0
    update = k of those rows with A = 1, and the policy's own rows but the first k
    loss   = Σ PPO clip with dual clip / Σ n_i

Both kinds of rows are sampled from the likeliest tokens of mass 0.99 (`top_p`), as are evaluations.
Their old log-probs are those at temperature 1 over the whole vocabulary, where the ratio begins at
1. Temperature and `top_p` only affect the choice of rollouts: the method is GRPO plus a REINFORCE
term. The resampled rows are marked `off_policy`. If no row qualifies, the authors' code fails; this
recipe trains on the policy's own rows.

Reports: Qwen2.5-Math-7B, mean of 7 sets in %: 53.87 (GRPO: 51.60, entropy bonus: 51.10). With the
entropy held, scores rise, then fall.
Traps: The entropy is -logp of sampled tokens, not the full one. It is 0 at first, so the first step
samples at T_high. Near the target, the temperature changes at every step. 60 rows are meant for a
batch of 2560. Nothing corrects for top_p 0.99.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.experience import Stage, experience, plain
from rlvr_jax.objectives import Transform, clipped_objective, masked_top_k, part, rollout_advantage
from rlvr_jax.objectives.statistics.groups import group_z_score, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_count, masked_max, masked_mean
from rlvr_jax.types import Method, Recipe, Rollouts, Shown, replace
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Count,
    DualClip,
    Epsilon,
    Finite,
    Temperature,
    Unit,
)


@part(writes={"off_policy"})
def draw_controllers(
    target: Finite,
    high: Temperature = 1.2,
    low: Temperature = 0.8,
    fraction: Unit = 0.25,
    threshold: Finite = 0.05,
    max_samples: Count = 60,
    epsilon: Epsilon = 1e-6,
) -> Stage:
    """Samples the first prompts of a step again, hotter up to the target entropy, colder above.

    The new rows follow those of their groups and are marked `off_policy`. They are scored and
    trained at the temperature of the others. The entropy is that of the last update, as
    `imitate_controllers` estimates it.

    Args:
      target: entropy to hold, nats (H_0).
      high, low: temperatures of the new rows up to the target entropy, and above it.
      fraction: fraction of the prompts that are sampled again; rounded up.
      threshold: advantage above which a new row is imitated.
      max_samples: largest number of imitated rows.
    Writes: off_policy. Samples: as many rows as these groups have. Metrics: control_temperature
      (temperature of the controllers), entropy_of_update (nats, after the update).
    """

    def init(setting):
        return {"entropy": np.zeros((), np.float32)}

    def apply(batch, actor, state, turn):
        temperature = float(jnp.where(state["entropy"] <= target, high, low))
        metrics = {"control_temperature": temperature}
        again = np.arange(len(batch.groups)) < np.ceil(fraction * len(batch.groups))
        requests = [
            replace(request, temperature=temperature) for request in batch.requests_of(again)
        ]
        batch = batch.with_rollouts(off_policy=np.zeros(len(batch), bool))
        if not requests:
            return batch, state, metrics
        more = actor.grade(actor.draw(requests, turn.key))
        first = [rows[0] for rows, chosen in zip(batch.groups, again, strict=True) if chosen]
        own = np.asarray(batch.rollouts.temperature)[first, :1]
        rollouts = more.rollouts
        more = more.with_rollouts(
            off_policy=np.ones(len(more), bool),
            sampled_temperature=rollouts.temperature,
            temperature=np.broadcast_to(own[rollouts.group], rollouts.tokens.shape).copy(),
        )
        if "sampled_temperature" not in batch.rollouts.records:
            batch = batch.with_rollouts(sampled_temperature=batch.rollouts.temperature)
        return batch.with_groups(again, more, "append"), state, metrics

    def observe(state, turn, seen, learned):
        rollouts = learned.rollouts
        _, keep = choose_controllers(
            jnp.asarray(advantage_by_origin(rollouts, epsilon)),
            jnp.asarray(rollouts.records["off_policy"]),
            jnp.asarray(rollouts.rollout_id),
            has_tokens(jnp.asarray(rollouts.mask)),
            too_high=jnp.asarray(state["entropy"] > target),
            threshold=threshold,
            max_samples=max_samples,
        )
        trained = rollouts.mask & np.asarray(keep)[:, None]
        if not trained.any():
            return state, {}
        entropy = float(-masked_mean(jnp.asarray(rollouts.old_logp), jnp.asarray(trained)))
        return {"entropy": np.array(entropy, np.float32)}, {"entropy_of_update": entropy}

    return Stage(apply, init, observe, most=2.0)


@part
def normalized_by_origin(epsilon: Epsilon = 1e-6) -> Transform:
    """A_i = (R_i - mean) / (std + ε) over the rows of the same group and the same origin.

    The policy's own rows and those marked `off_policy` are compared among themselves.
    """
    return rollout_advantage(
        lambda rollouts: advantage_by_origin(rollouts, epsilon), reads={"off_policy"}
    )


def advantage_by_origin(rollouts: Rollouts, epsilon: float) -> Float[Array, "B"]:
    """The advantages of `normalized_by_origin`."""
    reward, group = jnp.asarray(rollouts.reward), jnp.asarray(rollouts.group)
    other = jnp.asarray(rollouts.records["off_policy"])

    own, others = (group_z_score(reward, group, epsilon, rows) for rows in (~other, other))
    return jnp.where(other, others, own)


class LastEntropy(NamedTuple):
    """The entropy estimated in the last update, nats; 0 before the first."""

    entropy: Float[Array, ""]


@part(reads={"logp", "off_policy", "batch_statistics"}, writes={"advantage", "mask"}, once=True)
def imitate_controllers(
    target: Finite, threshold: Finite = 0.05, max_samples: Count = 60
) -> Transform:
    """Trains on controllers with advantage 1 in place of as many of the policy's own rows.

    To imitate correct rollouts of a hot sampler raises the entropy, of a cold one lowers it. All
    other rows leave the mask. With no controller the batch is the policy's own.

    Metrics: controllers (rows), entropy_estimate (mean of -logp in this batch, nats).
    """

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        controller, keep = choose_controllers(
            jax.vmap(masked_max)(signals.advantage, mask),
            rollouts.records["off_policy"],
            rollouts.rollout_id,
            has_tokens(mask),
            too_high=state.entropy > target,
            threshold=threshold,
            max_samples=max_samples,
        )
        trained = mask & keep[:, None]
        advantage = jnp.where(controller[:, None], 1, signals.advantage)
        signals = replace(signals, advantage=jnp.where(trained, advantage, 0), mask=trained)
        entropy = -masked_mean(context.old_logp, trained)
        moved = jnp.where(jnp.any(trained), entropy.astype(state.entropy.dtype), state.entropy)
        metrics = {"controllers": masked_count(controller), "entropy_estimate": entropy}
        return signals, LastEntropy(moved), metrics

    return Transform(apply, init=lambda spec: LastEntropy(jnp.zeros((), float)))


def choose_controllers(
    advantage: Float[Array, "B"],
    resampled: Bool[Array, "B"],
    rollout_id: Int[Array, "B"],
    where: Bool[Array, "B"],
    *,
    too_high: Bool[Array, ""],
    threshold: float,
    max_samples: int,
) -> tuple[Bool[Array, "B"], Bool[Array, "B"]]:
    """Replaces the first k own rows by the first k resampled ones of positive advantage.

    k = min(max_samples, number of resampled rows with A > threshold), halved and rounded down if
    the entropy is too high. First means by `rollout_id`.

    Args:
      advantage: A of each row.
      resampled: rows that were sampled again.
      rollout_id: number of each row that does not depend on the batch.
      where: rows that are not counted are neither replaced nor controllers.
      too_high: whether the entropy is above its target.
      threshold: smallest advantage of a controller, excluded.
      max_samples: largest k.
    Returns:
      The controllers, and all rows of the update: the controllers and the own rows but the first k.
    """
    candidate = where & resampled & (advantage > threshold)
    count = jnp.minimum(max_samples, masked_count(candidate))
    count = jnp.where(too_high, count // 2, count)

    def first(rows):
        equal = jnp.zeros((rows.shape[0], 1), jnp.float32)
        return masked_top_k(equal, rows[:, None], count, rollout_id)[:, 0]

    controller = first(candidate)
    return controller, controller | (~resampled & ~first(where & ~resampled))


def arbitrary_entropy(
    target: Finite = 0.5,
    threshold: Finite = 0.05,
    max_samples: Count = 60,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    dual_clip: DualClip = 3.0,
    epsilon: Epsilon = 1e-6,
    high: Temperature = 1.2,
    low: Temperature = 0.8,
    fraction: Unit = 0.25,
    top_p: Unit = 0.99,
) -> Recipe:
    """Applies GRPO, with some rollouts replaced by correct ones of another temperature.

    Args:
      target: entropy to hold (H_0), nats.
      threshold: advantage above which a resampled rollout is imitated.
      max_samples: largest number of replaced rollouts, of the 2560 of a batch (sample_num).
      high, low: temperatures of the resampled rows up to the target entropy, and above it.
      fraction: fraction of the prompts that are sampled again; rounded up.
      top_p: probability mass of the likeliest tokens that are sampled from.
    """
    advantage = normalized_by_origin(epsilon)
    transforms = [imitate_controllers(target, threshold, max_samples)]
    return Recipe(
        objective=clipped_objective(
            clip_low, clip_high, advantage=advantage, transforms=transforms, dual_clip=dual_clip
        ),
        experience=experience(
            draw=plain(top_p=top_p),
            stages=[draw_controllers(target, high, low, fraction, threshold, max_samples, epsilon)],
        ),
    )


METHOD = Method(
    arbitrary_entropy,
    changes="sampling, advantage, mask",
    shown=Shown("brackets", "controllers"),
)
