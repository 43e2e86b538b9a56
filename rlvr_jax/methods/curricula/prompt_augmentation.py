"""Prompt Augmentation: another template at every visit, and a reward for keeping its form.

"Prompt Augmentation Scales up GRPO Training on Mathematical Reasoning",
https://github.com/wenquanlu/prompt-augmentation-GRPO

    each time that a prompt is asked one of 13 templates is drawn; its group shares it
    R    = correct + f(template, text): the share of the required tags that occur exactly once; 0
           or 1 for templates with a fixed phrase; 1 for free ones
    loss = PPO's clip-higher on the token mean; no KL, no entropy bonus

What a template opens for the response is prompt and not learned from. Evaluations have the plain
prompt. At full weight a wrong answer in perfect form earns as much as a right one without; a
constant score vanishes in the group. Entropy falls as without templates, but accuracy does not
collapse with it. Tags and phrases are the authors', the other words ours.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience import experience, shuffled_epochs
from rlvr_jax.experience.asks import Shown, View
from rlvr_jax.experience.parts import Curriculum, Stage
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon
from rlvr_jax.types.parts import part

QUESTION = "{question}"


class Template(NamedTuple):
    """A way to ask.

    Fields:
      name: of the view.
      text: what is shown, with {question} for the prompt's text.
      opening: what the response begins with; it is given and not learned from.
      required: texts each of which is to occur exactly once in the response.
      whole: the score is 1 if all do, else 0; else the share of those that do.
    """

    name: str
    text: str = QUESTION
    opening: str = ""
    required: tuple[str, ...] = ()
    whole: bool = False

    @property
    def label(self) -> str:
        """Its name, for labels of parts."""
        return self.name


BOXED = "Put your final answer within \\boxed{}."


SENTENCE = "Let's think step by step."


LINES = ("<think>\n", "\n</think>\n", "\n<answer>\n", "\n</answer>")


TAGS = ("<think>", "</think>", "<answer>", "</answer>")


CHECKED = (
    *("<solution>\n", "\n</solution>\n"),
    *("<check>\nLet's verify step by step", "\n</check>"),
)


FINAL = ("The final answer is:",)


_LINES = (
    f"{QUESTION}\n\nReason between <think> and </think>, then answer between <answer> and"
    " </answer>, each tag on a line of its own."
)


_TAGS = f"{QUESTION}\n\nThink first: <think>reasoning</think><answer>answer</answer>."


_CHECKED = (
    f"{QUESTION}\n\nWrite <solution>, a line break, your solution and </solution>; then <check>, a"
    " line that begins with Let's verify step by step, and </check>."
)


TEMPLATES = (
    Template("box_behind", f"{QUESTION}\n\n{BOXED}"),
    Template("box_before", f"{BOXED}\n\n{QUESTION}"),
    Template("begun", f"{QUESTION}\n\n{BOXED}", opening=f"{SENTENCE}\n"),
    Template("lines", _LINES, required=LINES),
    Template("lines_begun", _LINES, opening=LINES[0], required=LINES[1:]),
    Template("tags", _TAGS, required=TAGS),
    Template("tags_begun", _TAGS, opening=TAGS[0], required=TAGS[1:]),
    Template("formal", f"Problem. {QUESTION}\n\nGive a formal derivation. {BOXED}"),
    Template(
        "final_line",
        f"{QUESTION}\n\nSolve it in numbered steps. End with: The final answer is:",
        required=FINAL,
        whole=True,
    ),
    Template("numbered", f"{QUESTION}\n\nNumber your steps 1., 2., 3. and so on. {BOXED}"),
    Template(
        "final_sentence",
        f"Problem: {QUESTION}\n\nSolution, closed by the words The final answer is: and the answer",
        required=FINAL,
        whole=True,
    ),
    Template("checked", _CHECKED, required=CHECKED),
    Template("checked_begun", _CHECKED, opening=CHECKED[0], required=CHECKED[1:]),
)
"""Thirteen: three with tags that are opened already; the words are ours, the tags the authors'."""


