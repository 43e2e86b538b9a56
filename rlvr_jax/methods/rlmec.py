"""RLMEC: a model that would rewrite a response says which of its tokens are worth keeping.

"Improving Large Language Models via Fine-grained Reinforcement Learning with Minimum Editing
Constraint", https://github.com/RUCAIBox/RLMEC

    p_t  = probability of the token under the rewriting model
    r_t  = clip(p - ½, 0, ½) in right responses, clip(p - ½, -0.1, 0) in wrong ones
    c_t  = min(ρ r, clip(ρ, 1 ± 0.3) r) without gradient, ρ = π / π_ref
    loss = -Σ c_t logp_t / number of tokens with r ≠ 0

The rewriting model is the recipe's teacher: the folder of a model fine-tuned to find and mend the
first wrong step; with the weights of the start the rewards say what the start would have written.
The authors add the cross entropy of rewrites, 1 on edited tokens and ½ on kept ones
(`edited_places`, `imitate` with a factor): that needs rewrites, and is left out. Theirs is training
on stored samples.
"""

from rlvr_jax.objectives import objective, reference_weighted, rewriter_credit, token_mean
from rlvr_jax.types import Method, Recipe


def rlmec(clip: float = 0.3, high: float = 0.5, low: float = 0.1, teacher: str = "start") -> Recipe:
    """The policy gradient on key tokens, weighted against the reference.

    Args:
      clip: half-width of the trust region around the reference.
      high, low: the largest reward of a right response's token, and price of a wrong one's.
      teacher: the rewriting model, a folder.
    """
    return Recipe(
        objective=objective(
            advantage=rewriter_credit(high, low),
            surrogate=reference_weighted(clip),
            aggregation=token_mean(),
        ),
        teacher=teacher,
    )


METHOD = Method(
    rlmec,
    "Improving Large Language Models via Fine-grained Reinforcement Learning with Minimum Editing"
    " Constraint",
    "https://github.com/RUCAIBox/RLMEC",
    changes="reward, advantage, surrogate",
    left_out="the rewriting model and the imitation of its rewrites",
    reports="above RL on whole answers in maths and question answering (no number)",
    traps=(
        "with the default teacher, the start itself, it says only what the start would have "
        "written; clipped tokens still learn; tokens of reward 0 are not in the denominator; "
        "wrong ones weigh a fifth"
    ),
)
