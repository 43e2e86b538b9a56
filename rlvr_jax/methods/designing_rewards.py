"""Clip and Delta: process rewards that more steps do not make larger.

"On Designing Effective RL Reward at Training Time for LLM Reasoning",
https://arxiv.org/abs/2410.15115

    clip   r̃_k = min(r_k - η, 0)
    delta  r̃_k = r_k - r_{k+1}, r_{K-1} for the last but one step, 0 for the last
    r_t  = outcome on the last token + α r̃_k on the last token of step k
    PPO with a critic on these: Â by GAE, whitened; loss = Σ PPO clip / Σ n_i

A sum of scores is farmed by repeating right but needless steps. Clipped ones are at most 0; the
differences add up to the step's own score, whatever follows, so that a response earns min(r_1 - η,
0) on its way. That needs a discount of 1. η and α are not known: 0 and 0.1 are ours, so that the
outcome decides. The scores of steps are the task's (`score_steps`), theirs a model's.
"""

from rlvr_jax.experience import experience, score_steps
from rlvr_jax.objectives import (
    clip_and_delta,
    critic_of,
    generalized_process_advantage,
    objective,
    ppo_clip,
    token_mean,
    whitened,
)
from rlvr_jax.types import Method, Recipe


def designing_rewards(
    threshold: float = 0.0,
    coefficient: float = 0.1,
    clip: bool = True,
    delta: bool = True,
    trace_decay: float = 1.0,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    value_clip: float = 0.2,
) -> Recipe:
    """PPO with a critic, on outcomes and refined scores of steps.

    Args:
      threshold: score from which on a step is good (η).
      coefficient: of the process reward (α).
      clip, delta: whether scores are clipped, and whether differences are paid.
      trace_decay: of later errors of the critic (λ).
      clip_low, clip_high: half-widths of the trust region.
      value_clip: half-width of the critic's.
    """
    process = clip_and_delta(threshold, clip, delta)
    estimator = generalized_process_advantage(process, coefficient, trace_decay=trace_decay)
    return Recipe(
        objective=objective(
            advantage=whitened(estimator),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(stages=[score_steps()]),
        critic=critic_of(estimator, value_clip),
    )


METHOD = Method(
    designing_rewards,
    "On Designing Effective RL Reward at Training Time for LLM Reasoning",
    "https://arxiv.org/abs/2410.15115",
    changes="reward, advantage",
    evidence="reconstruction",
    left_out="the process reward model",
    reports=(
        "Qwen2 and Qwen2.5 of 1.5B and 7B on MATH and GSM8K: plain process rewards may do worse "
        "than outcomes alone, clip and delta improve all"
    ),
    traps=(
        "a response of one step gets nothing from delta; steps must be cut where the scores were "
        "made for; the sum telescopes at a discount of 1 alone"
    ),
)
