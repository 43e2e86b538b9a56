"""DCPO: pull right answers towards a hotter or a colder policy, as the entropy asks.

"Distribution-Centric Policy Optimization Dominates Exploration-Exploitation Trade-off",
https://github.com/597358816/DCPO

    A_i   = (R_i - mean) / (std + 1e-6), std with n - 1
    T     = T_hot if H ≤ H₀ else T_cold;  ρ_T = π_old at T / π_old, of the sampled token
    a     = min(|H₀ - H|, cap) / share of good rollouts;  α = a / (1 + a)
    A'_it = (1 - α) A_i + α 1[outcome_i > threshold] ρ_T
    l_t   = max(-A' ρ, -A' clip(ρ, 1 - ε, 1 + ε)), at most -c A' where A' < 0
    loss  = Σ l_t / Σ n_i

H is -mean old_logp of the last update's batch, 0 at first. Constants are those of the authors' code
and script; the best row of their table has H₀ = 0.25. Without a good rollout α is 0 here; the code
divides by 0. Their README writes the pull as a separate term.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.groups import group_has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, DualClip, Finite, HalfWidth, Positive
from rlvr_jax.types.parts import part


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
    Metrics: last_entropy_estimate, mixture_weight.
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


def dcpo(
    entropy_target: float = 0.5,
    temperature_high: float = 1.2,
    temperature_low: float = 0.8,
    outcome_threshold: float = 0.05,
    gap_cap: float = 0.1,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    dual_clip: DualClip = 3.0,
) -> Recipe:
    """GRPO's advantages mixed with the ratio to a tempered policy, on a dual clip.

    Args:
      entropy_target: nats (H₀).
      temperature_high, temperature_low: of the target policy (T_hot, T_cold), in units of the
        sampler's.
      outcome_threshold: above which a rollout is good.
      gap_cap: largest distance from the target that counts, nats.
    """
    pull = mix_in_tempered_policy(
        entropy_target, temperature_high, temperature_low, outcome_threshold, gap_cap
    )
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, transforms=[pull], dual_clip=dual_clip
        )
    )


METHOD = Method(
    dcpo,
    "Distribution-Centric Policy Optimization Dominates Exploration-Exploitation Trade-off",
    "https://github.com/597358816/DCPO",
    changes="advantage, surrogate",
    baseline="other",
    left_out="sampling with top-p 0.99",
    reports=(
        "mean of 7 benchmarks over GRPO: Qwen2.5-7B 47.70 to 50.94, Qwen2.5-Math-7B 51.60 to "
        "55.77, Qwen3-4B 44.63 to 46.41"
    ),
    traps=(
        "a format reward above 0.05 makes a row good; ρ_T has no bound for rare tokens; H is -logp "
        "of drawn tokens; all-right groups are trained too; H₀ = 0.25 did best, the script has 0.5"
    ),
)
