"""LaSeR: the policy rewards itself by one log-prob after its last token.

"LaSeR: Reinforcement Learning with Last-Token Self-Rewarding", https://github.com/RUCBM/LaSeR

    s_i  = β (log π(z_c | x, y, end) - c)
    A_i  = 0.9 (R_i - mean) / (std + 1e-6) + 0.1 (s_i - mean s) / std s
    loss = GRPO's clipped loss + 0.1 · mean over rows of w_i (s_i - R_i)², finished rows only

z_c is a token that never occurs, and c its log-prob under the reference policy, nearly a constant.
Therefore s is β times a log-ratio: the implicit reward of the whole response, at the cost of one
token. On correct responses log π(z_c) rises to c + 10. w balances correct and incorrect rows.

In the advantage, s is that of the policy that wrote the row (`self_reward`), clipped to [0, 1], and
0 on truncated rows. Groups whose scores have a std of 0.1 or less use only GRPO's advantage. The
authors' code reads the score of a truncated row from an incorrect position.

Training begins without the mixing (`mix=0`) and, for a base model, without the loss, each for 200
updates. The constant c is -23 for Qwen with z_c <|vision_start|>, -25 for OctoThinker. At test
time, s > 0.5 predicts a correct response, and s weights votes. This recipe follows the authors'
code but was not run against it. Their average of the clipped loss was not found; it is GRPO's, per
rollout. The base model of `discussed_sums` has the token <|vision_start|>, with c = -16.8.

Left out: the phases of training, which are separate runs; the weighted vote at test time, as no
command reads the score of one token.
Reports: several base models: better reasoning than GRPO, and a grade of the response for one more
token (no numbers).
Traps: z_c and c are Qwen's; another model requires a token that never occurs, and its c. Truncated
rows count in the mean and have no loss.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.experience import Stage, experience, request_verdict
from rlvr_jax.objectives import Transform, clipped_objective, part, rollout_advantage
from rlvr_jax.objectives.statistics.groups import (
    finished_rows,
    group_all_equal,
    group_deviation,
    group_has_tokens,
    group_std,
)
from rlvr_jax.objectives.statistics.masked import masked_count, masked_mean
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_mean
from rlvr_jax.types import Method, Recipe, Shown, declare, is_correct, replace
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Epsilon,
    Finite,
    NonNegative,
    Positive,
    Unit,
)

declare("self_reward", Float[Array, "B"], "outcome that the policy of the row expected")


@part(writes=frozenset({"self_reward"}), by_row=True)
def reward_itself(scale: Positive, reference: Finite, min_std: NonNegative | None = None) -> Stage:
    """Records s of each response under the policy that wrote it.

    The first token of the preceding `request_verdict` is z_c.

    Args:
      min_std: that of `self_rewarded`; None: s does not enter the advantage.
    Metrics: self_reward (mean over finished rows), self_rewarded_groups (fraction of the groups
      whose scores enter the advantage, as they differ by more than `min_std`).
    """

    def apply(batch, actor, state, turn):
        rollouts = batch.rollouts
        logp = actor.score(batch, ["verdict_logp"])["verdict_logp"][:, 0]
        finished = ~rollouts.truncated & rollouts.mask.any(axis=1)
        score = np.asarray(self_reward(logp, finished, scale, reference), rollouts.reward.dtype)
        metrics = {"self_reward": float(score[finished].mean())} if finished.any() else {}
        if min_std is not None:
            _, useful = usable_spread(usable_score(score, finished), rollouts.group, min_std)
            first = [rows[0] for rows in batch.groups]
            metrics["self_rewarded_groups"] = float(np.asarray(useful)[first].mean())
        return batch.with_rollouts(self_reward=score), state, metrics

    return apply


def self_reward(
    verdict_logp: Float[Array, "B"], finished: Bool[Array, "B"], scale: float, reference: float
) -> Float[Array, "B"]:
    """s = β (log π(z_c | x, y, end) - c) at temperature 1, 0 on rows that are not finished.

    Args:
      verdict_logp: log-prob of the token z_c after the response, nats, [B].
      finished: rows that are not truncated, bool [B].
      scale: factor of the log-prob (β).
      reference: constant log-prob of z_c that is subtracted, nats (c).
    """
    return jnp.where(finished, scale * (verdict_logp - reference), 0)


@part
def self_rewarded(
    mix: Unit = 0.1, min_std: NonNegative = 0.1, epsilon: Epsilon = 1e-6
) -> Transform:
    """A = (1 - γ) · group-normalized reward + γ · `self_advantage`."""

    def advantage(rollouts):
        reward, group = rollouts.reward, rollouts.group
        centered = group_deviation(reward, group)
        plain = centered / (group_std(reward, group) + epsilon)
        if not mix:
            return plain
        score = usable_score(rollouts.records["self_reward"], finished_rows(rollouts))
        return (1 - mix) * plain + mix * self_advantage(score, plain, group, min_std)

    return rollout_advantage(advantage, reads={"self_reward"} if mix else ())


def usable_score(score: Float[Array, "B"], finished: Bool[Array, "B"]) -> Float[Array, "B"]:
    """s, clipped to [0, 1], and 0 on rows that are not finished."""
    return jnp.where(finished, jnp.clip(score, 0, 1), 0)


def usable_spread(
    score: Float[Array, "B"], group: Int[Array, "B"], min_std: float
) -> tuple[Float[Array, "B"], Bool[Array, "B"]]:
    """The std of the scores of each row's group, with n - 1, and whether it is above `min_std`."""
    spread = group_std(score, group)
    return spread, (spread > min_std) & ~group_all_equal(score, group)


