"""SwS: what the first epochs leave unlearned says of which kinds there is to be more.

"SwS: Self-aware Weakness-driven Problem Synthesis in Reinforcement Learning for LLM Reasoning",
https://github.com/MasterVito/SwS

    F(x)   = 1 if the accuracy of x was below ½ in every one of T1 epochs, and its slope below 0
    budget of a kind ∝ the share of its prompts with F = 1
    phase 2 begins with the first weights, on prompts and on new ones of the weak kinds
    loss   = PPO's clip-higher on the token mean, of groups with accuracy in [1/8, 7/8], no KL

A prompt that is never solved has slope 0 and is left out by the paper's rule; `included` takes it,
as the released list does. New problems are made before the run by other models, from concepts that
go together (`rlvr_jax.tasks.synthesis.concepts`), filtered by agreement and by the policy's
accuracy (`outside`), and come with the task as `Prompt.meta["synthetic"]`; a kind without any gets
its failed prompts again. Share and T1 are ours.
"""

from rlvr_jax.experience import experience, outside, refill, shift_to_weaknesses
from rlvr_jax.objectives import group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.types import Method, Recipe

ROUNDING = 1e-6
"""A group at a bound is kept."""


def sws(
    epochs: int = 2,
    threshold: float = 0.5,
    share: float = 0.5,
    included: bool = False,
    low: float = 0.125,
    high: float = 0.875,
    max_rounds: int = 1,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    epsilon: float = 1e-6,
) -> Recipe:
    """Clip-higher GRPO without KL, in its second phase on what the first one did not learn.

    Args:
      epochs: of the first phase (T1).
      threshold: accuracy that a failed prompt never reaches.
      share: of the prompts of a step in the second phase that are of weak kinds.
      included: a slope of exactly 0 counts as falling.
      low, high: accuracies of groups that are learned from, both included.
      max_rounds: batches that are drawn at most to fill one update; 1: none more.
      clip_low, clip_high: half-widths of the trust region.
      epsilon: added to the standard deviation of a group's rewards.
    """
    kept = outside(low - ROUNDING, high + ROUNDING)
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(
            shift_to_weaknesses(epochs, threshold, share, included),
            stages=[refill(kept, max_rounds)],
        ),
    )


METHOD = Method(
    sws,
    "SwS: Self-aware Weakness-driven Problem Synthesis in Reinforcement Learning for LLM Reasoning",
    "https://github.com/MasterVito/SwS",
    changes="curriculum, selection",
    left_out="writing, judging and answering new problems by other models",
    reports="eight benchmarks, over the same RL without new problems: 10.0 % (7B) and 7.7 % (32B)",
    traps=(
        "without `included` prompts that are never solved are no weakness; without new problems "
        "in the task failed ones only come again; one epoch has no slope; the released sampler "
        "mixes up its neighbours"
    ),
)
