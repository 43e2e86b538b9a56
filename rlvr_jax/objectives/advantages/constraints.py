"""Rewards under constraints: what judges reject earns nothing, what is far away earns less.

A row is feasible if all judges of its task accept it: columns of `component_rewards`, verdicts of 0
or 1, NaN where the judge does not apply. Rows marked `off_policy` are the reference responses of
their prompts, and candidates like the others; rows without tokens are no candidates.
Source: "The Perfect Blend: Redefining RLHF with Mixture of Judges".
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.regularizers.preferences import log_ratio_sum
from rlvr_jax.objectives.statistics.group_order import group_rank
from rlvr_jax.objectives.statistics.groups import group_count, group_mean, group_sum, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.types import Rollouts, replace
from rlvr_jax.types.hyperparameters import Bound, NonNegative, Positive
from rlvr_jax.types.parts import part

__all__ = [
    "ConstrainedReward",
    "Judges",
    "best_of_group",
    "constrained_advantage",
    "constrained_reward",
    "feasible_imitation",
    "feasible_imitation_choice",
    "feasible_preference",
    "feasible_preference_choice",
    "kl_budgeted_reward",
]

Judges = tuple[int, ...]
NEEDS = frozenset({"logp", "reference_logp", "off_policy", "component_rewards"})


class ConstrainedReward(NamedTuple):
    """Rewards of the rows of a batch, each [B].

    Fields:
      calibrated: σ(r - r(ā)), in (0, 1): comparable over prompts.
      feasible: bool, whether all judges that apply accept.
      constrained: the calibrated reward, 0 where infeasible.
    """

    calibrated: Float[Array, "B"]
    feasible: Bool[Array, "B"]
    constrained: Float[Array, "B"]


def constrained_reward(rollouts: Rollouts, judges: Judges) -> ConstrainedReward:
    """Calibrates the rewards by the reference response ā of the prompt, and asks the judges.

    A prompt without a reference response is calibrated by r(ā) = 0.

    Args:
      rollouts: reward, group, off_policy and component_rewards are read.
      judges: columns of `component_rewards` that are verdicts.
    Raises:
      ValueError: no judge, or one that is no column.
    """
    columns = rollouts.component_rewards.shape[1]
    if not judges or not all(0 <= judge < columns for judge in judges):
        raise ValueError(
            f"constrained_reward: judges must be among the {columns} columns of component_rewards,"
            f" got {tuple(judges)}"
        )
    reference = group_mean(rollouts.reward, rollouts.group, where=rollouts.off_policy)
    calibrated = jax.nn.sigmoid(rollouts.reward - reference)
    verdict = rollouts.component_rewards[:, list(judges)]
    feasible = jnp.all((verdict > 0.5) | jnp.isnan(verdict), axis=1)
    return ConstrainedReward(calibrated, feasible, jnp.where(feasible, calibrated, 0))


def kl_budgeted_reward(
    reward: Float[Array, "B"], log_ratio: Float[Array, "B"], kl_max: float
) -> Float[Array, "B"]:
    """max(1 - log(π / π_ref) / KL_max, 0) · R: nothing is earned beyond the budget.

    Below the reference's likelihood the factor exceeds 1, without bound.

    Args:
      log_ratio: of whole responses, nats.
      kl_max: the budget, nats per response.
    """
    return jnp.maximum(1 - log_ratio / kl_max, 0) * reward


@part(reads=NEEDS | {"batch_statistics"}, writes={"advantage"})
def constrained_advantage(kl_max: Bound, judges: Judges = (1,)) -> Transform:
    """A_i = R̃_i - mean over the batch, R̃ the `kl_budgeted_reward` of the constrained one (CRPG).

    The baseline is that of the rows of the batch with tokens: groups of equal rewards are pushed
    too.

    Args:
      kl_max: budget of log(π / π_ref), nats per response; positive.
      judges: columns of `component_rewards`.
    Reads: logp, reference_logp, reward, group, off_policy, component_rewards. Writes: advantage.
    Metrics: feasible_share (of the rows with tokens).
    Raises:
      ValueError: kl_max not positive.
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        given = constrained_reward(rollouts, judges)
        reward = kl_budgeted_reward(given.constrained, _log_ratio(context), kl_max)
        written = has_tokens(signals.mask)
        advantage = jax.lax.stop_gradient(reward - masked_mean(reward, written))[:, None]
        signals = replace(signals, advantage=jnp.where(signals.mask, advantage, 0))
        return signals, state, {"feasible_share": masked_mean(given.feasible, written)}

    return apply


