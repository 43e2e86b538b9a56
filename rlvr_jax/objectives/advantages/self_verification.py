"""Training the policy to say, after its response, whether the response is right.

What it says are `verdict_logp`, log-probs of fixed tokens at the one position after the response. A
row is finished if the budget did not cut it off and it has tokens; others have no verdict.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.advantages.group_relative import rollout_advantage
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.regularizers.preferences import outcome_is_right
from rlvr_jax.objectives.statistics.groups import (
    group_all_equal,
    group_deviation,
    group_has_tokens,
    group_std,
)
from rlvr_jax.objectives.statistics.masked import masked_count, masked_mean
from rlvr_jax.types import Rollouts, replace
from rlvr_jax.types.hyperparameters import Finite, NonNegative, Positive, Unit
from rlvr_jax.types.parts import part

__all__ = [
    "class_balance",
    "finished_rows",
    "self_advantage",
    "self_reward",
    "self_reward_loss",
    "self_rewarded",
    "verdict_loss",
]


def finished_rows(rollouts: Rollouts) -> Bool[Array, "B"]:
    """Rows with tokens that were not cut off."""
    return ~rollouts.truncated & jnp.any(rollouts.mask, axis=1)


def self_reward(
    verdict_logp: Float[Array, "B"], finished: Bool[Array, "B"], scale: float, reference: float
) -> Float[Array, "B"]:
    """s = β (log π(z_c | x, y, end) - c), 0 on rows that are not finished.

    With a token z_c that never occurs the reference policy's log-prob is nearly a constant, so s is
    β times the log-ratio: the implicit reward of the whole response at the price of one token.

    Args:
      verdict_logp: log-prob of z_c after the response, at temperature 1.
      finished: rows that have one.
      scale: β.
      reference: c, the log-prob under the reference policy.
    Source: https://github.com/RUCBM/LaSeR.
    """
    return jnp.where(finished, scale * (verdict_logp - reference), 0)


def class_balance(right: Bool[Array, "B"], finished: Bool[Array, "B"]) -> Float[Array, "B"]:
    """Total / (2 · number of the same outcome), both over the finished rows; 0 if there is none."""

    def weight(kind):
        number = masked_count(finished & kind)
        half = masked_count(finished).astype(float) / 2
        return jnp.where(number > 0, half / jnp.maximum(number, 1).astype(float), 0)

    return jnp.where(right, weight(right), weight(~right))


@part(reads={"verdict_logp"}, writes={"term"})
def self_reward_loss(
    coefficient: NonNegative, scale: Positive, reference: Finite, balanced: bool = True
) -> Transform:
    """Adds c · mean over all rows of w (s - R)² for the finished ones: s learns the outcome.

    All rows are those of groups with tokens.

    Args:
      coefficient: c, at least 0.
      scale, reference: of `self_reward`, whose token is the first of `verdict_logp`; scale
        positive.
      balanced: w are `class_balance`, so that right and wrong weigh the same; else 1.
    Reads: verdict_logp, outcome, truncated. Writes: term.
    Metrics: self_reward/right and self_reward/wrong, means over the finished rows of a kind.
    Raises:
      ValueError: a negative coefficient, scale not positive, or reference not finite.
    Source: https://github.com/RUCBM/LaSeR.
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        finished, right = finished_rows(rollouts), outcome_is_right(rollouts.outcome)
        score = self_reward(context.stats.verdict_logp[:, 0], finished, scale, reference)
        weight = class_balance(right, finished).astype(score.dtype) if balanced else 1
        errors = jnp.where(finished, weight * (score - rollouts.outcome) ** 2, 0)
        mean = masked_mean(errors, group_has_tokens(rollouts.mask, rollouts.group))
        signals = replace(signals, term=signals.term + coefficient * mean)
        metrics = {
            "self_reward/right": masked_mean(score, finished & right),
            "self_reward/wrong": masked_mean(score, finished & ~right),
        }
        return signals, state, metrics

    return apply


def self_advantage(
    score: Float[Array, "B"], advantage: Float[Array, "B"], group: Int[Array, "B"], min_std: float
) -> Float[Array, "B"]:
    """(s - mean) / std over the group, std with n - 1; the given advantage where std ≤ `min_std`.

    Args:
      score: s, clipped to [0, 1], 0 on cut rows; these count.
      advantage: what stands in where the scores say nothing.
      group: id of the group of each row.
      min_std: at least 0.
    """
    spread = group_std(score, group)
    useful = (spread > min_std) & ~group_all_equal(score, group)
    centered = group_deviation(score, group)
    return jnp.where(useful, centered / jnp.where(useful, spread, 1), advantage)


@part
def self_rewarded(
    mix: Unit = 0.1, min_std: NonNegative = 0.1, epsilon: Positive = 1e-6
) -> Transform:
    """A = (1 - γ) · group-normalized reward + γ · `self_advantage` of the policy's own scores.

    Args:
      mix: γ, in [0, 1]; with 0 no self-rewards are needed.
      min_std: of the scores of a group, up to which they are not used; at least 0.
      epsilon: ε, added to the standard deviation of the rewards.
    Reads: reward, group, self_reward, truncated. Writes: advantage. Metrics: none.
    Raises:
      ValueError: mix outside [0, 1], a negative min_std, or epsilon not positive.
    Source: https://github.com/RUCBM/LaSeR.
    """

    def advantage(rollouts):
        reward, group = rollouts.reward, rollouts.group
        centered = group_deviation(reward, group)
        plain = centered / (group_std(reward, group) + epsilon)
        if not mix:
            return plain
        score = jnp.where(finished_rows(rollouts), jnp.clip(rollouts.self_reward, 0, 1), 0)
        return (1 - mix) * plain + mix * self_advantage(score, plain, group, min_std)

    return rollout_advantage(advantage, reads={"self_reward"} if mix else ())


@part(reads={"verdict_logp"}, writes={"term"})
def verdict_loss(coefficient: NonNegative) -> Transform:
    """Adds c · mean over the finished rows of the cross entropy of the verdict.

    `verdict_logp` holds log p(yes) and log p(no) over the whole vocabulary, after a question that
    asks whether the response is right; yes is wanted on right rows.

    Args:
      coefficient: c, at least 0.
    Reads: verdict_logp, outcome, truncated. Writes: term. Metrics: verdict_loss, the mean.
    Raises:
      ValueError: a negative coefficient.
    Source: "Putting the Value Back in RL", https://arxiv.org/abs/2505.04842.
    """

    def apply(signals, context, state):
        rollouts, verdict = context.rollouts, context.stats.verdict_logp
        if verdict.shape[1] != 2:
            raise ValueError(
                "verdict_loss: verdict_logp must be [B, 2], of yes and no, got"
                f" {list(verdict.shape)}"
            )
        wanted = jnp.where(outcome_is_right(rollouts.outcome), verdict[:, 0], verdict[:, 1])
        loss = -masked_mean(wanted, finished_rows(rollouts))
        signals = replace(signals, term=signals.term + coefficient * loss)
        return signals, state, {"verdict_loss": loss}

    return apply
