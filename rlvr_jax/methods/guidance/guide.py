"""Guide-GRPO: responses with a hint teach the policy to answer without it.

"Adaptive Guidance Accelerates Reinforcement Learning of Reasoning Models",
https://github.com/vaskar-open-source-research/guide_rl

    groups of pass rate ≤ 0.001 are sampled again with a hint
    groups of a pass rate outside (0.001, 0.999) are dropped, further prompts fill the batch
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    plain row:   max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε))
    hinted row:  -A s,  s = r / (r + γ_i),  r = π(o_t | plain prompt) / π_old(o_t | with the hint)
    loss = mean_i (1/n_i) Σ_t

r is a true ratio between two contexts. It is not 1 in the first update, and it is never clipped.
The scale γ_i is the 0.9-quantile of r over the tokens of the row, at least 1e-4, without gradient.
The released script processes one row at a time, so its loss is the mean over rows. Its quantile
includes padding; here it is over response tokens. The hint is part of the worked solution.

Left out: other forms of the shaped ratio (a constant γ, a power).
Reports: 7B and 32B: up to about 4 % over GRPO and filtered baselines on the macro mean of maths
sets.
Traps: Old log-probs of hinted rows are those with the hint. Groups that fail again are dropped.
With the released quantile, γ is near 1 on short rows.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rlvr_jax.experience import PLAIN, experience, outside, redraw, refill
from rlvr_jax.experience.views import hint
from rlvr_jax.objectives import (
    by_origin,
    group_normalized,
    objective,
    ppo_clip,
    rollout_mean_token_mean,
)
from rlvr_jax.objectives.algebra.parts import Context, Surrogate
from rlvr_jax.objectives.statistics.ratios import token_ratio
from rlvr_jax.objectives.statistics.scopes import scoped_quantile, within_response
from rlvr_jax.objectives.surrogates.by_origin import foreign_tokens
from rlvr_jax.objectives.surrogates.policy_gradient import unclipped_loss
from rlvr_jax.types import Function, Method, Recipe, Shown, part, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, Finite, Positive, Unit


@part
def mean_at_most(bound: Finite) -> Function:
    """Groups with graded responses whose mean outcome is at most a bound."""

    def low(outcomes):
        number = (~np.isnan(outcomes)).sum(axis=1)
        return (number > 0) & (np.nansum(outcomes, axis=1) <= bound * number)

    return low


Scale = Callable[[Float[Array, "B T"], Context], Float[Array, "..."]]
"""(ratio [B, T], context) -> γ > 0, of a shape that broadcasts against the ratio."""


@part
def shaped_ratio(scale: Scale) -> Surrogate:
    """-A s, s = ρ / (ρ + γ): for tokens whose old log-probs are those of another prompt.

    s is below 1 and nothing is clipped. Gradient flows through ρ above and below. The gradient
    ρ γ / (ρ + γ)² is largest where ρ = γ, so tokens that the plain prompt makes much less likely
    still have one.

    Args:
      scale: γ, such as `quantile_scale(0.9, 1e-4)`.
    """

    def prepare(signals, context):
        ratio = token_ratio(context.stats.logp, context.old_logp, signals.mask)
        return replace(signals, ratio=ratio / (ratio + scale(ratio, context)))

    return Surrogate(prepare, unclipped_loss)


@part
def quantile_scale(fraction: Unit, least: Positive) -> Function:
    """γ_i = max(quantile of the ratios of a response's foreign tokens, least), without gradient."""

    def scale(ratio, context):
        rollouts = context.rollouts
        foreign = rollouts.mask & foreign_tokens(rollouts)
        quantile = scoped_quantile(ratio, foreign, within_response(rollouts), fraction)
        return jax.lax.stop_gradient(jnp.maximum(quantile, least))

    return scale


def guide(
    quantile: Unit = 0.9,
    least_scale: Positive = 1e-4,
    low: Finite = 0.001,
    high: Finite = 0.999,
    max_rounds: Count = 10,
    hint_fraction: Unit = 0.5,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Applies GRPO to plain rows and a shaped ratio to rows that were sampled with a hint.

    Args:
      quantile: quantile of a hinted row's ratios at which the gradient is largest (γ_i).
      least_scale: lower bound of γ_i.
      low, high: pass rates. A group up to `low` is sampled again with a hint. Only groups strictly
        between them are trained on.
      max_rounds: maximum number of batches to fill one update.
      hint_fraction: fraction of the worked solution that a hint shows.
    """
    hinted = redraw(mean_at_most(low), hint(hint_fraction), trained=PLAIN)
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=by_origin(
                own=ppo_clip(clip_low, clip_high),
                foreign=shaped_ratio(quantile_scale(quantile, least_scale)),
            ),
            aggregation=rollout_mean_token_mean(),
        ),
        experience=experience(stages=[refill(outside(low, high), max_rounds, [hinted])]),
    )


METHOD = Method(
    guide,
    changes="surrogate, sampling, selection, guidance",
    gradient="stopped",
    ratio="other",
    shown=Shown("hinted_brackets", "experience/redrawn_fraction", steps=300),
)
