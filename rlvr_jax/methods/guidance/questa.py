"""QuestA: hard prompts with the first half of their solution, then with the first quarter.

"QuestA: Expanding Reasoning Capacity in LLMs via Question Augmentation",
https://github.com/foreverlasting1202/QuestA

    stage 1: every prompt shows the first 50 % of the characters of its solution
    stage 2: from the weights of stage 1, with a new optimizer, the first 25 %
    A_i  = R_i - mean over the group, ratio clipped to 1 ± ε, mean over all tokens

Only the data changes. The hint belongs to the prompt, and nothing corrects for it. A prompt is
plain if its hint would contain the answer. Evaluations have no hints. A stage is a run: the second
has `--model` of the first and `fraction` 0.25. The authors train with an asynchronous, decoupled
PPO, rewards times 5 and no normalization within groups. Use only hard prompts whose solution
contains the answer, which `rlvr_jax.tasks.derived.hints.augment` tests.

Left out: asynchronous training.
Reports: OpenMath-Nemotron-1.5B, in %: AIME24 67.1, AIME25 59.5, HMMT25 35.5 (gains of 5.3, 10.0 and
4.0). The README has 72.5 on AIME24. Pass@k also rises.
Traps: Stage 2 requires new pass rates. The hint ends at a character. A hint below ten characters,
or a solution without the answer, also leaves a prompt plain (`experience/shown_as_it_is`).
"""

from dataclasses import replace

import numpy as np

from rlvr_jax.experience import Curriculum, experience, shuffled_epochs
from rlvr_jax.experience.requests import ShownPrompt, View, shows_nothing
from rlvr_jax.objectives import clipped_objective, group_centered, part
from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.derived.hints import augment, gives_away
from rlvr_jax.types import Method, Recipe, Shown
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Unit


@part
def show_as(view: View) -> Curriculum:
    """Shows all requested prompts in another form, for example with a hint.

    Args:
      view: such as `augmented(0.5)`.
    Metrics: shown_as_it_is (fraction of the groups whose prompt the view shows unchanged, for
      example if the hint has the answer), hinted_fraction (of the others).
    """

    def propose(requests, state, turn):
        return [replace(request, view=view) for request in requests]

    def observe(state, turn, seen, learned):
        asked = [learned.requests[rows[0]] for rows in learned.groups]
        bare = [shows_nothing(replace(request, view=view), turn.setting.task) for request in asked]
        if not bare:
            return state, {}
        plain = float(np.mean(bare))
        return state, {"shown_as_it_is": plain, "hinted_fraction": 1 - plain}

    return Curriculum(propose, observe=observe, views=(view,))


@part(reads={"solution"})
def augmented(fraction: Unit) -> View:
    """Shows the first characters of the worked solution in QuestA's form (`augment`).

    `Task.show_hint` takes precedence. A prompt is shown unchanged if the hint would contain its
    answer. Without `Task.show_hint`, its solution must also contain the answer.
    """

    def show(prompt: Prompt, task: Task) -> ShownPrompt:
        solution = "".join(prompt.solution)
        if task.show_hint is not None:
            hint = solution[: int(fraction * len(solution))]
            shown = prompt.text if gives_away(hint, prompt) else task.show_hint(prompt, hint)
            return ShownPrompt(shown)
        shown = augment(prompt.text, solution, str(prompt.answer), fraction)
        return ShownPrompt(shown or prompt.text)

    return View(show, fraction=fraction)


def questa(fraction: Unit = 0.5, clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.2) -> Recipe:
    """Applies PPO's clip and centered rewards to prompts with the beginning of their solution.

    Args:
      fraction: fraction of the solution's characters that is shown (p).
    """
    return Recipe(
        objective=clipped_objective(clip_low, clip_high, advantage=group_centered()),
        experience=experience([shuffled_epochs(), show_as(augmented(fraction))]),
    )


METHOD = Method(
    questa,
    changes="curriculum, guidance",
    shown=Shown("hinted_brackets", "experience/hinted_fraction", steps=300),
)
