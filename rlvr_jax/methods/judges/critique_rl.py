r"""Critique RL: a fifth of the prompts requests a verdict on a solution.

"Critique-Coder: Enhancing Coder Models by Critique Reinforcement Learning",
https://github.com/TIGER-AI-Lab/Critique-Coder

    R    = 1 if the verdict in the last \conclusion{…} is true; of other prompts the outcome
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1, over groups whose rewards differ
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

The method is the mixture of prompts. `rlvr_jax.tasks.with_verdicts` adds solutions with known
labels to a task, as a fraction of each batch. Only `true` and `false` are verdicts here. The rounds
of sampling are ours. The authors sample at temperature 0.6 with top-p and top-k, which their
log-probs ignore.

Left out: the solutions with labels; top-p and top-k of the sampler.
Reports: Qwen3-8B: above 60 % on LiveCodeBench v5, and better than plain RL on all tested
benchmarks, including BBEH logic.
Traps: On a task without verdicts, the method is DAPO's filter and clip. With unbalanced labels, a
constant verdict is rewarded. The authors' pattern reads NOT SURE as a yes; here it is none.
"""

from typing import Any

from rlvr_jax.experience import experience, refill, uniform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe, arguments_of
from rlvr_jax.types.hyperparameters import MaxRounds


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon", clip_high=0.3)
def critique_rl(max_rounds: MaxRounds = 3, **clip: Any) -> Recipe:
    """Applies clip-higher with the token mean to groups of mixed outcomes."""
    return Recipe(
        objective=clipped_objective(**clip),
        experience=experience(stages=[refill(uniform, max_rounds)]),
    )


METHOD = Method(critique_rl, changes="selection")
