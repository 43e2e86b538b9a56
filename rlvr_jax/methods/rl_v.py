"""RL^V: teach the policy to verify its own rollouts, with the labels that RL makes anyway.

"Putting the Value Back in RL: Better Test-Time Scaling by Unifying LLM Reasoners With Verifiers",
https://arxiv.org/abs/2505.04842

    loss = -Σ A logp / Σ n_i - λ · mean over finished rollouts of log π(z | x, y, question)
    A_i  = R_i - mean,   z = Yes if the outcome is above ½, else No

The question is "Is this solution correct? Answer Yes or No."; it is appended in a second pass whose
tokens are not part of the RL mask. The score of a response is π(Yes), or, safer at first, the
softmax over Yes and No; at test time it ranks responses (`best_answer`) or weighs their votes
(`most_voted_answer`). A reconstruction from the abstract and summaries; λ is ours, and so is
REINFORCE with a group mean as one of the algorithms that the paper combines with.
"""

from rlvr_jax.experience import ask_verdict, experience
from rlvr_jax.objectives.advantages.group_relative import group_centered
from rlvr_jax.objectives.advantages.self_verification import verdict_loss
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import reinforce
from rlvr_jax.types import Method, Recipe


def rl_v(
    verification_coefficient: float = 1.0,
    question: str = " Is this solution correct? Answer Yes or No.",
    yes: str = " Yes",
    no: str = " No",
) -> Recipe:
    """REINFORCE with a group mean, plus the cross entropy of a verdict on each rollout.

    Args:
      verification_coefficient: weight of the cross entropy (λ).
      question: behind a response.
      yes, no: what may be said then, texts of one token each of the policy's tokenizer.
    """
    verify = [verdict_loss(verification_coefficient)] if verification_coefficient else []
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            surrogate=reinforce(),
            regularizers=verify,
            aggregation=token_mean(),
        ),
        experience=experience(stages=[ask_verdict([yes, no], question)]),
    )


METHOD = Method(
    rl_v,
    "Putting the Value Back in RL: Better Test-Time Scaling by Unifying LLM Reasoners With"
    " Verifiers",
    "https://arxiv.org/abs/2505.04842",
    changes="regularizer",
    evidence="reconstruction",
    left_out="longer budgets until a response is judged right",
    reports=(
        "MATH: 20 % more with parallel samples, and 8 to 32 times less test-time compute than the "
        "base method"
    ),
    traps=(
        "where nearly all answers are right (or wrong) the verdict learns that one word; π(Yes) "
        "over the vocabulary is tiny at first, so compare Yes with No; texts of more than one "
        "token do not serve"
    ),
)
