"""Guide-GRPO: what the policy answers with a hint teaches it to answer without.

"Adaptive Guidance Accelerates Reinforcement Learning of Reasoning Models",
https://github.com/vaskar-open-source-research/guide_rl

    groups of pass rate ≤ 0.001 are drawn again with a hint
    groups of a pass rate outside (0.001, 0.999) are dropped, further prompts fill the batch
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    plain row:   max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε))
    hinted row:  -A s,  s = r / (r + γ_i),  r = π(o_t | plain prompt) / π_old(o_t | with the hint)
    loss = mean_i (1/n_i) Σ_t

r is a true ratio between two contexts, so it is not 1 in the first update, and it is never clipped;
γ_i is the 0.9-quantile of r over the tokens of the row, 1e-4 at least, without gradient. The
released script sees one row at a time, from which the mean over rows comes, and takes the quantile
over padding, too; we over response tokens. One γ for all hinted tokens is
`quantile_scale(0.9, 1e-4, within_batch)`. The hint is the first part of the worked solution.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

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
from rlvr_jax.objectives.statistics.scopes import Scope, scoped_quantile, within_response
from rlvr_jax.objectives.surrogates.by_origin import foreign_tokens
from rlvr_jax.objectives.surrogates.foreign_ratios import unclipped_loss
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, Finite, Positive, Unit
from rlvr_jax.types.parts import Function, part
from rlvr_jax.types.rollouts import Rollouts


@part
def mean_at_most(bound: Finite) -> Function:
    """Groups with verdicts whose mean outcome is at most a bound.

    Args:
      bound: a number.
    """

    def low(outcomes):
        number = (~np.isnan(outcomes)).sum(axis=1)
        return (number > 0) & (np.nansum(outcomes, axis=1) <= bound * number)

    return low


Scale = Callable[[Float[Array, "B T"], Context], Float[Array, "..."]]
"""(ratio [B, T], context) -> γ > 0, in a shape that broadcasts against the ratio."""


@part
def quantile_scale(
    fraction: Unit,
    least: Positive,
    scope: Scope = within_response,
    where: Callable[[Rollouts], Bool[Array, "B T"]] = foreign_tokens,
) -> Function:
    """γ = max(quantile of the ratios of foreign tokens, least), without gradient.

    Args:
      fraction: of the quantile, in [0, 1].
      least: positive.
      scope: whose tokens are compared: those of each response, or of the batch.
      where: which tokens are foreign.
    """

    def scale(ratio, context):
        rollouts = context.rollouts
        there = rollouts.mask & where(rollouts)
        found = scoped_quantile(ratio, there, scope(rollouts), fraction)
        return jax.lax.stop_gradient(jnp.maximum(found, least))

    return scale


@part
def shaped_ratio(scale: Scale) -> Surrogate:
    """-A s, s = ρ / (ρ + γ): for tokens whose old log-probs are those of another prompt.

    s is below 1 and nothing is clipped; its gradient ρ γ / (ρ + γ)² is largest where ρ = γ, so
    tokens that the prompt makes much less likely still teach something. Gradient flows through ρ
    above and below.

    Args:
      scale: γ, such as `quantile_scale(0.9, 1e-4)`.
    """

    def prepare(signals, context):
        ratio = token_ratio(context.stats.logp, context.old_logp, signals.mask)
        return replace(signals, ratio=ratio / (ratio + scale(ratio, context)))

    return Surrogate(prepare, unclipped_loss)


def guide(
    quantile: float = 0.9,
    least_scale: float = 1e-4,
    low: float = 0.001,
    high: float = 0.999,
    max_rounds: int = 10,
    hint_fraction: float = 0.5,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on plain rows, a shaped ratio across prompts on rows that were drawn with a hint.

    Args:
      quantile, least_scale: of the ratios of a hinted row, which is where it learns most (γ_i).
      low, high: pass rates; up to `low` a group is asked again with a hint, and only groups
        strictly between them are learned from.
      max_rounds: batches that are drawn at most to fill one update.
      hint_fraction: of the worked solution that a hint shows.
    """
    hinted = redraw(mean_at_most(low), hint(hint_fraction), trained=PLAIN)
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=by_origin(
                own=ppo_clip(low=clip_low, high=clip_high),
                foreign=shaped_ratio(quantile_scale(quantile, least_scale)),
            ),
            aggregation=rollout_mean_token_mean(),
        ),
        experience=experience(stages=[refill(outside(low, high), max_rounds, [hinted])]),
    )


METHOD = Method(
    guide,
    "Adaptive Guidance Accelerates Reinforcement Learning of Reasoning Models",
    "https://github.com/vaskar-open-source-research/guide_rl",
    changes="surrogate, sampling, selection, guidance",
    gradient="stopped",
    ratio="other",
    left_out="other forms of the shaped ratio (a constant γ, a power)",
    reports=(
        "7B and 32B: up to about 4 % over GRPO and filtered baselines on the macro mean of maths "
        "benchmarks"
    ),
    traps=(
        "old log-probs of hinted rows are those with the hint; groups that stay all wrong are "
        "dropped; the released quantile counts padding, which draws γ to 1 on short rows"
    ),
)