def best_of_group(
    values: Float[Array, "B"],
    group: Int[Array, "B"],
    where: Bool[Array, "B"],
    rollout_id: Int[Array, "B"],
) -> Bool[Array, "B"]:
    """The row of largest value in each group, of those that count; the smallest id of equals.

    Args:
      where: rows that count; groups without any have no best row.
    """
    return where & (group_rank(jnp.where(where, -values, jnp.inf), group, rollout_id) == 0)


def feasible_preference_choice(
    given: ConstrainedReward, rollouts: Rollouts
) -> tuple[Bool[Array, "B"], Bool[Array, "B"]]:
    """The best feasible and the worst infeasible row of each group, of those with tokens.

    Without an infeasible row the worst of all; groups without a feasible row have neither.
    """
    group, rollout_id = rollouts.group, rollouts.rollout_id
    written = has_tokens(rollouts.mask)
    better = best_of_group(given.calibrated, group, written & given.feasible, rollout_id)
    takes_part = written & (group_count(group, better) > 0)
    rejected = group_count(group, written & ~given.feasible) > 0
    candidates = takes_part & (~given.feasible | ~rejected)
    return better, best_of_group(-given.calibrated, group, candidates, rollout_id)


@part(reads=NEEDS | {"batch_statistics"}, writes={"term"})
def feasible_preference(
    scale: Positive, likelihood_coefficient: NonNegative, judges: Judges = (1,)
) -> Transform:
    """Adds the mean over prompts of -log σ(β (Δ⁺ - Δ⁻)) - λ logp⁺ / length⁺ (CODPO).

    Δ is log(π / π_ref) of the rows of `feasible_preference_choice`.

    Args:
      scale: β, positive.
      likelihood_coefficient: λ, at least 0.
      judges: columns of `component_rewards`.
    Reads: logp, reference_logp, reward, group, off_policy, component_rewards. Writes: term.
    Metrics: none.
    Raises:
      ValueError: scale not positive, or a negative likelihood_coefficient.
    """

    def apply(signals, context, state):
        rollouts, group = context.rollouts, context.rollouts.group
        given = constrained_reward(rollouts, judges)
        better, worse = feasible_preference_choice(given, rollouts)
        log_ratio = _log_ratio(context)
        # At the better row; `where` in the sums takes the other rows out.
        margin = log_ratio - group_sum(log_ratio, group, worse)
        likelihood = masked_mean(context.stats.logp, rollouts.mask, axis=1)
        loss = -jax.nn.log_sigmoid(scale * margin) - likelihood_coefficient * likelihood
        return replace(signals, term=signals.term + masked_mean(loss, better)), state, {}

    return apply


def feasible_imitation_choice(
    given: ConstrainedReward, log_ratio: Float[Array, "B"], rollouts: Rollouts, kl_max: float
) -> Bool[Array, "B"]:
    """The best feasible row within the KL budget of each group, else its feasible reference row.

    Rows without tokens are neither.
    """
    group, feasible = rollouts.group, given.feasible & has_tokens(rollouts.mask)
    near = feasible & (log_ratio <= kl_max)
    nothing = group_count(group, near) == 0
    candidates = jnp.where(nothing, feasible & rollouts.off_policy, near)
    return best_of_group(given.calibrated, group, candidates, rollouts.rollout_id)


@part(reads=NEEDS | {"batch_statistics"}, writes={"term"})
def feasible_imitation(kl_max: Bound, judges: Judges = (1,)) -> Transform:
    """Adds the mean over prompts of -R_c(a*) Σ_t logp of the best acceptable row (CRRAFT).

    Args:
      kl_max: budget of log(π / π_ref), nats per response; positive.
      judges: columns of `component_rewards`.
    Reads: logp, reference_logp, reward, group, off_policy, component_rewards. Writes: term.
    Metrics: none.
    Raises:
      ValueError: kl_max not positive.
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        given = constrained_reward(rollouts, judges)
        log_ratio = jax.lax.stop_gradient(_log_ratio(context))
        best = feasible_imitation_choice(given, log_ratio, rollouts, kl_max)
        loss = -given.calibrated * masked_sum(context.stats.logp, rollouts.mask, axis=1)
        return replace(signals, term=signals.term + masked_mean(loss, best)), state, {}

    return apply


def _log_ratio(context):
    rollouts = context.rollouts
    return log_ratio_sum(context.stats.logp, rollouts.reference_logp, rollouts.mask)
