"""A band of wanted entropies around what was seen at the same step of an episode."""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import has_tokens
from rlvr_jax.objectives.statistics.masked import masked_count, masked_mean, masked_sum
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Count, Finite, NonNegative, Range
from rlvr_jax.types.parts import part

__all__ = ["BandState", "band_penalty", "banded_entropy_bonus", "phase_weight", "step_entropy"]


class BandState(NamedTuple):
    """What was seen at each step of an episode.

    Fields:
      total: [S], sum over past updates of the mean entropy at the step, nats.
      count: [S], int, updates that had rows at the step.
      update: number of updates so far.
    """

    total: Float[Array, "S"]
    count: Int[Array, "S"]
    update: Int[Array, ""]


def step_entropy(
    entropy: Float[Array, "B T"], mask: Bool[Array, "B T"], env_step: Int[Array, "B"], steps: int
) -> tuple[Float[Array, "S"], Bool[Array, "S"]]:
    """Mean entropy of all tokens of the rows of each step of an episode, 0 where there are none.

    Args:
      entropy: nats.
      env_step: of each row; later ones count as the last.
      steps: S, longest episode.
    Returns:
      The means, and at which steps there are tokens.
    """
    env_step = jnp.clip(env_step, 0, steps - 1)
    total = jax.ops.segment_sum(masked_sum(entropy, mask, axis=1), env_step, num_segments=steps)
    count = jax.ops.segment_sum(masked_count(mask, axis=1), env_step, num_segments=steps)
    return total / jnp.maximum(count, 1).astype(total.dtype), count > 0


def phase_weight(
    epoch: Int[Array, "..."], max_epochs: int, dtype: DTypeLike = float
) -> Float[Array, "..."]:
    """1 - 0.2 (1 - e^(-2 p)) in the first half of training, 0.8 e^(-3 p') in the second.

    p and p' run from 0 to 1 over their half; it jumps from 0.827 to 0.8 in the middle.

    Args:
      epoch: up to `max_epochs`.
      max_epochs: at least 2.
    """
    half = max_epochs // 2
    epoch = jnp.asarray(epoch).astype(dtype)
    early = 1 - 0.2 * (1 - jnp.exp(-2 * epoch / half))
    late = 0.8 * jnp.exp(-3 * (epoch - half) / (max_epochs - half))
    return jnp.where(epoch <= half, early, late)


def band_penalty(
    entropy: Float[Array, "B T"],
    mask: Bool[Array, "B T"],
    env_step: Int[Array, "B"],
    state: BandState,
    *,
    low: float,
    high: float,
    size: float,
    per_rollout: bool = False,
    hinge: bool = False,
) -> Float[Array, "B T"]:
    """P: 0 where κ_l H̄_s < H < κ_r H̄_s, else a, with H̄_s the past mean at the row's step s.

    0 everywhere in a batch without a row of s ≥ ⌊S / 2⌋; else 1 everywhere before anything was
    seen, and 0 at steps that were never seen. It compares and so has no gradient. A hinge has one:
    outside the band it is a times the distance to it.

    Args:
      entropy: H, nats.
      env_step: s, of each row.
      state: of the past; S is its length.
      low, high: κ_l, κ_r.
      size: a.
      per_rollout: H is the mean over the tokens of the row instead of the token's own.
      hinge: ours; a is then per nat.
    """
    steps = state.count.shape[0]
    past = state.total.astype(entropy.dtype) / jnp.maximum(state.count, 1).astype(entropy.dtype)
    wanted, seen = past[env_step][:, None], (state.count > 0)[env_step][:, None]
    if per_rollout:
        own = jnp.broadcast_to(masked_mean(entropy, mask, axis=1)[:, None], mask.shape)
    else:
        own = entropy
    inside = (low * wanted < own) & (own < high * wanted)
    outside = jnp.asarray(size, entropy.dtype)
    if hinge:
        outside = size * jnp.where(own < high * wanted, low * wanted - own, own - high * wanted)
    penalty = jnp.where(seen & ~inside, outside, 0)
    late = jnp.any(has_tokens(mask) & (env_step >= steps // 2))
    return jnp.where(late, jnp.where(jnp.any(state.count > 0), penalty, 1), 0)


@part(writes={"penalty"})
def banded_entropy_bonus(
    coefficient: Finite,
    smooth: Finite = 1.0,
    low: float = 0.8,
    high: float = 1.2,
    size: NonNegative = 0.1,
    steps: Count = 50,
    max_epochs: Annotated[int, Range(2)] = 150,
    per_rollout: bool = False,
    hinge: bool = False,
) -> Transform:
    """An entropy bonus less a penalty outside the band: penalty' = penalty - λ (H - β w P).

    P is `band_penalty`, w the `phase_weight` with an epoch per update. Without a hinge P is a
    comparison: it changes the loss that is reported and no gradient, so that the update is that of
    `entropy_bonus(λ)`. With one it pulls entropies back to the band. The entropies of the sampler
    are remembered after they were compared with.

    Args:
      coefficient: λ.
      smooth: β.
      low, high, size, per_rollout, hinge: of `band_penalty`; the size at least 0.
      steps: S, longest episode; what comes later counts as its last step.
      max_epochs: of `phase_weight`; later updates keep the last weight.
    Reads: entropy, entropy of the rollouts, env_step. Writes: penalty.
    Metrics: band_penalty, the mean of P; band_weight, w.
    Raises:
      ValueError: low not below high, steps not positive, max_epochs below 2, coefficient or smooth
        not finite, or a negative size.
    Source: https://github.com/WujiangXu/EPO.
    """
    if not low < high:
        raise ValueError(f"banded_entropy_bonus: low must be below high {high}, got {low}")

    def init(spec):
        del spec
        none = jnp.zeros((), jnp.int32)
        return BandState(jnp.zeros(steps, float), jnp.zeros(steps, jnp.int32), none)

    def apply(signals, context, state):
        entropy, mask = context.stats.entropy, signals.mask
        env_step = jnp.clip(context.rollouts.env_step, 0, steps - 1)
        outside = band_penalty(
            entropy,
            mask,
            env_step,
            state,
            low=low,
            high=high,
            size=size,
            per_rollout=per_rollout,
            hinge=hinge,
        )
        weight = phase_weight(jnp.minimum(state.update, max_epochs), max_epochs, entropy.dtype)
        change = coefficient * (entropy - smooth * weight * outside)
        mean, there = step_entropy(context.rollouts.entropy, mask, env_step, steps)
        # It enters no loss that would show that it is no number.
        there = there & jnp.isfinite(mean)
        state = BandState(
            state.total + jnp.where(there, mean, 0).astype(state.total.dtype),
            state.count + there.astype(jnp.int32),
            state.update + jnp.any(mask).astype(jnp.int32),
        )
        metrics = {"band_penalty": masked_mean(outside, mask), "band_weight": weight}
        return replace(signals, penalty=signals.penalty - change), state, metrics

    return Transform(apply, init=init, reads={"entropy", "env_step", "sampled_entropy"})
