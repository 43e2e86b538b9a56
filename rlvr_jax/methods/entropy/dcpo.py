"""DCPO: moves correct responses towards a hotter or a colder policy, depending on the entropy.

"Distribution-Centric Policy Optimization Dominates Exploration-Exploitation Trade-off",
https://github.com/597358816/DCPO

    A_i   = (R_i - mean) / (std + 1e-6), std with n - 1
    T     = T_hot if H ≤ H₀ else T_cold;  ρ_T = π_old at T / π_old, of the sampled token
    a     = min(|H₀ - H|, cap) / fraction of good rollouts;  α = a / (1 + a)
    A'_it = (1 - α) A_i + α 1[outcome_i > threshold] ρ_T
    l_t   = max(-A' ρ, -A' clip(ρ, 1 - ε, 1 + ε)), at most -c A' where A' < 0
    loss  = Σ l_t / Σ n_i

H is -mean old_logp of the last update's batch, 0 at first. H₀ is `entropy_target`, cap `gap_cap`.
Constants are those of the authors' code and script. Without a good rollout, α is 0; the authors'
code divides by 0. The authors' README writes the term of ρ_T as a separate loss.

Left out: sampling with top-p 0.99.
Reports: mean of 7 benchmarks over GRPO in %: Qwen2.5-7B 47.70 to 50.94, Qwen2.5-Math-7B 51.60 to
55.77, Qwen3-4B 44.63 to 46.41.
Traps: A format reward above 0.05 makes a row good. ρ_T has no bound for rare tokens. H is -logp of
sampled tokens. All-correct groups also train. H₀ = 0.25 is their best value; the script has 0.5.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives import Transform, clipped_objective, group_has_tokens, masked_mean, part
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe, RowMask, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, DualClip, Finite, HalfWidth, Positive


class EntropyEstimate(NamedTuple):
    """State of `mix_in_tempered_policy`: -mean old_logp of the last batch, nats; 0 at first."""

    entropy: Float[Array, ""]


@part(reads={"logp", "old_tempered_logp"}, writes={"advantage"}, once=True)
def mix_in_tempered_policy(
    target: Finite, hot: Positive, cold: Positive, threshold: Finite, cap: HalfWidth
) -> Transform:
    """Gives correct responses the credit of a tempered policy: A' = (1 - α) A + α good ρ_T.

    ρ_T is that of T = hot for an entropy up to H₀, of T = cold above. α is the `mixture_weight`. A
    rollout is good if its outcome is above the threshold. A batch without tokens leaves the
    estimate H. Groups that are all correct do not stay at 0.

    Args:
      target: target of the entropy, nats (H₀).
      hot, cold: temperatures T of the tempered policy, in units of the sampler's.
      threshold: outcome above which a rollout is good.
      cap: largest distance to the target that counts, nats; inf: no bound.
    Metrics: last_entropy_estimate (H of the last update, nats), mixture_weight (weight of the
      tempered policy).
    """

    def apply(signals, context, state):
        mask, rollouts, old_logp = signals.mask, context.rollouts, context.old_logp
        entropy = state.entropy.astype(signals.advantage.dtype)
        good = rollouts.outcome > threshold
        counted = group_has_tokens(mask, rollouts.group)
        weight = mixture_weight(entropy, target, good, counted, cap)
        hotter, colder = (
            rollouts.records["old_tempered_logp"][..., 0],
            rollouts.records["old_tempered_logp"][..., 1],
        )
        tempered_logp = jnp.where(entropy <= target, hotter, colder)
        ratio = jnp.exp(jnp.where(mask, tempered_logp - old_logp, 0))
        pull = jnp.where(mask & good[:, None], ratio, 0)
        advantage = (1 - weight) * signals.advantage + weight * pull
        measured = -masked_mean(old_logp, mask).astype(state.entropy.dtype)
        state = EntropyEstimate(jnp.where(jnp.any(mask), measured, state.entropy))
        metrics = {"last_entropy_estimate": entropy, "mixture_weight": weight}
        return replace(signals, advantage=advantage), state, metrics

    return Transform(
        apply,
        init=lambda spec: EntropyEstimate(jnp.zeros((), float)),
        records=(("old_tempered_logp", (hot, cold)),),
    )


def mixture_weight(
    entropy: Float[Array, ""], target: float, good: RowMask, where: RowMask, cap: float
) -> Float[Array, ""]:
    """α = a / (1 + a) with a = min(|H₀ - H|, cap) / fraction of good rollouts; 0 if there is none.

    Args:
      entropy, target: H and H₀, nats.
      good: rollouts with an outcome above the threshold, bool [B].
      where: the rollouts of which the good ones are a fraction.
      cap: largest distance to the target that counts, nats.
    """
    fraction = masked_mean(good, where).astype(entropy.dtype)
    gap = jnp.minimum(jnp.abs(target - entropy), cap)
    raw = gap / jnp.where(fraction > 0, fraction, 1)
    return jnp.where(fraction > 0, raw / (1 + raw), 0)


def dcpo(
    entropy_target: Finite = 0.5,
    temperature_high: Positive = 1.2,
    temperature_low: Positive = 0.8,
    outcome_threshold: Finite = 0.05,
    gap_cap: HalfWidth = 0.1,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    dual_clip: DualClip = 3.0,
) -> Recipe:
    """Mixes GRPO's advantages with the ratio to a tempered policy, with a dual clip.

    Args:
      entropy_target: target of the entropy, nats (H₀).
      temperature_high, temperature_low: of the target policy (T_hot, T_cold), in units of the
        sampler's, which is 1 in the authors' runs.
      outcome_threshold: outcome above which a rollout is good.
      gap_cap: largest distance from the target that counts, nats; inf for none.
    """
    pull = mix_in_tempered_policy(
        entropy_target, temperature_high, temperature_low, outcome_threshold, gap_cap
    )
    return Recipe(clipped_objective(clip_low, clip_high, transforms=[pull], dual_clip=dual_clip))


METHOD = Method(dcpo, changes="advantage, surrogate", baseline="other", shown=LOSS_ON_BRACKETS)