@part
def random_templates(templates: Sequence[Template] = TEMPLATES) -> Curriculum:
    """Asks what the curricula before it ask in a random template, one for all rows of a group.

    Which one depends on the run's seed, the prompt, and how often that was asked before.

    Args:
      templates: of different names.
    Metrics: templates_asked (different ones in the step).
    Raises:
      ValueError: no templates, or two of one name.
    """
    names = [template.name for template in templates]
    if not names or len({*names}) < len(names):
        raise ValueError(
            f"random_templates: templates must be of different names, at least one, got {names}"
        )
    views = [template_view(template) for template in templates]

    def init(setting):
        return np.zeros(len(setting.task.train), np.int32)

    def propose(asks, state, turn):
        seed = turn.setting.seed

        def view(ask):
            epoch = int(state[ask.number]) if ask.number < len(state) else 0
            return views[template_of(seed, epoch, ask.number, len(views))]

        return [replace(ask, view=view(ask)) for ask in asks]

    def observe(state, turn, seen, learned):
        del turn
        asked = {batch.asks[rows[0]].number for batch in seen for rows in batch.groups}
        state = state.copy()
        state[[number for number in asked if number < len(state)]] += 1
        return state, {"templates_asked": float(len({ask.view.label for ask in learned.asks}))}

    return Curriculum(propose, init, observe, views=tuple(views))


@part(by_row=True)
def reward_template(templates: Sequence[Template] = TEMPLATES) -> Stage:
    """Adds to the reward of every row how well it keeps the form of the template it was asked in.

    The outcome stays what the verifier said.

    Args:
      templates: those of `random_templates`; rows of other views earn nothing more.
    Reads: the responses' texts. Writes: reward. Metrics: template_score (mean over the rows).
    """
    known = {template_view(template).label: template for template in templates}

    def apply(batch, actor, state, turn):
        del actor, turn
        asked = [known.get(ask.view.label) for ask in batch.asks]
        scores = np.array(
            [
                0.0 if template is None else format_score(template, response.text)
                for template, response in zip(asked, batch.responses, strict=True)
            ]
        )
        reward = batch.rollouts.reward + scores.astype(batch.rollouts.reward.dtype)
        return batch.with_rollouts(reward=reward), state, {"template_score": float(scores.mean())}

    return apply


def format_score(template: Template, text: str) -> float:
    """How well a response keeps the form of its template, in [0, 1]; 1 if that asks for nothing."""
    met = [text.count(wanted) == 1 for wanted in template.required]
    if not met:
        return 1.0
    return float(all(met)) if template.whole else sum(met) / len(met)


def template_of(seed: int, epoch: int, index: int, number: int) -> int:
    """Which of `number` templates a prompt is asked in, uniform, whatever else is drawn.

    Args:
      seed: of the run.
      epoch: how often the prompt was asked before.
      index: of the prompt.
    """
    name = zlib.crc32(b"template_of")
    return int(np.random.default_rng([seed, name, epoch, index]).integers(number))


@part
def template_view(template: Template) -> View:
    """Shows a prompt in a template."""

    def show(prompt, task):
        del task
        return Shown(template.text.replace(QUESTION, prompt.text), template.opening)

    return View(show)


def prompt_augmentation(
    templates: Sequence[Template] = TEMPLATES,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Clip-higher GRPO without KL on prompts in random templates.

    Args:
      templates: that are drawn from.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=group_normalized(epsilon)
        ),
        experience=experience(
            [shuffled_epochs(), random_templates(templates)], stages=[reward_template(templates)]
        ),
    )


METHOD = Method(
    prompt_augmentation,
    "Prompt Augmentation Scales up GRPO Training on Mathematical Reasoning",
    "https://github.com/wenquanlu/prompt-augmentation-GRPO",
    changes="curriculum, reward",
    reports=(
        "Qwen2.5-Math-1.5B, five maths sets: 44.5 (abstract) or 45.2 (README) on average; one "
        "fixed template collapses in that time"
    ),
    traps=(
        "a wrong answer in perfect form earns as much as a right one without; limits on prompts "
        "must hold for the longest template; a KL takes its gain away, they say"
    ),
)
