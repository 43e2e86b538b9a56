"""ReST-RL: only prompts whose answers differ, and lines of their best answers to go on from.

"ReST-RL: Achieving Accurate Code Reasoning of LLMs with Optimized Self-Training and Decoding",
https://github.com/THUDM/ReST-RL

    5 answers to a prompt at T = 0.7; dropped if the standard deviation of outcomes is below 0.05
    if the best one has outcome ≥ 0.9: ⌈0.5 · lines⌉ beginnings of it, with chances ∝ 0.95^i
    R    = outcome + 0.001 where the answer has ended
    loss = GRPO's clip on the token mean, of the prompts and of what they begin with

The authors do so in cycles over all prompts; here some prompts are rated in every step, and what
they give waits in a queue. Their penalty of 1e-6 for each character behind the end cannot arise:
nothing stands behind the stop token. Their tree search is `search_lines`, by tests or by a value of
beginnings, and its `value_targets` are what their value model learns; that model, a second one with
a head of its own, and the decoding with it train no policy and are no part of a run.
"""

from rlvr_jax.experience import experience, shape, start_from_prefixes
from rlvr_jax.objectives import (
    ended_bonus,
    group_normalized,
    objective,
    ppo_clip,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def rest_rl(
    rated: int = 64,
    rating_samples: int = 5,
    rating_temperature: float = 0.7,
    spread: float = 0.05,
    accept: float = 0.9,
    ratio: float = 0.5,
    decay: float = 0.95,
    capacity: int = 4096,
    bonus: float = 1e-3,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on prompts whose answers differ and on beginnings of their best answers.

    Args:
      rated: prompts that are rated in each step; ours, where the paper rates all in a cycle.
      rating_samples, rating_temperature: of their answers.
      spread: least standard deviation of their outcomes.
      accept: outcome from which on the best answer is cut into beginnings.
      ratio: beginnings for each line.
      decay: of the chance of a beginning from one line to the next.
      capacity: starts that wait at most.
      bonus: reward of an answer that has ended.
      clip_low, clip_high: half-widths of the trust region (ε).
      epsilon: added to the standard deviation of a group's rewards.
    """
    starts = start_from_prefixes(
        rated, rating_samples, rating_temperature, spread, accept, ratio, decay, capacity
    )
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(starts, stages=[shape(ended_bonus(bonus))]),
    )


METHOD = Method(
    rest_rl,
    "ReST-RL: Achieving Accurate Code Reasoning of LLMs with Optimized Self-Training and Decoding",
    "https://github.com/THUDM/ReST-RL",
    changes="curriculum, sampling, reward",
    left_out="the value model, and with it the decoding; the search is a function, no draw",
    reports="APPS, BigCodeBench, HumanEval: ahead of GRPO and ReST-DPO in training",
    traps=(
        "prompts that are always or never solved are dropped before they are cut; a beginning may "
        "repeat or be the whole answer; answers of one line give no others"
    ),
)
