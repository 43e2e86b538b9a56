"""RL^V: trains the policy to verify its own rollouts, with the labels of RL.

"Putting the Value Back in RL: Better Test-Time Scaling by Unifying LLM Reasoners With Verifiers",
https://arxiv.org/abs/2505.04842

    loss = -Σ A logp / Σ n_i - λ · mean over finished rollouts of log π(z | x, y, question)
    A_i  = R_i - mean,   z = Yes if the outcome is above ½, else No

The question is "Is this solution correct? Answer Yes or No.". A second pass appends it, and its
tokens are not part of the RL mask. The score of a response is π(Yes), or, safer at first, the
softmax over Yes and No. At test time `choose` ranks responses by the score (`own_score`) or weights
their votes (`vote_sum`). A reconstruction from the abstract and summaries. The weight λ is ours, as
is REINFORCE with a group mean. The paper combines the method with several algorithms. The base
model of `discussed_sums` reads the question.

Left out: longer budgets until a response is judged correct.
Reports: MATH: 20 % more with parallel samples, at 8 to 32 times less test-time compute.
Traps: If nearly all responses have one outcome, the verdict learns only that word. At first, π(Yes)
over the vocabulary is tiny, so compare Yes with No. Texts of more than one token are
rejected.
"""

import jax.numpy as jnp

from rlvr_jax.experience import experience, part, request_verdict
from rlvr_jax.objectives import Transform, finished_rows, group_centered, masked_mean, objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import reinforce
from rlvr_jax.types import Method, Recipe, Shown, is_correct, replace
from rlvr_jax.types.hyperparameters import NonNegative

QUESTION = " Is this solution correct? Answer Yes or No."


@part(reads={"verdict_logp"}, writes={"term"})
def verdict_loss(coefficient: NonNegative) -> Transform:
    """Adds λ · mean over the finished rows of the cross entropy of the verdict.

    `verdict_logp` has log p(yes) and log p(no) over the whole vocabulary after the question.

    Metrics: verdict_loss (mean over the rows), correct_verdicts (fraction of the finished rows
      whose likelier verdict agrees with the outcome).
    """

    def apply(signals, context, state):
        rollouts, verdict = context.rollouts, context.stats.records["verdict_logp"]
        if verdict.shape[1] != 2:
            raise ValueError(
                "verdict_loss: verdict_logp must be [B, 2], of yes and no, got"
                f" {list(verdict.shape)}"
            )
        correct, finished = is_correct(rollouts.outcome), finished_rows(rollouts)
        logp = jnp.where(correct, verdict[:, 0], verdict[:, 1])
        loss = -masked_mean(logp, finished)
        agrees = (verdict[:, 0] > verdict[:, 1]) == correct
        signals = replace(signals, term=signals.term + coefficient * loss)
        metrics = {"verdict_loss": loss}
        metrics["correct_verdicts"] = masked_mean(agrees.astype(loss.dtype), finished)
        return signals, state, metrics

    return apply


def rl_v(
    verification_coefficient: NonNegative = 1.0,
    question: str = QUESTION,
    yes: str = " Yes",
    no: str = " No",
) -> Recipe:
    """Applies REINFORCE with a group mean, plus the cross entropy of a verdict on each rollout.

    Args:
      verification_coefficient: weight of the cross entropy (λ).
      question: text after a response.
      yes, no: the two verdicts, texts of one token each of the policy's tokenizer.
    """
    verify = [verdict_loss(verification_coefficient)] if verification_coefficient else []
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            surrogate=reinforce(),
            regularizers=verify,
            aggregation=token_mean(),
        ),
        experience=experience(stages=[request_verdict([yes, no], question)]),
    )


METHOD = Method(
    rl_v,
    changes="regularizer",
    evidence="reconstruction",
    shown=Shown("discussed_sums", "correct_verdicts", without={"verification_coefficient": 0}),
)
