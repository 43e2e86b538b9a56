"""CGPO: rewards under constraints that judges check, with three optimizers.

"The Perfect Blend: Redefining RLHF with Mixture of Judges"

    R_c  = σ(r(a) - r(ā)), ā a reference response of the prompt;  R_cr = R_c if all judges accept
    CRPG:    R̃ = max(1 - log(π/π_ref) / KL_max, 0) R_cr, loss = -mean (R̃_i - mean R̃) Σ_t logp_it
    CODPO:   -log σ(β (Δ⁺ - Δ⁻)) - λ logp(a⁺) / |a⁺|, a⁺ best accepted, a⁻ worst rejected
    CRRAFT:  -R_c(a*) logp(a*), a* best accepted row with log-ratio up to KL_max

Δ is log(π / π_ref) of a response. KL_max, β and λ are `kl_max`, `scale` and
`likelihood_coefficient`. CODPO and CRRAFT are means over the prompts that take part. The ā are the
worked solutions of the prompts (`off_policy`). Judges are columns of `component_rewards`, the
task's or those of `--judge`. A judge without a grade does not apply. A row that no judge has graded
has no reward.

R̃ is 0 for rejected and for far responses alike. Its baseline is the batch's, so prompts where all
responses fail are trained as well. A reconstruction. Two equations of the paper have errors: the
sign of the likelihood term, and a ratio of logs for the log of a ratio. These are the consistent
readings. KL_max, β and λ are ours; the paper set them per task.

Left out: the authors' judges (use `--judge`); settings per task, as a run has one value; the DPO
warm-up, a run of `dpo_q`.
Reports: gains over PPO and DPO: 7.4 % on AlpacaEval-2 and 12.5 % on Arena-Hard. On HumanEval, PPO
exploited its reward (0.006); CRPG reached 0.76.
Traps: Numbers of `--judge` are the first columns (`judges=0`). A response less likely than under
the reference counts more than 1, without a bound. KL_max is in nats of a whole response, so long
responses use it up.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.experience import Shaping, add_traces, experience, part, shape, shaping
from rlvr_jax.experience.rewards.choice import first_of_largest
from rlvr_jax.objectives import Transform, log_ratio_sum, objective_of_terms, reinforce
from rlvr_jax.objectives.algebra.core import Objective, objective
from rlvr_jax.objectives.statistics.groups import group_count, group_mean, group_sum, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_sum
from rlvr_jax.types import Method, Recipe, Rollouts, Shown, replace
from rlvr_jax.types.hyperparameters import Bound, NonNegative, NonNegativeInt, Positive

Judges = Sequence[NonNegativeInt]
READS = frozenset({"logp", "reference_logp", "off_policy", "component_rewards", "batch_statistics"})


@part
def where_judged(columns: Judges) -> Shaping:
    """The reward, NaN for rows that no judge has graded: an unreachable judge accepts no row.

    Rows of worked solutions (`off_policy`) keep their reward, as others are compared with it.
    """
    if not columns:
        raise ValueError("where_judged: columns must be at least one, got none")

    def reward(rollouts):
        unknown = jnp.all(
            jnp.isnan(rollouts.records["component_rewards"][:, list(columns)]), axis=1
        )
        if "off_policy" in rollouts.records:
            unknown = unknown & ~rollouts.records["off_policy"]
        return jnp.where(unknown, jnp.nan, rollouts.reward)

    return shaping(reward, columns=max(columns) + 1)


class ConstrainedReward(NamedTuple):
    """Rewards of the rows of a batch.

    Fields:
      calibrated: R_c, in (0, 1), comparable over prompts.
      feasible: whether all judges that apply accept.
    """

    calibrated: Float[Array, "B"]
    feasible: Bool[Array, "B"]

    @property
    def constrained(self) -> Float[Array, "B"]:
        """R_cr, the calibrated reward, 0 where infeasible."""
        return jnp.where(self.feasible, self.calibrated, 0)


def constrained_reward(rollouts: Rollouts, judges: Judges) -> ConstrainedReward:
    """Calibrates the rewards by the reference response of the prompt, and applies the grades.

    Without a reference response r(ā) is 0.
    """
    columns = rollouts.records["component_rewards"].shape[1]
    if not judges or not all(0 <= judge < columns for judge in judges):
        raise ValueError(
            f"constrained_reward: judges must be among the {columns} columns of component_rewards,"
            f" got {tuple(judges)}"
        )
    reference = group_mean(rollouts.reward, rollouts.group, where=rollouts.records["off_policy"])
    calibrated = jax.nn.sigmoid(rollouts.reward - reference)
    verdict = rollouts.records["component_rewards"][:, list(judges)]
    feasible = jnp.all((verdict > 0.5) | jnp.isnan(verdict), axis=1)
    return ConstrainedReward(calibrated, feasible)


def _log_ratio(context):
    rollouts = context.rollouts
    return log_ratio_sum(context.stats.logp, rollouts.reference_logp, rollouts.mask)


@part(reads=READS, writes={"advantage"})
def constrained_advantage(kl_max: Bound, judges: Judges) -> Transform:
    """A_i = R̃_i - mean R̃ over the rows of the batch with tokens (CRPG).

    Below the reference's likelihood the factor of R_cr exceeds 1, without bound.

    Metrics: feasible_fraction (of the rows with tokens).
    """

    def apply(signals, context, state):
        rewards = constrained_reward(context.rollouts, judges)
        reward = jnp.maximum(1 - _log_ratio(context) / kl_max, 0) * rewards.constrained
        written = has_tokens(signals.mask)
        advantage = jax.lax.stop_gradient(reward - masked_mean(reward, written))[:, None]
        signals = replace(signals, advantage=jnp.where(signals.mask, advantage, 0))
        return signals, state, {"feasible_fraction": masked_mean(rewards.feasible, written)}

    return apply


@part(reads=READS, writes={"term"})
def feasible_preference(
    scale: Positive, likelihood_coefficient: NonNegative, judges: Judges
) -> Transform:
    """Adds the mean over prompts of -log σ(β (Δ⁺ - Δ⁻)) - λ logp⁺ / length⁺ (CODPO)."""

    def apply(signals, context, state):
        rollouts, group = context.rollouts, context.rollouts.group
        better, worse = feasible_preference_choice(constrained_reward(rollouts, judges), rollouts)
        log_ratio = _log_ratio(context)
        # At the better row; the masked mean excludes the other rows.
        margin = log_ratio - group_sum(log_ratio, group, worse)
        likelihood = masked_mean(context.stats.logp, rollouts.mask, axis=1)
        loss = -jax.nn.log_sigmoid(scale * margin) - likelihood_coefficient * likelihood
        return replace(signals, term=signals.term + masked_mean(loss, better)), state, {}

    return apply


def feasible_preference_choice(
    rewards: ConstrainedReward, rollouts: Rollouts
) -> tuple[Bool[Array, "B"], Bool[Array, "B"]]:
    """The best feasible and the worst infeasible row of each group, among those with tokens.

    Without an infeasible row the worst of all; groups without a feasible row have neither.
    """
    group, rollout_id = rollouts.group, rollouts.rollout_id
    written = has_tokens(rollouts.mask)
    better = first_of_largest(rewards.calibrated, group, rollout_id, written & rewards.feasible)
    takes_part = written & (group_count(group, better) > 0)
    rejected = group_count(group, written & ~rewards.feasible) > 0
    candidates = takes_part & (~rewards.feasible | ~rejected)
    return better, first_of_largest(-rewards.calibrated, group, rollout_id, candidates)


@part(reads=READS, writes={"term"})
def feasible_imitation(kl_max: Bound, judges: Judges) -> Transform:
    """Adds the mean over prompts of -R_c(a*) Σ_t logp (CRRAFT).

    a* is the best feasible row within the KL budget, else the feasible reference row.
    """

    def apply(signals, context, state):
        rollouts, group = context.rollouts, context.rollouts.group
        rewards = constrained_reward(rollouts, judges)
        log_ratio = jax.lax.stop_gradient(_log_ratio(context))
        feasible = rewards.feasible & has_tokens(rollouts.mask)
        near = feasible & (log_ratio <= kl_max)
        none_near = group_count(group, near) == 0
        candidates = jnp.where(none_near, feasible & rollouts.records["off_policy"], near)
        best = first_of_largest(rewards.calibrated, group, rollouts.rollout_id, candidates)
        loss = -rewards.calibrated * masked_sum(context.stats.logp, rollouts.mask, axis=1)
        return replace(signals, term=signals.term + masked_mean(loss, best)), state, {}

    return apply


def crpg(kl_max: float, scale: float, likelihood_coefficient: float, judges: Judges) -> Objective:
    """Policy gradient on the constrained reward, within a KL budget.

    Args:
      kl_max, judges: those of `cgpo`.
      scale, likelihood_coefficient: not used.
    """
    return objective(
        advantage=constrained_advantage(kl_max, judges),
        surrogate=reinforce(),
        aggregation=rollout_mean_token_sum(),
    )


def codpo(kl_max: float, scale: float, likelihood_coefficient: float, judges: Judges) -> Objective:
    """Preference of the best accepted over the worst rejected response.

    Args:
      kl_max: not used.
      scale, likelihood_coefficient, judges: those of `cgpo`.
    """
    return objective_of_terms([feasible_preference(scale, likelihood_coefficient, judges)])


def crraft(kl_max: float, scale: float, likelihood_coefficient: float, judges: Judges) -> Objective:
    """Imitation of the best accepted response within the KL budget.

    Args:
      kl_max, judges: those of `cgpo`.
      scale, likelihood_coefficient: not used.
    """
    return objective_of_terms([feasible_imitation(kl_max, judges)])


def cgpo(
    kl_max: Bound = 5.0,
    scale: Positive = 0.1,
    likelihood_coefficient: NonNegative = 1.0,
    judges: Judges = (1,),
    optimizer: Callable[..., Objective] = crpg,
) -> Recipe:
    """Applies constrained rewards with one of three optimizers.

    Args:
      kl_max: largest log-ratio of a response, nats (CRPG, CRRAFT).
      scale: scale of the log-ratio in a preference (β; CODPO).
      likelihood_coefficient: weight of the mean logp of the accepted response (λ; CODPO).
      judges: columns of `component_rewards` that are grades of judges.
      optimizer: `crpg`, `codpo` or `crraft`.
    """
    return Recipe(
        objective=optimizer(kl_max, scale, likelihood_coefficient, judges),
        experience=experience(stages=[add_traces(), shape(where_judged(judges))]),
    )


METHOD = Method(
    cgpo,
    changes="advantage, surrogate, reward",
    baseline="other",
    gradient="stopped",
    evidence="reconstruction",
    shown=Shown("brackets", "feasible_fraction"),
)
