"""A pull of right answers towards the policy at another temperature, steered by the entropy."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import group_has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Finite, HalfWidth, Positive
from rlvr_jax.types.parts import part

__all__ = [
    "EntropyEstimate",
    "mix_in_tempered_policy",
    "mixture_weight",
    "target_temperature",
    "tempered_ratio",
]


class EntropyEstimate(NamedTuple):
    """State of `mix_in_tempered_policy`: -mean old_logp of the last batch, nats; 0 at first."""

    entropy: Float[Array, ""]


def target_temperature(
    entropy: Float[Array, ""], target: float, hot: ArrayLike, cold: ArrayLike
) -> Float[Array, "..."]:
    """T = hot if H ≤ H₀, else cold; also chooses between arrays measured at the two."""
    return jnp.where(entropy <= target, hot, cold)


def tempered_ratio(
    tempered_logp: Float[Array, "B T"], old_logp: Float[Array, "B T"], mask: Bool[Array, "B T"]
) -> Float[Array, "B T"]:
    """π_old at T times its temperature over π_old, of the sampled tokens; 0 off the mask."""
    return jnp.where(mask, jnp.exp(jnp.where(mask, tempered_logp - old_logp, 0)), 0)


def mixture_weight(
    entropy: Float[Array, ""],
    target: float,
    good: Bool[Array, "B"],
    where: Bool[Array, "B"],
    cap: float,
) -> Float[Array, ""]:
    """α / (1 + α) with α = min(|H₀ - H|, cap) / share of good rollouts; 0 if there is none.

    Args:
      entropy, target: H and H₀, nats.
      good: the rollouts that are pulled.
      where: the rollouts of which they are a share.
      cap: largest distance that counts, nats; inf for none.
    """
    share = masked_mean(good, where).astype(entropy.dtype)
    gap = jnp.minimum(jnp.abs(target - entropy), cap)
    raw = gap / jnp.where(share > 0, share, 1)
    return jnp.where(share > 0, raw / (1 + raw), 0)


@part(writes={"advantage"})
def mix_in_tempered_policy(
    target: Finite, hot: Positive, cold: Positive, threshold: Finite, cap: HalfWidth
) -> Transform:
    """Gives right answers the credit of a hotter or a colder policy: A' = (1 - α) A + α good ρ_T.

    ρ_T is the `tempered_ratio` at the `target_temperature`, α the `mixture_weight`, and good are
    the rollouts whose outcome is above the threshold. H is -mean old_logp of the batch of the last
    update, 0 at the first; a batch without tokens leaves it. Groups that are all right do not stay
    at 0.

    Args:
      target: wanted entropy H₀, nats.
      hot, cold: T for an entropy that is too low, and too high; factors on the temperature of the
        rollouts, which is 1 in the authors' runs.
      threshold: outcome above which a rollout is good.
      cap: largest |H₀ - H| that counts, nats; inf for none.
    Reads: advantage, outcome, old_logp, old_tempered_logp (at hot and cold), mask. Writes:
      advantage. Metrics: last_entropy_estimate, mixture_weight.
    Raises:
      ValueError: a temperature that is not positive, a target or threshold that is not finite, or
        a negative cap.
    Source: DCPO, https://github.com/597358816/DCPO.
    """

    def init(spec):
        del spec
        return EntropyEstimate(jnp.zeros((), float))

    def apply(signals, context, state):
        mask, rollouts = signals.mask, context.rollouts
        entropy = state.entropy.astype(signals.advantage.dtype)
        good = rollouts.outcome > threshold
        counted = group_has_tokens(mask, rollouts.group)
        weight = mixture_weight(entropy, target, good, counted, cap)
        hotter, colder = rollouts.old_tempered_logp[..., 0], rollouts.old_tempered_logp[..., 1]
        tempered = target_temperature(entropy, target, hotter, colder)
        ratio = tempered_ratio(tempered, context.old_logp, mask)
        advantage = (1 - weight) * signals.advantage + weight * jnp.where(good[:, None], ratio, 0)
        measured = -masked_mean(context.old_logp, mask).astype(state.entropy.dtype)
        state = EntropyEstimate(jnp.where(jnp.any(mask), measured, state.entropy))
        metrics = {"last_entropy_estimate": entropy, "mixture_weight": weight}
        return replace(signals, advantage=advantage), state, metrics

    reads = frozenset({"logp", "old_tempered_logp"})
    records = (("old_tempered_logp", (float(hot), float(cold))),)
    return Transform(apply, init=init, reads=reads, once=True, records=records)
