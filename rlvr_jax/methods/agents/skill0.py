"""SKILL0: prompts show skills at first, fewer from phase to phase, and none at the end.

"SKILL0: In-Context Agentic Reinforcement Learning for Skill Internalization",
https://github.com/ZJU-REAL/SkillZero

    phases   at most 6, 3, 0 skills, a third of the run each
    every 10 steps  Δ_k = success with the shown skills - success without any, on prompts of kind k
    next     the general skill, then those with Δ_k ≥ 0 by falling Δ_k, up to the phase's number
    R        = success - 0.1 · invalid actions, of responses in turns
    loss     = PPO's clip on the token mean, A of the group; no KL

Rows are trained under the prompt of their sampling, so ratios are exact. The prompts of the last
phase are those of deployment. A withdrawn skill keeps the Δ of its last rating; the authors' code
would measure noise.

`skills` has the form name=text, with | between skills. The first one is general. The others belong
to the kind of prompts of their name; skills of kinds that the task lacks are left out. All prompts
show all active skills. The default table has the kinds of `arithmetic`. Ratings use development
prompts: as many train prompts of each kind, which the run does not train on (at most half of a
kind). With the task's environment, or `tools`, responses are episodes. An action is invalid if it
is malformed or its tool refuses it (`invalid`). The authors also add 0.01 ln(compression) to the
reward of a success in every 8th step, where contexts are images. Here contexts are text, so
compression is 1 and the bonus 0.

Left out: contexts that are rendered as images, and their bonus.
Reports: gains over RL without skills in points: ALFWorld 9.7, Search-QA 6.6, with less than 0.5k
tokens of context per step.
Traps: A rating of 32 prompts has noise of about 0.1, so a useless skill passes Δ ≥ 0 every second
time. The general skill is never rated.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience import Curriculum, RunInfo, experience, shape, shuffled_epochs
from rlvr_jax.experience.batch import ROUNDING
from rlvr_jax.experience.curricula.batches import requests_for
from rlvr_jax.experience.rewards.parts import Shaping, shaping
from rlvr_jax.experience.views import with_note
from rlvr_jax.methods._tools import Tools
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, part
from rlvr_jax.types.hyperparameters import Count, NonNegative

GENERAL = "general"
"""The skill that is not rated, and is withdrawn last."""
SKILLS = (
    "general=Work step by step, and check what you have found."
    "|product=A product is repeated addition: double and add, then give only the number."
    "|sum=Count on from the larger number, then give only the number."
    "|two_digit_sum=Add the tens, add the ones, carry if the ones pass nine, and give the number."
)
"""Skills by kind of the prompts of `arithmetic`."""


@part
def withdraw_skills(
    skills: Mapping[str, str], sets: Sequence[int], every: Count, rated: Count, samples: Count
) -> Curriculum:
    """Shows skills with every prompt, fewer from phase to phase, and in the last phase none.

    Every prompt shows all active skills, of any kind. Every `every` steps the development prompts,
    which are not trained on, are rated with the skills and without any. A skill of another name
    than "general" is rated on the prompts of that kind; the task must have the kind. Skills
    that lowered the pass rate are withdrawn. Of the others, the most helpful ones remain, as many
    as the phase allows.

    Args:
      skills: texts by name, the general one first.
      sets: number of skills that each phase may show. Phases are equally long.
      every: steps from one rating of the skills to the next.
      rated: number of development prompts of a rating.
      samples: number of responses to a rated prompt (`rating_samples` of `skill0`).
    Metrics: active_skills (shown skills), harmful_skills (withdrawn because Δ < 0), rated_with,
      rated_without (pass rates with and without skills).
    Raises:
      ValueError: no general skill in the first place, or no phases.
    """
    names = list(skills)
    if not names or names[0] != GENERAL:
        raise ValueError(f"withdraw_skills: skills must begin with {GENERAL!r}, got {names}")
    if not len(sets) or min(sets) < 0:
        raise ValueError(f"withdraw_skills: sets must be counts, at least one, got {list(sets)}")

    def view(active):
        shown = [skills[name] for name, on in zip(names, active, strict=True) if on]
        return with_note("\n".join(shown))

    def init(setting):
        kinds = {GENERAL, *(prompt.kind for prompt in setting.task.train)}
        known = np.array([name in kinds for name in names], bool)
        return Skills(known, np.zeros(len(names), np.float32))

    def rates(turn):
        # Steps of the run count from 1; the first rating comes with the last step of its interval.
        return (turn.step + 1) % every == 0

    def shown(state, turn):
        most = most_skills(turn.step + 1, turn.setting.steps, every, sets)
        order = np.flatnonzero(state.active)[:most]
        return np.isin(np.arange(len(names)), order)

    def propose(requests, state, turn):
        active = shown(state, turn)
        held, instead = development(turn.setting, rated)
        trained = [
            replace(request, prompt=turn.setting.task.train[number], number=number)
            if (number := instead.get(request.number)) is not None
            else request
            for request in requests
        ]
        aided = [
            replace(request, view=view(active)) if active.any() else request for request in trained
        ]
        if turn.round or not rates(turn) or not active.any():
            return aided
        chosen = requests_for(turn, held)
        ratings = [replace(request, samples=samples, rating=True) for request in chosen]
        return [*ratings, *(replace(request, view=view(active)) for request in ratings), *aided]

    def observe(state, turn, seen, learned):
        active = shown(state, turn)
        metrics = {"active_skills": float(active.sum()), "harmful_skills": 0.0}
        if not rates(turn) or not active.any():
            return state, metrics
        found: dict[bool, dict[int, float]] = {True: {}, False: {}}
        kinds = {}
        for batch in seen:
            for rows, outcomes in zip(batch.groups, batch.outcomes(), strict=True):
                request = batch.requests[rows[0]]
                if request.rating and not np.isnan(outcomes).all():
                    aided = request.view.label != "plain"
                    found[aided][request.number] = float(np.nanmean(outcomes))
                    kinds[request.number] = request.prompt.kind
        both = [n for n in found[True] if n in found[False]]
        gain = state.gain.copy()
        for place, name in enumerate(names):
            own = [found[True][n] - found[False][n] for n in both if kinds[n] == name]
            if active[place] and own:
                gain[place] = np.mean(own)
        if both:
            metrics["rated_with"] = float(np.mean([found[True][n] for n in both]))
            metrics["rated_without"] = float(np.mean([found[False][n] for n in both]))
        most = most_skills(turn.step + 2, turn.setting.steps, every, sets)
        metrics["harmful_skills"] = float(np.sum(active[1:] & (gain[1:] < -ROUNDING)))
        kinds = {prompt.kind for prompt in turn.setting.task.train}
        known = dict(zip(names[1:], gain[1:].tolist(), strict=True))
        known = {name: value for name, value in known.items() if name in kinds}
        return Skills(np.isin(names, next_active(known, most)), gain), metrics

    first = view(np.ones(len(names), bool))
    return Curriculum(propose, init, observe, views=(first,))


@functools.lru_cache(maxsize=4)
def development(setting: RunInfo, rated: int) -> tuple[list[int], dict[int, int]]:
    """The development prompts, and for each a prompt of its kind that is trained on instead.

    Every kind has as many of them, and at least half of its prompts are trained on. The choice is a
    function of the seed.

    Args:
      rated: number of development prompts at most.
    """
    members: dict[str, list[int]] = {}
    for number, prompt in enumerate(setting.task.train):
        members.setdefault(prompt.kind, []).append(number)
    random = np.random.default_rng([setting.seed, rated])
    held, instead = [], {}
    for own in members.values():
        order = random.permutation(own).tolist()
        count = min(max(rated // len(members), 1), len(order) // 2)
        held += order[:count]
        instead |= dict(zip(order[:count], order[count:], strict=False))
    return held[:rated], instead


class Skills(NamedTuple):
    """The state of each of K skills.

    Fields:
      active: bool [K], whether it may be shown.
      gain: float32 [K], success with the shown skills less success without, on the prompts of its
        kind, when it was last shown.
    """

    active: np.ndarray
    gain: np.ndarray


def most_skills(step: int, total: int, every: int, sets: Sequence[int]) -> int:
    """The number of skills that a step may show; phases are equally long, in whole ratings.

    Args:
      step: from 1.
      total: steps of the run.
      every: steps between two ratings.
      sets: numbers of the phases; their count should divide total / every.
    """
    each = max(1, (total // every) // len(sets))
    return sets[min(((step - 1) // every) // each, len(sets) - 1)]


def next_active(gain: Mapping[str, float], most: int) -> list[str]:
    """The skills that stay: the general one, then those that do no harm, the most helpful first.

    Args:
      gain: by name, in the order of the table, without the general one.
      most: maximum number of skills, with the general one; 0: none.
    """
    if not most:
        return []
    helping = [name for name, value in gain.items() if value >= -ROUNDING]
    order = sorted(helping, key=lambda name: -gain[name])
    return [GENERAL, *order][:most]


@part
def outcome_and_turns() -> Shaping:
    """R: the outcome plus the rewards of all turns.

    Reads: outcome, process_reward.
    """

    return shaping(
        lambda rollouts: rollouts.outcome + jnp.sum(rollouts.records["process_reward"], axis=1),
        reads=("process_reward",),
    )


@arguments_of(Tools, into="tools")
@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def skill0(
    skills: str = SKILLS,
    sets: Sequence[int] = (6, 3, 0),
    every: Count = 10,
    rated: Count = 32,
    rating_samples: Count = 4,
    invalid: Sequence[str] = ("malformed_calls", "tool_errors"),
    invalid_cost: NonNegative = 0.1,
    *,
    tools: Tools,
    **clip: Any,
) -> Recipe:
    """Applies GRPO to prompts with skills that are withdrawn.

    Args:
      skills: name=text, with | between them; the first one is general.
      sets: number of skills that each phase may show.
      every: steps between two ratings.
      rated: number of development prompts.
      rating_samples: responses to each of these prompts, with and without skills.
      invalid: counts of the environment that are invalid actions (`Reply.info`).
      invalid_cost: subtracted from the reward for each invalid action.
    Raises:
      ValueError: a skill without a name.
    """
    table = {}
    for line in skills.split("|"):
        name, there, text = line.partition("=")
        if not there or not name.strip():
            raise ValueError(f"skill0: skills must be name=text with | between them, got {line!r}")
        table[name.strip()] = text.strip()
    costs = dict.fromkeys(invalid, invalid_cost)
    draw = tools.draw(costs=costs) if tools else None
    return Recipe(
        objective=clipped_objective(**clip),
        experience=experience(
            [shuffled_epochs(), withdraw_skills(table, sets, every, rated, rating_samples)],
            draw=draw,
            stages=[shape(outcome_and_turns())] if tools else [],
        ),
    )


METHOD = Method(
    skill0,
    changes="curriculum, guidance, sampling, reward",
    # A harmful note for products, a helpful one for sums.
    shown=Shown(
        "noted_calculations",
        "experience/harmful_skills",
        without={"skills": "general=?="},
        hyperparameters={"skills": "general=?=|product=*?|sum=+?", "sets": "3,1,0", "every": 1},
    ),
)
