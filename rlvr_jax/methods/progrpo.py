"""ProGRPO: pay less for answers that the policy found likely anyway.

"Back to Basics: Revisiting Exploration in RL for LLM Reasoning via Generative Probabilities",
https://arxiv.org/abs/2602.05281

    c    = exp(mean log p over the fifth of the tokens of lowest probability), of o_i and of q
    A_i  = (R_i - mean) / (std + 1e-6) + α (c(q) - c(o_i)), std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

Log-probs are those of the policy that sampled; the shift is on in groups with a reward. Made from
notes on the paper: share and clip are theirs, α is ours. Sources disagree on all-right groups,
whose more confident half is pushed down; `where=mixed_reward` leaves them alone.
"""

from collections.abc import Callable

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.confidence import any_reward, credit_unlikely
from rlvr_jax.types import Method, Recipe


def progrpo(
    shift_coefficient: float = 0.3,
    share: float = 0.2,
    where: Callable = any_reward,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
) -> Recipe:
    """GRPO's advantages, shifted by the confidence of prompt and response, on DAPO's loss.

    Args:
      shift_coefficient: weight of the shift (α).
      share: share of the tokens that a confidence is taken over.
      where: (reward [B], group [B]) -> bool [B], the groups that are shifted.
      clip_low, clip_high: half-widths of the trust region.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(),
            transforms=[credit_unlikely(shift_coefficient, share, where)],
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    progrpo,
    "Back to Basics: Revisiting Exploration in RL for LLM Reasoning via Generative Probabilities",
    "https://arxiv.org/abs/2602.05281",
    changes="advantage",
    evidence="reconstruction",
    reports=(
        "Qwen2.5-7B, maths: pass@1 37.6 to 43.3 and pass@32 54.7 to 68.5 over GRPO; CodeForces "
        "1242 to 1422"
    ),
    traps=(
        "all-right groups move, too, their surer half down; unlikely wrong answers are pushed up "
        "against GRPO; advantages are not centred again; its coefficient is ours"
    ),
)
