r"""Critique RL: a fifth of the prompts requests a verdict on a solution.

"Critique-Coder: Enhancing Coder Models by Critique Reinforcement Learning",
https://github.com/TIGER-AI-Lab/Critique-Coder

    R    = 1 if the verdict in the last \conclusion{…} is true; of other prompts the outcome
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1, over groups whose rewards differ
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

The method is the mixture of prompts: `fraction` of each batch are prompts of kind "verdict". The
task `critiqued_sums` has them. The task `verdicts:FOLDER` makes them of the responses that a run
stored, and `rlvr_jax.tasks.with_verdicts` of any solutions with known labels. Only `true` and
`false` are verdicts here. The rounds of sampling are ours. The authors sample at temperature 0.6
with top-p and top-k, which their log-probs ignore.

Left out: programs as solutions, labelled by tests; top-p and top-k of the sampler.
Reports: Qwen3-8B: above 60 % on LiveCodeBench v5, and better than plain RL on all tested
benchmarks, including BBEH logic.
Traps: On a task without verdicts, the method is DAPO's filter and clip. With unbalanced labels, a
constant verdict is rewarded. The authors' pattern reads NOT SURE as a yes; here it is none.
"""

import functools
from dataclasses import replace
from typing import Any

from rlvr_jax.experience import Curriculum, RunInfo, experience, refill, uniform
from rlvr_jax.experience.curricula.batches import requests_for
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks import Batches
from rlvr_jax.tasks.derived.verdicts import KIND, verdict_mixture
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, part
from rlvr_jax.types.hyperparameters import MaxRounds, Unit


@part
def some_verdicts(fraction: Unit) -> Curriculum:
    """Prompts in shuffled epochs, of which a fraction requests verdicts, if the task has any.

    Metrics: verdict_fraction (fraction of the step's prompts that request a verdict).
    """

    def propose(requests, state, turn):
        order = _order(turn.setting, fraction)
        return requests_for(turn, order.indices(turn.step, turn.round, turn.setting.rounds))

    def observe(state, turn, seen, learned):
        asked = [prompt.kind == KIND for batch in seen for prompt in batch.prompts]
        return state, {"verdict_fraction": sum(asked) / len(asked)}

    return Curriculum(propose, observe=observe)


@functools.lru_cache(maxsize=4)
def _order(setting: RunInfo, fraction: float) -> Batches:
    task = setting.task
    if any(prompt.kind == KIND for prompt in task.train):
        task = replace(task, mixture=verdict_mixture(task, fraction))
    return Batches(task, setting.prompts, setting.seed)


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon", clip_high=0.3)
def critique_rl(fraction: Unit = 0.2, max_rounds: MaxRounds = 3, **clip: Any) -> Recipe:
    """Applies clip-higher with the token mean to groups of mixed outcomes.

    Args:
      fraction: fraction of a batch's prompts that requests a verdict.
    """
    return Recipe(
        objective=clipped_objective(**clip),
        experience=experience(some_verdicts(fraction), stages=[refill(uniform, max_rounds)]),
    )


METHOD = Method(
    critique_rl,
    changes="curriculum, selection",
    shown=Shown("critiqued_sums", "experience/verdict_fraction", without={"fraction": 0}),
)
