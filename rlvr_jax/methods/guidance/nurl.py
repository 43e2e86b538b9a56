"""NuRL: a prompt without a correct response is sampled again with an abstract hint.

"NuRL: Nudging the Boundaries of LLM Reasoning" (only the abstract was read)

    hints are written by the initial policy, once: an explanation of the gold answer, then the
    abstract knowledge that the prompt requires
    1. GRPO until it has converged; then prompts that are always solved leave the set
    2. a group without a correct response is sampled again: N - 1 responses with the hint, one plain
    3. GRPO over the group; each row is trained under the prompt it was sampled from, ratio 1

The plain row lowers the baseline, which raises the advantage of hinted successes. The command
`python -m rlvr_jax hints` writes the hints as a task `hints:FILE` (`Prompt.hints`). It requires a
policy that reads words. A reconstruction: the requests, the test for leaks, the rule for solved
prompts and the test of convergence are ours. Training has converged when the mean pass rate of the
last `window` steps is less than `least_gain` above that of the `window` steps before. GRPO is PPO's
clip on the token mean.

Reports: above GRPO on six benchmarks with three models. Llama 3B: 35.87 to 37.49 % on average.
Pass@1024 on GPQA: 63.6 to 69.7 %; GRPO does not change it.
Traps: Hints before GRPO has converged gain less. Abstract knowledge is best, a partial solution
worse, the answer worst; a hint that contains the answer is not shown. A group without a correct
response has no gradient. The hints of `hinted_brackets` are its own, the first word of a solution.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.experience import (
    Curriculum,
    ShownPrompt,
    Stage,
    View,
    all_incorrect,
    experience,
    part,
    redraw,
)
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.curricula.history import visits_of
from rlvr_jax.experience.curricula.shrinking import picks_from_pool
from rlvr_jax.experience.views import NOTE
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.derived.hints import gives_away
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import Count, NonNegative, NonNegativeInt


class Progress(NamedTuple):
    """The pass rates of the last steps, from which convergence follows.

    Fields:
      rates: float64 [2 window], the oldest first.
      steps: int32 [], steps with a graded group.
      converged: bool [], it stays True.
    """

    rates: np.ndarray
    steps: np.ndarray
    converged: np.ndarray


def no_progress(window: int) -> Progress:
    """The state before the first step."""
    return Progress(np.zeros(2 * window), np.int32(0), np.bool_(False))


def progress_after(state: Progress, rate: float, least_gain: float) -> Progress:
    """The state after a step with this pass rate; a step without grades (NaN) changes nothing."""
    if np.isnan(rate):
        return state
    rates, steps = np.append(state.rates[1:], rate), state.steps + np.int32(1)
    before, latest = np.split(rates, 2)
    still = steps >= len(rates) and latest.mean() - before.mean() < least_gain
    return Progress(rates, steps, np.bool_(state.converged or still))


def _rate(seen: Sequence[Batch], prompts: int) -> float:
    """Mean pass rate of the plain groups of a step; NaN without grades."""
    rates = [visit.rate for visit in visits_of(seen, prompts)]
    return float(np.mean(rates)) if rates else float("nan")


@part
def unsolved_pool(window: Count, least_gain: NonNegative) -> Curriculum:
    """Picks from all prompts until convergence, then from those that are not yet solved.

    A prompt is solved if all responses of its last group were correct; it does not return. If all
    are solved, all stay. A step takes the least sampled prompts of the pool.

    Args:
      window, least_gain: as for `nurl`.
    Metrics: pool_prompts (prompts of the pool), left_prompts (prompts that left it), pool_rate
      (mean pass rate when last sampled).
    """
    picks = picks_from_pool(lambda steps, pool, history: pool)

    def init(setting):
        return picks.init(setting), no_progress(window)

    def propose(requests, state, turn):
        return picks.propose(requests, state[0], turn)

    def observe(state, turn, seen, learned):
        picked, progress = state
        picked, metrics = picks.observe(picked, turn, seen, learned)
        later = progress_after(progress, _rate(seen, len(picked.pool)), least_gain)
        if later.converged and not progress.converged:
            left = picked.pool & ~(picked.history.latest >= 1)
            pool = left if left.any() else picked.pool
            metrics = metrics | {"left_prompts": float(np.sum(~pool))}
            picked = picked._replace(pool=pool)
        return (picked, later), metrics

    return Curriculum(propose, init, observe)


@part
def hint_failed_groups(window: Count, least_gain: NonNegative, plain: NonNegativeInt) -> Stage:
    """After convergence, samples groups without a correct response again with their hint.

    Args:
      window, least_gain: as for `nurl`.
      plain: rows of such a group without the hint.
    Metrics: converged (1 from the first step after convergence on, else 0); those of `redraw`.
    """
    again = redraw(all_incorrect, written_hint(), plain=plain)

    def init(setting):
        return no_progress(window)

    def apply(batch, actor, state, turn):
        metrics = {"converged": float(state.converged), "redrawn_fraction": 0.0}
        if state.converged:
            batch, _, found = again.apply(batch, actor, (), turn)
            metrics |= found
        return batch, state, metrics

    def observe(state, turn, seen, learned):
        rate = _rate(seen, len(turn.setting.task.train))
        return progress_after(state, rate, least_gain), {}

    return Stage(apply, init, observe, reads=again.reads, views=again.views, counts=again.counts)


@part(reads={"hints"})
def written_hint() -> View:
    """Shows the first hint of a prompt (`Prompt.hints`) unless it contains the answer.

    The form is that of `Task.show_hint`, else a sentence after the prompt's text.
    `rlvr_jax.tasks.derived.hints.answer_texts` lists the texts that count as the answer.
    """

    def show(prompt: Prompt, task: Task) -> ShownPrompt:
        text = prompt.hints[0]
        if gives_away(text, prompt):
            return ShownPrompt(prompt.text)
        if task.show_hint is not None:
            return ShownPrompt(task.show_hint(prompt, text))
        return ShownPrompt(f"{prompt.text}{NOTE}{text}")

    return View(show)


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def nurl(
    window: Count = 20,
    least_gain: NonNegative = 0.01,
    plain_rows: NonNegativeInt = 1,
    **clip: Any,
) -> Recipe:
    """Applies GRPO, after convergence with hints for groups without a correct response.

    Args:
      window: steps whose mean pass rate is compared with that of as many steps before.
      least_gain: the difference below which training has converged.
      plain_rows: rows without the hint in a group that is sampled again.
    """
    hinted = hint_failed_groups(window, least_gain, plain_rows)
    return Recipe(
        objective=clipped_objective(**clip),
        experience=experience(unsolved_pool(window, least_gain), stages=[hinted]),
    )


METHOD = Method(
    nurl,
    changes="curriculum, sampling, guidance",
    evidence="reconstruction",
    shown=Shown(
        "hinted_brackets",
        "experience/redrawn_fraction",
        hyperparameters={"window": 2, "least_gain": 0.1},
        steps=300,
        within=6,
    ),
)
