"""SALU: abstaining from what has no answer is right, and a sure wrong answer is worst.

"Harnessing RLHF for Robust Unanswerability Recognition and Trustworthy Response Generation in LLMs"

    answerable:   right 1, wrong -c, abstained -½
    unanswerable: abstained 1, any answer -(½ + ½ c);    c the confidence of the response
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1;  loss = Σ PPO clip / Σ n_i

A reconstruction from the abstract, which gives no equation: the smallest reward that punishes sure
errors most and keeps "I do not know" from becoming the policy. A wrong answer of c below ½ costs
less than abstaining, so that guessing can be learned. Whether a question has an answer, whether the
response abstained, and c are rewards of the task (`columns`). Kinds of prompts should be balanced.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.experience import experience, shape
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.rewards.parts import Shaping, judged_mean
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon
from rlvr_jax.types.parts import part

Rows = Float[Array, "B"]


Flags = Bool[Array, "B"]


def abstention_reward(answerable: Flags, abstained: Flags, right: Flags, confidence: Rows) -> Rows:
    """What an answer or an abstention earns, by the confidence c of the response.

    | | answers right | answers wrong | abstains |
    |---|---|---|---|
    | answerable | 1 | -c | -½ |
    | unanswerable | -(½ + ½ c) | -(½ + ½ c) | 1 |

    NaN (no reward) where the confidence is not in [0, 1].

    Args:
      answerable: the question has an answer.
      abstained: the response says that it has none, and gives none.
      right: the answer is; it means nothing where there is none.
      confidence: c.
    """
    answered = jnp.where(right, 1.0, -confidence)
    known = jnp.where(abstained, -0.5, answered)
    unknown = jnp.where(abstained, 1.0, -(0.5 + 0.5 * confidence))
    reward = jnp.where(answerable, known, unknown).astype(confidence.dtype)
    return jnp.where((confidence >= 0) & (confidence <= 1), reward, jnp.nan)


@part
def confident_abstention(answerable: int = 0, abstained: int = 1, confidence: int = 2) -> Shaping:
    """`abstention_reward` of columns of the task's rewards; right is an outcome above ½.

    Args:
      answerable, abstained, confidence: columns, the first two of 0 and 1.
    Reads: outcome, component_rewards. Metrics: reward/abstained, reward/right_of_answered,
      reward/hallucinated (share of the unanswerable questions that are answered).
    Raises:
      ValueError: a negative column.
    """
    columns = (answerable, abstained, confidence)
    if min(columns) < 0:
        raise ValueError(f"confident_abstention: columns must be at least 0, got {columns}")

    def apply(rollouts, state, moment):
        del moment
        has, none, sure = (rollouts.component_rewards[:, column] for column in columns)
        known, silent, right = has > 0.5, none > 0.5, rollouts.outcome > 0.5
        reward = abstention_reward(known, silent, right, sure)
        reward = jnp.where(jnp.isnan(has) | jnp.isnan(none), jnp.nan, reward)

        def share(values, where):
            return judged_mean(jnp.where(where, values.astype(sure.dtype), jnp.nan), rollouts)

        metrics = {
            "reward/abstained": share(silent, ~jnp.isnan(none)),
            "reward/right_of_answered": share(right, known & ~silent),
            "reward/hallucinated": share(~silent, ~known & ~jnp.isnan(has)),
        }
        return reward, state, metrics

    reads = frozenset({"component_rewards"})
    return Shaping(apply, reads=reads, columns=max(columns) + 1)


def salu(
    columns: Sequence[int] = (0, 1, 2),
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on the token mean, on answers and abstentions by their confidence.

    Args:
      columns: of the task's rewards: answerable, abstained (0 or 1), confidence.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=group_normalized(epsilon)
        ),
        experience=experience(stages=[shape(confident_abstention(*columns))]),
    )


METHOD = Method(
    salu,
    "Harnessing RLHF for Robust Unanswerability Recognition and Trustworthy Response Generation in"
    " LLMs",
    "",
    changes="reward",
    evidence="reconstruction",
    left_out="the supervised start",
    reports=(
        "its own C-IR_Answerability: above pipelines of classifiers, fewer hallucinations by "
        "human judgement"
    ),
    traps=(
        "the reward is ours; the commoner kind of prompts sets how often it abstains; an unsure "
        "wrong answer costs less than abstaining; confidence of the policy itself can be lowered"
    ),
)
