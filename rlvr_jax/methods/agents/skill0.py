"""SKILL0: skills in the prompt at first, fewer from phase to phase, and none in the end.

"SKILL0: In-Context Agentic Reinforcement Learning for Skill Internalization",
https://github.com/ZJU-REAL/SkillZero

    phases   at most 6, 3, 0 skills, a third of the run each
    every 10 steps  Δ_k = success with the shown skills - success without any, on prompts of kind k
    next     the general skill, then those with Δ_k ≥ 0 by falling Δ_k, up to the phase's number
    R        = success - 0.1 · invalid actions, of answers in turns
    loss     = PPO's clip on the token mean, A of the group; no KL

Rows are learned from under the prompt that they were drawn from: ratios are exact. The last phase
has the prompts of deployment. With Δ ≥ 0 noise keeps a useless skill every second time; a skill
that was taken away keeps the Δ of when it was last shown, where the authors' code would measure
noise. `skills` are texts as name=text with | between them, the first one general; the others are
judged by the prompts of the kind of their name, and shown to all. With `max_turns` answers are
episodes with the task's environment; an action is invalid if it is malformed or its tool refuses
it (`invalid`). Their bonus is for contexts that are shorter as images than as text, every 8th step
(`skill_reward`): contexts are text here, whose compression is 1 and whose bonus is 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience import experience, shape, shuffled_epochs, turns
from rlvr_jax.experience.batch import ROUNDING
from rlvr_jax.experience.curricula.batches import asks_for
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.experience.views import with_note
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.arguments import check_at_least
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.rewards.parts import Shaping, shaping
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon
from rlvr_jax.types.parts import part

GENERAL = "general"
"""The skill that is not judged, and goes last."""


class Skills(NamedTuple):
    """Of each of K skills: whether it is shown, bool [K], and how much better the prompts of its
    kind were solved with the shown skills than without when it was shown last, float32 [K]."""

    active: np.ndarray
    gain: np.ndarray


def most_skills(step: int, total: int, every: int, sets: Sequence[int]) -> int:
    """How many skills a step may show: as many steps for each of `sets`, in whole evaluations.

    Args:
      step: from 1.
      total: steps of the run.
      every: steps between two evaluations.
      sets: of the phases; their number should divide total / every.
    """
    each = max(1, (total // every) // len(sets))
    return sets[min(((step - 1) // every) // each, len(sets) - 1)]


def next_active(gain: Mapping[str, float], most: int) -> list[str]:
    """The skills that stay: the general one, then those that do no harm, the most helpful first.

    Args:
      gain: by name, in the order of the table, without the general one.
      most: skills in all; 0: none.
    """
    if not most:
        return []
    helping = [name for name, value in gain.items() if value >= -ROUNDING]
    order = sorted(helping, key=lambda name: -gain[name])
    return [GENERAL, *order][:most]


def skill_reward(success: float, invalid: int, compression: float, step: int) -> float:
    """success - 0.1 · invalid actions, and for a success in every 8th step 0.01 ln compression.

    Args:
      compression: how much shorter the context was than as text, at least 1.
      step: from 1.
    """
    bonus = 0.01 * math.log(compression) if success and step % 8 == 0 else 0.0
    return success - 0.1 * invalid + bonus


@part
def withdraw_skills(
    skills: Mapping[str, str], sets: Sequence[int], every: Count, rated: Count, samples: Count
) -> Curriculum:
    """Shows skills beside every prompt, fewer from phase to phase, and in the last phase none.

    Every prompt is shown all skills that are active, whatever its kind. Every so many steps some
    prompts are rated with them and without any. A skill of another name than "general" is judged
    by the prompts of that kind: those that did not help there are taken away, down to the number
    of the phase. What a skill has gained is remembered from when it was last shown.

    Args:
      skills: texts by name, the general one first.
      sets: how many skills each of equally long phases may show, such as (6, 3, 0).
      every: steps between two ratings.
      rated: prompts of each rating.
      samples: answers to each, with and without skills.
    Metrics: active_skills; rated_with, rated_without (pass rates), where prompts were rated.
    Raises:
      ValueError: no general skill in the first place, no phases, a number below 1.
    """
    names = list(skills)
    if not names or names[0] != GENERAL:
        raise ValueError(f"withdraw_skills: skills must begin with {GENERAL!r}, got {names}")
    if not len(sets) or min(sets) < 0:
        raise ValueError(f"withdraw_skills: sets must be counts, at least one, got {list(sets)}")

    def view(active):
        return with_note(
            "\n".join(skills[name] for name, on in zip(names, active, strict=True) if on)
        )

    def init(setting):
        del setting
        return Skills(np.ones(len(names), bool), np.zeros(len(names), np.float32))

    def rates(turn):
        # Steps of the run count from 1; the first rating comes with the last step of its interval.
        return (turn.step + 1) % every == 0

    def shown(state, turn):
        most = most_skills(turn.step + 1, turn.setting.steps, every, sets)
        order = np.flatnonzero(state.active)[:most]
        return np.isin(np.arange(len(names)), order)

    def propose(asks, state, turn):
        active = shown(state, turn)
        told = [replace(ask, view=view(active)) if active.any() else ask for ask in asks]
        if turn.round or not rates(turn) or not active.any():
            return told
        train = turn.setting.task.train
        chosen = asks_for(turn, turn.random().permutation(len(train))[:rated])
        ratings = [replace(ask, samples=samples, rating=True) for ask in chosen]
        return [*ratings, *(replace(ask, view=view(active)) for ask in ratings), *told]

    def observe(state, turn, seen, learned):
        del learned
        active = shown(state, turn)
        told = {"active_skills": float(active.sum())}
        if not rates(turn) or not active.any():
            return state, told
        found: dict[bool, dict[int, float]] = {True: {}, False: {}}
        kinds = {}
        for batch in seen:
            for rows, outcomes in zip(batch.groups, batch.outcomes(), strict=True):
                ask = batch.asks[rows[0]]
                if ask.rating and not np.isnan(outcomes).all():
                    aided = ask.view.label != "plain"
                    found[aided][ask.number] = float(np.nanmean(outcomes))
                    kinds[ask.number] = ask.prompt.kind
        both = [n for n in found[True] if n in found[False]]
        gain = state.gain.copy()
        for place, name in enumerate(names):
            own = [found[True][n] - found[False][n] for n in both if kinds[n] == name]
            if active[place] and own:
                gain[place] = np.mean(own)
        if both:
            told["rated_with"] = float(np.mean([found[True][n] for n in both]))
            told["rated_without"] = float(np.mean([found[False][n] for n in both]))
        most = most_skills(turn.step + 2, turn.setting.steps, every, sets)
        known = dict(zip(names[1:], gain[1:].tolist(), strict=True))
        kept = next_active(known, most)
        return Skills(np.isin(names, kept), gain), told

    first = view(np.ones(len(names), bool))
    return Curriculum(propose, init, observe, views=(first,))


@part
def outcome_and_turns() -> Shaping:
    """The outcome, and the sum of what the turns earned.

    Reads: outcome, process_reward.
    """

    def reward(rollouts):
        return rollouts.outcome + jnp.sum(rollouts.process_reward, axis=1)

    return shaping(reward, reads=("process_reward",))


def skill0(
    skills: str = "general=Work step by step, and check what you have found.",
    sets: Sequence[int] = (6, 3, 0),
    every: int = 10,
    rated: int = 32,
    rating_samples: int = 4,
    max_turns: int = 0,
    reply_tokens: int = 512,
    invalid: Sequence[str] = ("malformed_calls", "tool_errors"),
    invalid_cost: float = 0.1,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on prompts with skills that are withdrawn.

    Args:
      skills: name=text, with | between them; the first one is general.
      sets: skills that each phase may show.
      every: steps between two ratings.
      rated: prompts of a rating.
      rating_samples: answers to each, with and without skills.
      max_turns: of an answer with the task's environment; 0: answers are one text.
      reply_tokens: of the environment's reply, at most.
      invalid: what the environment counts as an invalid action (`Reply.info`).
      invalid_cost: of each, taken off the reward.
    Raises:
      ValueError: a skill without a name; a cost below 0.
    """
    table = {}
    for line in skills.split("|"):
        name, there, text = line.partition("=")
        if not there or not name.strip():
            raise ValueError(f"skill0: skills must be name=text with | between them, got {line!r}")
        table[name.strip()] = text.strip()
    check_at_least(0, "skill0", invalid_cost=invalid_cost)
    costs = dict.fromkeys(invalid, invalid_cost)
    draw = turns(None, max_turns, reply_tokens, costs) if max_turns else None
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=group_normalized(epsilon)
        ),
        experience=experience(
            [shuffled_epochs(), withdraw_skills(table, sets, every, rated, rating_samples)],
            draw=draw,
            stages=[shape(outcome_and_turns())] if max_turns else [],
        ),
    )


METHOD = Method(
    skill0,
    "SKILL0: In-Context Agentic Reinforcement Learning for Skill Internalization",
    "https://github.com/ZJU-REAL/SkillZero",
    changes="curriculum, guidance, sampling, reward",
    left_out="contexts that are drawn as images, and their bonus",
    reports=(
        "over RL without skills: ALFWorld 9.7 and Search-QA 6.6 points, with under 0.5k tokens of "
        "context a step"
    ),
    traps=(
        "a rating of 32 prompts is noisy at 0.1, so useless skills stay half of the time; the "
        "general skill is never judged; a skill whose name is no kind of the task is never rated "
        "and stays; the code rates dropped skills by noise"
    ),
)
