"""Rewards for what a response cites, by precision and recall."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives.rewards.parts import Shaping, judged_mean
from rlvr_jax.types.hyperparameters import Positive, Unit
from rlvr_jax.types.parts import part

__all__ = ["f_score", "grounded", "grounded_reward"]

Rows = Float[Array, "B"]


def f_score(precision: Rows, recall: Rows, beta: float) -> Rows:
    """F_β = (1 + β²) P R / (β² P + R), 0 if nothing is hit.

    Args:
      precision, recall: P and R, in [0, 1]; NaN where nobody can say: F is, too.
      beta: β; above 1 recall counts for more.
    """
    weighed = beta**2 * precision + recall
    hit = (1 + beta**2) * precision * recall / jnp.where(weighed > 0, weighed, 1)
    return jnp.where(weighed > 0, hit, jnp.where(jnp.isnan(weighed), jnp.nan, 0))


def grounded_reward(outcome: Rows, score: Rows, share: float) -> Rows:
    """a + η F + (1 - η) a F: a wrong answer earns η F at most, a right one 1 + F.

    Args:
      outcome: a, in [0, 1].
      score: F, of what is cited.
      share: η, of F that a wrong answer earns.
    """
    return outcome + share * score + (1 - share) * outcome * score


@part
def grounded(
    precision: int, recall: int, form: int | None = None, beta: Positive = 2.0, share: Unit = 0.1
) -> Shaping:
    """`grounded_reward` of columns of the task's rewards; 0 where the format is broken.

    Args:
      precision, recall: columns of the citations' precision and recall.
      form: column that is 1 where the format is kept; None: it always is.
      beta: β of the score.
      share: η of the reward.
    Reads: outcome, component_rewards. Metrics: reward/precision, reward/recall, reward/f_score and,
      with a format, reward/format.
    Raises:
      ValueError: beta not positive, or share outside [0, 1].
    Source: LongRLVR, https://github.com/real-absolute-AI/LongRLVR.
    """
    columns = [precision, recall, *([] if form is None else [form])]

    def apply(rollouts, state, moment):
        del moment
        cited = [rollouts.component_rewards[:, column] for column in columns]
        score = f_score(*cited[:2], beta)
        parts = dict(zip(("precision", "recall", "format"), cited, strict=False))
        metrics = {f"reward/{name}": judged_mean(part, rollouts) for name, part in parts.items()}
        metrics["reward/f_score"] = judged_mean(score, rollouts)
        reward = grounded_reward(rollouts.outcome, score, share)
        if form is not None:
            reward = jnp.where(cited[2] > 0.5, reward, jnp.where(jnp.isnan(cited[2]), jnp.nan, 0))
        return reward, state, metrics

    return Shaping(apply, reads=frozenset({"component_rewards"}), columns=max(columns) + 1)
