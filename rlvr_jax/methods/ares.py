"""ARES: more second thoughts on hard prompts, fewer on easy ones.

"ARES: Multimodal Adaptive Reasoning via Difficulty-Aware Token-Level Entropy Shaping",
https://github.com/shawn0728/ARES

    W_t  = mean entropy of the w tokens after t
    n_i  = trigger words with W_t ≥ threshold (running mean of the batches' thresholds)
    R_i  = outcome + s(n_i, n*, difficulty of the prompt, right or wrong)
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ PPO clip with dual clip / Σ n_i

s is `hesitation_score`, n* the mean count at that difficulty. The threshold of a response is the
95th percentile of its W, that of a batch their median. The authors take the entropy of the ten
likeliest tokens and a tail; we read the sampler's full entropy. Like them we count where a word was
likeliest, whatever was drawn; the list of words is ours. Their α adapts to the rounding error of
the target, a slow random walk; here it is constant. Every wrong response earns at least half of its
score, so that wrong responses to hard prompts differ by their counts only. A group of equal
outcomes has advantages that are not 0 where its counts differ.
"""

from rlvr_jax.experience import experience, mark_triggers
from rlvr_jax.objectives.advantages.hesitation_reward import HesitationScale, hesitation_advantage
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Method, Recipe


def ares(
    triggers: str = "wait however but alternatively hmm maybe actually",
    window: int = 4,
    percentile: float = 95.0,
    threshold_keep: float = 0.99,
    scale: HesitationScale | None = None,
    clip_low: float = 0.2,
    clip_high: float = 0.3,
    dual_clip: float = 3.0,
    epsilon: float = 1e-6,
) -> Recipe:
    """Clip-higher on the token mean, on rewards for hesitation that fits the difficulty.

    Args:
      triggers: words that begin a second thought, blanks between them; those of the policy's
        tokenizer that are one token count.
      window: tokens whose entropy is averaged (w).
      percentile: of a response's window entropies, its threshold.
      threshold_keep: share of the old running mean of the threshold.
      scale: constants of the score (α, f, κ, T and caps); None for the authors'.
      clip_low, clip_high, dual_clip: trust region.
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=hesitation_advantage(window, percentile, threshold_keep, scale, epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high, dual=dual_clip),
            aggregation=token_mean(),
        ),
        experience=experience(stages=[mark_triggers(triggers.split())]),
    )


METHOD = Method(
    ares,
    "ARES: Multimodal Adaptive Reasoning via Difficulty-Aware Token-Level Entropy Shaping",
    "https://github.com/shawn0728/ARES",
    changes="reward, surrogate",
    left_out="the KL whose weight adapts to the difficulty",
    reports=(
        "Qwen2.5-VL-7B: above open models of 7B in maths, logic and on pictures, with shorter easy "
        "answers and longer hard ones (abstract)"
    ),
    traps=(
        "every wrong answer earns 0.15 to 0.3; groups of equal outcomes train on counts of trigger "
        "words; a trigger that is not one token of the tokenizer is never counted"
    ),
)
