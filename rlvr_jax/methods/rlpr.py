"""RLPR: no verifier; a response is paid for how likely it makes the reference answer.

"RLPR: Extrapolating RLVR to General Domains without Verifiers", https://arxiv.org/abs/2506.18254

    p    = mean probability of the reference answer's tokens behind the response's reasoning
    R_i  = (1 - c) max(0, p - b) + c format,  b the same of the first policy behind the question
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

A mean of probabilities, for one bad token kills a product. After eleven steps groups are
dropped whose deviation is below β times its running mean; the authors draw others in their place,
and round p to bfloat16. A response without the tags is cut at its end and its answer is read there.
"""

from rlvr_jax.experience import experience, likely_answers
from rlvr_jax.experience.stages.rewards.reference_answer import Splice, behind_tags
from rlvr_jax.objectives import group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.types import Method, Recipe


def rlpr(
    form_share: float = 0.1,
    spread_share: float = 0.5,
    keep: float = 0.99,
    start: int = 11,
    splice: Splice = behind_tags,
    clip_low: float = 0.2,
    clip_high: float = 0.27,
    epsilon: float = 1e-6,
) -> Recipe:
    """Clip-higher on the token mean, on the likelihood of the reference answer.

    Args:
      form_share: of the format in the reward (c).
      spread_share: of the running mean of deviations, below which a group is dropped (β).
      keep: share of the old running mean.
      start: first step, from 0, whose groups are dropped.
      splice: (prompt, response) -> where the reference answer is read.
      clip_low, clip_high: half-widths of the trust region.
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(
            stages=[likely_answers(splice, form_share, spread_share, keep, start)]
        ),
    )


METHOD = Method(
    rlpr,
    "RLPR: Extrapolating RLVR to General Domains without Verifiers",
    "https://arxiv.org/abs/2506.18254",
    changes="reward, selection",
    left_out="further prompts for groups that are dropped; the penalty for repetition",
    reports=(
        "Qwen2.5-7B: 7.6 points on TheoremQA and 7.5 on Minerva over VeriFree, 1.6 over "
        "General-Reasoner, mean of seven"
    ),
    traps=(
        "answers below the likelihood without reasoning all earn 0, and groups of these are "
        "dropped; β 0.5 is for Qwen, Llama 0.9, Gemma 1.0; a product of probabilities is worse; "
        "the code rounds to bfloat16"
    ),
)
