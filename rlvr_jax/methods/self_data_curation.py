"""SELF: only problems that the policy does not yet hold for solved are trained on, near the base.

"The Reasoning Boundary Paradox: How Reinforcement Learning Constrains Language Models",
https://github.com/mail-research/SELF-llm-interference

    1. each prompt once, greedily; those whose answer is right are left out of the step
    2. n rollouts of each prompt that is kept
    3. A_i  = (R_i - mean) / (std + 1e-6)
       loss = mean_t [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + β KL(π_ref ‖ π)]

Training makes likely problems win and lowers others: so the easy ones are left out, and a forward
KL over the whole vocabulary, at the states of the policy, keeps the mass of the reference. The
released script has no KL; β is ours. Kept groups may still be all wrong: add
`--dynamic-sampling`. Batches shrink as training goes on unless `rounds` fills them, and a batch of
which all is solved teaches nothing.
"""

from rlvr_jax.experience import ask_greedily, experience, screen, shuffled_epochs
from rlvr_jax.objectives import (
    group_normalized,
    objective,
    ppo_clip,
    statistic_penalty,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def self_data_curation(
    rounds: int = 1,
    kl_coefficient: float = 0.01,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
    teacher: str = "start",
) -> Recipe:
    """GRPO on prompts that are not solved greedily, with a forward KL to the first policy.

    Args:
      rounds: batches of prompts that are screened at most to fill one update.
      kl_coefficient: weight of the forward KL (β); with 0 there is none.
      clip_low, clip_high: half-widths of the trust region (ε).
      epsilon: added to the standard deviation of a group's rewards.
      teacher: the reference of the KL.
    """
    kl = [statistic_penalty(kl_coefficient, "reverse_kl")] if kl_coefficient else []
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=kl,
            aggregation=token_mean(),
        ),
        experience=experience([shuffled_epochs(), ask_greedily()], stages=[screen(rounds)]),
        teacher=teacher if kl_coefficient else None,
    )


METHOD = Method(
    self_data_curation,
    "The Reasoning Boundary Paradox: How Reinforcement Learning Constrains Language Models",
    "https://github.com/mail-research/SELF-llm-interference",
    changes="selection, regularizer",
    reports="better pass@k on maths (abstract, no number)",
    traps=(
        "the released script sets no KL, here 0.01; kept groups may be all wrong; batches shrink "
        "as prompts are solved; the KL at the policy's own states is not that of whole answers"
    ),
)