def self_advantage(
    score: Float[Array, "B"], advantage: Float[Array, "B"], group: Int[Array, "B"], min_std: float
) -> Float[Array, "B"]:
    """(s - mean) / std over the group, std with n - 1; `advantage` where std ≤ `min_std`.

    Args:
      score: s, clipped to [0, 1], 0 on truncated rows, which count.
      advantage: used where the scores of a group are too similar, [B].
      group: group of each row, int [B].
      min_std: standard deviation of a group's scores up to which `advantage` is used.
    """
    spread, useful = usable_spread(score, group, min_std)
    centered = group_deviation(score, group)
    return jnp.where(useful, centered / jnp.where(useful, spread, 1), advantage)


@part(reads={"verdict_logp"}, writes={"term"})
def self_reward_loss(
    coefficient: NonNegative, scale: Positive, reference: Finite, balanced: bool = True
) -> Transform:
    """Adds coefficient · mean of w (s - R)², 0 on unfinished rows, over groups with tokens.

    Args:
      coefficient: weight of the squared error.
      scale: scale of the log-prob of z_c (β).
      reference: log-prob of z_c under the reference policy, nats (c).
      balanced: w is `class_balance`; else 1.
    Metrics: self_reward/correct, self_reward/incorrect (means over finished correct and incorrect
      rows).
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        finished, correct = finished_rows(rollouts), is_correct(rollouts.outcome)
        score = self_reward(context.stats.records["verdict_logp"][:, 0], finished, scale, reference)
        weight = class_balance(correct, finished).astype(score.dtype) if balanced else 1
        errors = jnp.where(finished, weight * (score - rollouts.outcome) ** 2, 0)
        mean = masked_mean(errors, group_has_tokens(rollouts.mask, rollouts.group))
        signals = replace(signals, term=signals.term + coefficient * mean)
        metrics = {
            "self_reward/correct": masked_mean(score, finished & correct),
            "self_reward/incorrect": masked_mean(score, finished & ~correct),
        }
        return signals, state, metrics

    return apply


def class_balance(correct: Bool[Array, "B"], finished: Bool[Array, "B"]) -> Float[Array, "B"]:
    """w: finished rows / (2 · finished rows of equal outcome); 0 if there are none."""

    def weight(kind):
        number = masked_count(finished & kind)
        half = masked_count(finished).astype(float) / 2
        return jnp.where(number > 0, half / jnp.maximum(number, 1).astype(float), 0)

    return jnp.where(correct, weight(correct), weight(~correct))


def laser(
    token: str = "<|vision_start|>",
    coefficient: NonNegative = 0.1,
    scale: Positive = 0.1,
    reference_logp: Finite = -23.0,
    balanced: bool = True,
    mix: Unit = 0.1,
    min_std: NonNegative = 0.1,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Applies GRPO without KL, fits a self-reward and uses it in the advantage.

    Args:
      token: text of a token that never occurs (z_c), one token of the policy's tokenizer.
      coefficient: weight of the squared error.
      scale: scale of the log-prob of z_c (β).
      reference_logp: log-prob of z_c under the reference policy (c), nats.
      balanced: whether correct and incorrect rows have equal total weight in the squared error.
      mix: weight of the self-reward in the advantage.
      min_std: standard deviation of a group's scores up to which they are not used.
    """
    fit = [self_reward_loss(coefficient, scale, reference_logp, balanced)] if coefficient else []
    return Recipe(
        objective=clipped_objective(
            clip_low,
            clip_high,
            advantage=self_rewarded(mix, min_std, epsilon),
            regularizers=fit,
            aggregation=rollout_mean_token_mean(),
        ),
        experience=experience(
            stages=[
                request_verdict([token]),
                reward_itself(scale, reference_logp, min_std if mix else None),
            ]
        ),
    )


METHOD = Method(
    laser,
    changes="advantage, regularizer",
    baseline="signal",
    shown=Shown(
        "discussed_sums",
        "experience/self_rewarded_groups",
        hyperparameters={"reference_logp": -16.8},
    ),
)
