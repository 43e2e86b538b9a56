"""QuestA: hard questions with the first half of their solution, then with the first quarter.

"QuestA: Expanding Reasoning Capacity in LLMs via Question Augmentation",
https://github.com/foreverlasting1202/QuestA

    stage 1: every prompt shows the first 50 % of the characters of its solution
    stage 2: from the weights of stage 1, with a new optimizer, the first 25 %
    A_i  = R_i - mean over the group, ratio clipped to 1 ± ε, mean over all tokens

Only the data changes: what is shown belongs to the prompt, nothing is corrected for it, and no
prompt is plain within a stage but those whose hint would hold the answer; evaluations are without
hints. A stage is a run of its own: the second has `--model` of the first and `fraction` 0.25. The
authors train with an asynchronous, decoupled PPO, rewards times 5 and no normalisation within
groups. Keep hard prompts alone whose solution holds the answer (`rlvr_jax.tasks.hints.augment` says
which).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience import experience, shuffled_epochs
from rlvr_jax.experience.asks import Shown, View, shows_nothing
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.objectives import group_centered
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.hints import augment
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Unit
from rlvr_jax.types.parts import part


@part
def show_as(view: View) -> Curriculum:
    """Asks what the curricula before it ask under another view.

    Args:
      view: such as `augmented(0.5)`.
    Reads: what the view reads. Metrics: shown_as_it_is (share of the groups whose prompt the view
      shows as it is, such as where a hint gives the answer away).
    """

    def propose(asks, state, turn):
        del state, turn
        return [replace(ask, view=view) for ask in asks]

    def observe(state, turn, seen, learned):
        del seen
        asked = [learned.asks[rows[0]] for rows in learned.groups]
        bare = [shows_nothing(replace(ask, view=view), turn.setting.task) for ask in asked]
        return state, {"shown_as_it_is": float(np.mean(bare))} if bare else {}

    return Curriculum(propose, observe=observe, reads=view.reads, views=(view,))


@part
def augmented(fraction: Unit) -> View:
    """Shows the first characters of the worked solution, as QuestA writes it (`augment`).

    As the task says (`Task.show_hint`), if it does. A prompt whose solution does not hold its
    answer, or whose hint would, is shown as it is.

    Args:
      fraction: of the solution's characters, in [0, 1].
    """

    def show(prompt: Prompt, task: Task) -> Shown:
        solution = "".join(prompt.solution)
        if task.show_hint is not None:
            return Shown(task.show_hint(prompt, solution[: int(fraction * len(solution))]))
        answer = str(prompt.answer)
        return Shown(augment(prompt.text, solution, answer, fraction) or prompt.text)

    return View(show, frozenset({"solution"}), fraction)


def questa(fraction: float = 0.5, clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.2) -> Recipe:
    """PPO's clip with centered rewards, on prompts that show the beginning of their solution.

    Args:
      fraction: of the solution's characters that is shown (p).
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=group_centered()
        ),
        experience=experience([shuffled_epochs(), show_as(augmented(fraction))]),
    )


METHOD = Method(
    questa,
    "QuestA: Expanding Reasoning Capacity in LLMs via Question Augmentation",
    "https://github.com/foreverlasting1202/QuestA",
    changes="curriculum, guidance",
    left_out="asynchronous training",
    reports=(
        "OpenMath-Nemotron-1.5B: AIME24 67.1, AIME25 59.5, HMMT25 35.5 (5.3, 10.0 and 4.0 more); "
        "its README has 72.5 on AIME24; pass@k rises, too"
    ),
    traps=(
        "stage 2 is a run that you start yourself, with pass rates counted anew; the hint is cut "
        "by characters; below ten of them, where the solution lacks the answer, or where the hint "
        "would hold it, prompts stay plain (`experience/shown_as_it_is`)"
    ),
)
