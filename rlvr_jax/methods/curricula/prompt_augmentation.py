"""Prompt Augmentation: a random template for each group, and a reward for its format.

"Prompt Augmentation Scales up GRPO Training on Mathematical Reasoning",
https://github.com/wenquanlu/prompt-augmentation-GRPO

    template  one of 13 each time a prompt is sampled, equal for the whole group
    R         = correct + f(template, text); f is the fraction of the required tags that occur
              exactly once; 0 or 1 for templates with a fixed phrase; 1 for free ones
    loss      = PPO's clip-higher on the token mean; no KL, no entropy bonus

A template may contain the opening of the response, which belongs to the prompt and is not trained
on. Evaluations have the plain prompt. A constant score cancels in the group. Entropy falls as
without templates, but accuracy does not collapse with it. Tags and phrases are the authors', the
rest is ours.

Reports: Qwen2.5-Math-1.5B, mean of five maths sets: 44.5 % (abstract) or 45.2 % (README). One fixed
template collapses in that time.
Traps: An incorrect response in perfect format earns as much as a correct one without format. Limits
on prompts must hold for the longest template. The authors report that a KL removes the gain.
"""

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.experience import Curriculum, ShownPrompt, Stage, View, experience, shuffled_epochs
from rlvr_jax.experience.requests import shows_nothing
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, part

QUESTION = "{question}"


class Template(NamedTuple):
    """A way to pose a problem.

    Fields:
      name: of the view.
      text: template text, with {question} for the prompt's text.
      opening: given first tokens of the response, which are not trained on.
      required: texts, each of which must occur exactly once in the response.
      whole: the score is 1 if all occur once, else 0; otherwise it is the fraction that do.
    """

    name: str
    text: str = QUESTION
    opening: str = ""
    required: tuple[str, ...] = ()
    whole: bool = False

    @property
    def label(self) -> str:
        """The name, for labels of parts."""
        return self.name


BOXED = "Put your final answer within \\boxed{}."
FINAL = ("The final answer is:",)
LINES = ("<think>\n", "\n</think>\n", "\n<answer>\n", "\n</answer>")
_LINES = (
    f"{QUESTION}\n\nReason between <think> and </think>, then answer between <answer> and"
    " </answer>, each tag on a line of its own."
)
TAGS = ("<think>", "</think>", "<answer>", "</answer>")
_TAGS = f"{QUESTION}\n\nThink first: <think>reasoning</think><answer>answer</answer>."
CHECKED = (
    *("<solution>\n", "\n</solution>\n"),
    *("<check>\nLet's verify step by step", "\n</check>"),
)
_CHECKED = (
    f"{QUESTION}\n\nWrite <solution>, a line break, your solution and </solution>; then <check>, a"
    " line that begins with Let's verify step by step, and </check>."
)


TEMPLATES = (
    Template("box_behind", f"{QUESTION}\n\n{BOXED}"),
    Template("box_before", f"{BOXED}\n\n{QUESTION}"),
    Template("begun", f"{QUESTION}\n\n{BOXED}", opening="Let's think step by step.\n"),
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


@part
def random_templates(templates: Sequence[Template] = TEMPLATES) -> Curriculum:
    """Shows the requested prompts in random templates, one for all rows of a group.

    The template depends on the run's seed, the prompt, and the number of earlier steps with it.

    Args:
      templates: with different names.
    Metrics: templates_asked (different ones in the step), templated_fraction (fraction of the
      groups whose template changes the prompt).
    """
    names = [template.name for template in templates]
    if not names or len({*names}) < len(names):
        raise ValueError(
            f"random_templates: templates must be of different names, at least one, got {names}"
        )
    views = [template_view(template) for template in templates]

    def init(setting):
        return np.zeros(len(setting.task.train), np.int32)

    def propose(requests, state, turn):
        seed = turn.setting.seed

        def view(request):
            epoch = int(state[request.number]) if request.number < len(state) else 0
            return views[template_of(seed, epoch, request.number, len(views))]

        return [replace(request, view=view(request)) for request in requests]

    def observe(state, turn, seen, learned):
        numbers = {batch.requests[rows[0]].number for batch in seen for rows in batch.groups}
        state = state.copy()
        state[[number for number in numbers if number < len(state)]] += 1
        asked = [learned.requests[rows[0]] for rows in learned.groups]
        metrics = {"templates_asked": float(len({request.view.label for request in asked}))}
        if asked:
            plain = [shows_nothing(request, turn.setting.task) for request in asked]
            metrics["templated_fraction"] = 1 - float(np.mean(plain))
        return state, metrics

    return Curriculum(propose, init, observe, views=tuple(views))


def template_of(seed: int, epoch: int, index: int, number: int) -> int:
    """The template of prompt `index` after `epoch` steps with it, uniform over `number` of them.

    It is independent of other random choices.

    Args:
      seed: seed of the run.
      epoch: earlier steps with the prompt.
      index: number of the prompt.
      number: number of templates.
    """
    name = zlib.crc32(b"template_of")
    return int(np.random.default_rng([seed, name, epoch, index]).integers(number))


@part
def template_view(template: Template) -> View:
    """Shows a prompt in a template."""

    def show(prompt, task):
        return ShownPrompt(template.text.replace(QUESTION, prompt.text), template.opening)

    return View(show)


@part(by_row=True)
def reward_template(templates: Sequence[Template] = TEMPLATES) -> Stage:
    """Adds to the reward of every row its agreement with the format of its template.

    The outcome does not change.

    Args:
      templates: those of `random_templates`; rows of other views earn nothing more.
    Metrics: template_score (mean over the rows), template_contrast (fraction of the groups whose
      rows have different scores).
    """
    known = {template_view(template).label: template for template in templates}

    def score(request, response):
        template = known.get(request.view.label)
        return 0.0 if template is None else format_score(template, response.text)

    def apply(batch, actor, state, turn):
        scores = np.array(list(map(score, batch.requests, batch.responses)))
        reward = batch.rollouts.reward + scores.astype(batch.rollouts.reward.dtype)
        contrast = [len(set(scores[rows])) > 1 for rows in batch.groups]
        metrics = {"template_score": scores.mean(), "template_contrast": np.mean(contrast)}
        return batch.rewarded(reward), state, {name: float(x) for name, x in metrics.items()}

    return apply


def format_score(template: Template, text: str) -> float:
    """Fraction of the required texts that occur exactly once; 1 for a template without any."""
    met = [text.count(wanted) == 1 for wanted in template.required]
    if not met:
        return 1.0
    return float(all(met)) if template.whole else sum(met) / len(met)


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon", clip_high=0.28)
def prompt_augmentation(templates: Sequence[Template] = TEMPLATES, **clip: Any) -> Recipe:
    """Applies clip-higher GRPO without KL to prompts in random templates.

    Args:
      templates: templates with different names, one of which is sampled for each group.
    """
    return Recipe(
        objective=clipped_objective(**clip),
        experience=experience(
            [shuffled_epochs(), random_templates(templates)], stages=[reward_template(templates)]
        ),
    )


METHOD = Method(
    prompt_augmentation,
    changes="curriculum, reward",
    shown=Shown(
        "arithmetic",
        "experience/template_contrast",
        settings={"model": "smollm2", "prompts_per_step": 16, "response_tokens": 32},
        steps=100,
        within=1,
    ),
)
