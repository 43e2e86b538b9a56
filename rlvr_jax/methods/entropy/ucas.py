"""UCAS: larger advantages for uncertain successes and certain errors; sharp tokens are penalized.

"Unlocking Exploration in RLVR: Uncertainty-aware Advantage Shaping for Deeper Reasoning",
https://github.com/xvolcano02/UCAS

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    c_i  = Σ_t (log Σ exp z - mean z), ĉ_i the same standardized in the group
    W_i  = exp(-β₊ ĉ_i) where A_i > 0, exp(β₋ ĉ_i) elsewhere
    A'_t = A_i W_i - c x_t, at least 0 where A_i > 0
    loss = Σ max(-A' ρ, -A' clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

The logits z are those of the policy that sampled, at its temperature. The term x_t is the raw logit
of the sampled token, min-max over the batch. Constants are hard-coded in the authors' code. In a
group of one, A = ĉ = 0; the authors' code takes mean 0 and std 1.

Left out: the authors' option of Dr. GRPO, without both divisions by std.
Reports: Qwen2.5-Math 1.5B and 7B, five maths sets: above GRPO, DAPO and entropy methods; responses
are longer and more diverse (no numbers).
Traps: Certainty is a sum, so certain means long. Groups of equal rewards get the advantage -c x,
also correct ones. Raw logits may differ for one policy. Advantages do not sum to 0.
"""

import jax.numpy as jnp

from rlvr_jax.objectives import Transform, clipped_objective, has_tokens, part, self_certainty
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.objectives.statistics.scopes import min_max, within_batch, within_group, z_score
from rlvr_jax.types import LOSS_ON_BRACKETS, Mask, Method, Recipe, Rollouts, Rows, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Finite

EPSILON = 1e-6
"""Added to the standard deviation of the certainty, and to the range of the logits."""


@part(
    reads={"old_logsumexp", "old_mean_logit", "batch_statistics"}, writes={"advantage"}, once=True
)
def scale_by_certainty(positive: Finite, negative: Finite) -> Transform:
    """Raises the advantage of uncertain correct rollouts and certain errors: A' = A W.

    ĉ is the `standardized_certainty` of the sum of `self_certainty` over the rollout's tokens. A
    sum, not a mean: within a group "certain" largely means "long".

    Metrics: certainty_weight (mean of the factor W over the tokens).
    """

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        certainty = self_certainty(
            rollouts.records["old_logsumexp"], rollouts.records["old_mean_logit"]
        )
        total = masked_sum(certainty, mask, axis=1)
        score = standardized_certainty(total, mask, rollouts)[:, None]
        exponent = jnp.where(signals.advantage > 0, -positive * score, negative * score)
        weight = jnp.exp(exponent)
        metrics = {"certainty_weight": masked_mean(weight, mask)}
        return replace(signals, advantage=signals.advantage * weight), state, metrics

    return apply


def standardized_certainty(certainty: Rows, mask: Mask, rollouts: Rollouts) -> Rows:
    """(c - mean) / (std + 1e-6) over the rollouts of the group, n - 1; 0 for a group of one.

    A row without tokens has no certainty: it is not compared and has 0.
    """
    written = has_tokens(mask)[:, None]
    sets = within_group(rollouts)
    return z_score(certainty[:, None], written, sets, ddof=1, epsilon=EPSILON)[:, 0]


@part(reads={"logp", "old_logsumexp", "batch_statistics"}, writes={"advantage"}, once=True)
def charge_sampled_logit(coefficient: Finite) -> Transform:
    """Charges sharp tokens: A' = A - c x, at least 0 where A was positive.

    x is the min-max over the batch of T (old_logp + old_logsumexp). This is the sampled token's
    logit under the old policy before the temperature; x is 1/2 everywhere if all are equal. It
    changes with a constant that is added to all logits, so two models of one policy may differ in
    it. Rollouts of advantage 0 get a negative one.
    """

    def apply(signals, context, state):
        rollouts, mask, advantage = context.rollouts, signals.mask, signals.advantage
        logit = rollouts.temperature * (context.old_logp + rollouts.records["old_logsumexp"])
        sharpness = min_max(logit, mask, within_batch(rollouts), EPSILON, equal=0.5)
        charged = advantage - coefficient * sharpness
        floored = jnp.where(advantage > 0, jnp.maximum(charged, 0), charged)
        return replace(signals, advantage=jnp.where(mask, floored, 0)), state, {}

    return apply


def ucas(
    positive_rate: Finite = 0.25,
    negative_rate: Finite = 0.35,
    logit_coefficient: Finite = 0.05,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
) -> Recipe:
    """Shapes GRPO's advantages by self-certainty, with a penalty on raw logits.

    Args:
      positive_rate, negative_rate: strength of the certainty for either sign (β₊, β₋).
      logit_coefficient: charge of the sharpest token of the batch (c).
    """
    transforms = [
        scale_by_certainty(positive_rate, negative_rate),
        charge_sampled_logit(logit_coefficient),
    ]
    return Recipe(objective=clipped_objective(clip_low, clip_high, transforms=transforms))


METHOD = Method(ucas, changes="advantage", baseline="other", shown=LOSS_ON_BRACKETS)
