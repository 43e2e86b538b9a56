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

from rlvr_jax.experience import experience, shape
from rlvr_jax.objectives import (
    confident_abstention,
    group_normalized,
    objective,
    ppo_clip,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def salu(
    columns: Sequence[int] = (0, 1, 2),
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on the token mean, on answers and abstentions by their confidence.

    Args:
      columns: of the task's rewards: answerable, abstained (0 or 1), confidence.
      clip_low, clip_high: half-widths of the trust region.
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
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
