"""1-shot RLVR: one prompt fills every batch.

Wang et al. 2025, "Reinforcement Learning for Reasoning in Large Language Models with One Training
Example", https://arxiv.org/abs/2504.20571

    score(x) = std of x's mean outcome over the epochs of an earlier run; the highest comes first
    batch    = copies of the chosen prompts, each a separate group
    loss     = Σ [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + 0.001 k3(π ‖ π_ref) - 0.001 H] / Σ n_i

The run first trains `first_steps` on all prompts (500 in the paper, a quarter of the run here). It
then chooses the `number` prompts of largest score and starts again from the initial weights, with a
new optimizer, on copies of these. With `prompts` there is no first phase; the command

    python -m rlvr_jax.analysis.prompt_order RUN

prints the prompts of another run by score. The authors train on the first (π_1), or on π_1 and
π_13; many prompts work. Their batch is 128 copies with 8 rollouts each at temperature 0.6. Held-out
accuracy still improves for a long time after all responses are correct. The entropy coefficient is
the default of the code they used.

Reports: Qwen2.5-Math-1.5B, one example, in %: MATH500 36.0 to 73.6, six sets 17.6 to 35.7. This is
about the result of 1.2k prompts.
Traps: A prompt that was sampled once in the first phase has the score 0. Once all responses are
correct, only KL and entropy have a gradient. If copies were grouped by problem, there would be one
group of 1024. The released selection picks nothing until its `top_n` is set.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from rlvr_jax.experience import Curriculum, experience, plain
from rlvr_jax.experience.batch import ROUNDING
from rlvr_jax.experience.curricula.batches import order_of, requests_for
from rlvr_jax.experience.curricula.history import visits_of
from rlvr_jax.objectives import clipped_objective
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, part
from rlvr_jax.types.hyperparameters import (
    Count,
    EntropyCoefficient,
    KLCoefficient,
    NonNegativeInt,
    OfRun,
    Temperature,
)

FirstSteps = Annotated[
    Count, "number of steps on all prompts, before some are chosen", OfRun("steps", 4)
]


@part
def chosen_prompts(numbers: Sequence[NonNegativeInt]) -> Curriculum:
    """Fills every step with the chosen prompts in turn; each copy is a separate group.

    Args:
      numbers: positions in the task's train prompts, at least one.
    Raises:
      ValueError: no numbers; at the start of a run, a number after the last prompt.
    """
    if not len(numbers):
        raise ValueError("chosen_prompts: numbers must name prompts, got none")

    def init(setting):
        number = len(setting.task.train)
        if max(numbers) >= number:
            raise ValueError(
                f"chosen_prompts: numbers must be below {number}, the train prompts of task"
                f" {setting.task.name!r}, got {max(numbers)}"
            )
        return ()

    def propose(requests, state, turn):
        return requests_for(turn, np.resize(np.array(numbers), turn.setting.prompts))

    return Curriculum(propose, init)


class _Scores(NamedTuple):
    """Number, sum and sum of squares of the pass rates of each prompt, [P]; the chosen prompts."""

    moments: np.ndarray
    chosen: np.ndarray


@part
def prompts_of_largest_variance(first_steps: FirstSteps, number: Count = 1) -> Curriculum:
    """Trains on all prompts first, and then on copies of those whose pass rate varied most.

    The score of a prompt is the population std of its pass rates, one for each time it was sampled
    in the first phase. Ties keep the order of the prompts. Then the weights and the optimizer are
    reset to the initial ones.

    Args:
      number: prompts that are chosen.
    Metrics: chosen_score (mean score of the chosen prompts; 0 in the first phase).
    Raises:
      ValueError: when a run begins, more prompts than the task has.
    """

    def init(setting):
        prompts = len(setting.task.train)
        if number > prompts:
            raise ValueError(
                f"prompts_of_largest_variance: number must be at most {prompts}, the train prompts"
                f" of task {setting.task.name!r}, got {number}"
            )
        return _Scores(np.zeros((prompts, 3)), np.zeros(number, np.int32))

    def propose(requests, state, turn):
        setting = turn.setting
        if turn.step < first_steps:
            epochs = order_of(setting)
            return requests_for(turn, epochs.indices(turn.step, turn.round, setting.rounds))
        return requests_for(turn, np.resize(state.chosen, setting.prompts))

    def observe(state, turn, seen, learned):
        if turn.step >= first_steps:
            return state, {"chosen_score": float(_scores(state.moments)[state.chosen].mean())}
        moments = state.moments.copy()
        for visit in visits_of(seen, len(moments)):
            moments[visit.number] += [1, visit.rate, visit.rate**2]
        order = np.argsort(-_scores(moments), kind="stable")
        chosen = order[:number].astype(np.int32)
        return _Scores(moments, chosen), {"chosen_score": 0.0}

    def events(state, step):
        return frozenset({"restart", "reset"} if step == first_steps else ())

    return Curriculum(propose, init, observe, events=events)


def _scores(moments: np.ndarray) -> np.ndarray:
    """The population std of each prompt's pass rates, [P]."""
    count = np.maximum(moments[:, 0], 1)
    variance = moments[:, 2] / count - (moments[:, 1] / count) ** 2
    # A variance of rounding errors is not a score.
    return np.sqrt(np.where(variance > ROUNDING**2, variance, 0))


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def one_shot(
    prompts: Sequence[NonNegativeInt] = (),
    first_steps: FirstSteps = 500,
    number: Count = 1,
    temperature: Temperature = 0.6,
    kl_coefficient: KLCoefficient = 0.001,
    entropy_coefficient: EntropyCoefficient = 0.001,
    **clip: Any,
) -> Recipe:
    """Applies GRPO with a KL and an entropy bonus to copies of a few prompts.

    Args:
      prompts: positions in the task's train prompts; none: those whose pass rate varied most.
      number: prompts that are chosen.
    """
    first = prompts_of_largest_variance(first_steps, number)
    if prompts:
        first = chosen_prompts(prompts)
    return Recipe(
        objective=clipped_objective(
            kl_coefficient=kl_coefficient, entropy_coefficient=entropy_coefficient, **clip
        ),
        experience=experience(first, plain(temperature=temperature)),
    )


METHOD = Method(
    one_shot,
    changes="curriculum, regularizer, sampling",
    shown=Shown("brackets:train=64", "experience/chosen_score", without={"prompts": 0}, within=8),
)
