"""OLR: where labels may be wrong, a prompt is graded by the answer that the policy settles on.

"Can LLMs Learn to Reason Robustly under Noisy Supervision?", https://github.com/ShenzhiYang2000/OLR

    at every visit e of a prompt
    M_e   = the most frequent of its n answers, if only one is;  p_e = its share
    slope = least squares of p_1 … p_e;  mode = the most frequent of M_1 … M_e, if only one is
    if e > start, slope ≥ 0.05 and mode = M_e: this step's label is M_e, else the given one
    loss  = GRPO's clip on the token mean + 0.001 k3(π ‖ π_ref)

Nothing is stored but the history, so a label reverts when the test fails; a share that saturates
has a falling slope, and late repair stops by itself. Equal answers are those that the task names
alike (`Grade.answer`). The authors' script has a slope of 0.025, too.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience import experience
from rlvr_jax.experience.batch import ROUNDING
from rlvr_jax.experience.parts import Stage
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks.synthesis.concepts import slopes
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Count,
    Epsilon,
    Finite,
    KLCoefficient,
    NonNegativeInt,
)
from rlvr_jax.types.parts import part

NONE = -1
"""In the place of a majority: there is none."""


TIE = -2
"""In the place of the commonest majority of all visits: there are several."""


class Labels(NamedTuple):
    """Of each of P prompts, for its last E visits, the newest last.

    Fields:
      majority: int32 [P, E], the class of the commonest answer, `NONE` if there is none.
      rate: float32 [P, E], its share of the answers, 0 if there is none.
      visits: int32 [P].
    """

    majority: np.ndarray
    rate: np.ndarray
    visits: np.ndarray


class Verdict(NamedTuple):
    """What a visit says of the label: the majority of its answers and their share, over the visits
    so far the slope of these shares and the commonest majority, and whether to train with it."""

    majority: int
    rate: float
    slope: float
    mode: int
    replaced: bool


def _only_most_frequent(values: Sequence[int]) -> tuple[int, int] | None:
    """The value that occurs most, with how often; None if several do."""
    counts = Counter(values).most_common(2)
    if not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]):
        return None
    return counts[0]


def judged_label(
    answers: Sequence[int],
    majorities: Sequence[int],
    rates: Sequence[float],
    visit: int,
    start: int,
    slope: float,
) -> Verdict:
    """Whether the majority of a visit's answers is to be its label.

    It is behind visit `start` where the shares of the majorities rise by `slope` a visit at least
    and the commonest majority of all visits is that of this one.

    Args:
      answers: classes of the answers, negative ones agree with no other.
      majorities, rates: of the visits before, in order.
      visit: how many there were in all.
      start, slope: of the rule.
    """
    # An answer that cannot be read is one of its own.
    named = [a if a >= 0 else -1 - number for number, a in enumerate(answers)]
    found = _only_most_frequent(named)
    majority, count = found if found and found[0] >= 0 else (NONE, 0)
    rate = count / max(len(answers), 1)
    (rise,) = slopes(np.array([[*rates, rate]])).tolist()
    mode = _only_most_frequent([*majorities, majority])
    mode = TIE if mode is None else mode[0]
    replaced = visit > start and rise >= slope - ROUNDING and mode == majority != NONE
    return Verdict(majority, rate, rise, mode, replaced)


@part
def relabel(start: NonNegativeInt, slope: Finite, visits: Count) -> Stage:
    """Grades a group by its commonest answer where that has become the policy's settled one.

    What is asked is `judged_label`, of the visits of the prompt so far; nothing else changes the
    label, which is the given one again at the next visit unless the test passes again. It writes
    outcome, reward and grades, and so says another word than the verifier.

    Args:
      start: visits before a label can be replaced.
      slope: that the share of the majority must rise by, each visit.
      visits: that are remembered, the last ones.
    Reads: Grade.answer. Writes: outcome, reward. Metrics: relabelled_groups (share of the groups),
      relabelled_rows (share of the rows whose outcome changed).
    Raises:
      ValueError: a negative start, a slope that is not finite, no visits; when a run begins, a task
        whose grades name no answers.
    """

    def init(setting):
        if not setting.task.answers:
            raise ValueError(
                f"relabel: task must name answers (Task.answers), got {setting.task.name!r}"
            )
        prompts = len(setting.task.train)
        return Labels(
            np.full((prompts, visits), NONE, np.int32),
            np.zeros((prompts, visits), np.float32),
            np.zeros(prompts, np.int32),
        )

    def apply(batch, actor, state, turn):
        del actor, turn
        majority, rate, count = (array.copy() for array in state)
        outcome, grades = batch.rollouts.outcome.copy(), list(batch.grades)
        replaced = np.zeros(len(batch.groups), bool)
        for place, rows in enumerate(batch.groups):
            number = batch.asks[rows[0]].number
            judged = rows[batch.decided[rows]]
            if number >= len(count) or not len(judged):
                continue
            answers = [_class(batch.grades[row].answer) for row in judged]
            known = min(int(count[number]), visits)
            past = slice(visits - known, visits)
            told = judged_label(
                answers, majority[number, past], rate[number, past], count[number], start, slope
            )
            majority[number] = [*majority[number, 1:], told.majority]
            rate[number] = [*rate[number, 1:], told.rate]
            count[number] += 1
            if told.replaced:
                replaced[place] = True
                for row, answer in zip(judged, answers, strict=True):
                    outcome[row] = float(answer == told.majority)
                    grades[row] = replace(
                        grades[row], outcome=float(outcome[row]), reward=float(outcome[row])
                    )
        changed = outcome != batch.rollouts.outcome
        told = {
            "relabelled_groups": float(replaced.mean()),
            "relabelled_rows": float(changed.mean()),
        }
        by_label = np.repeat(replaced, list(map(len, batch.groups)))
        reward = np.where(by_label & batch.decided, outcome, batch.rollouts.reward)
        batch = batch.with_rollouts(outcome=outcome, reward=reward.astype(outcome.dtype))
        return replace(batch, grades=grades), Labels(majority, rate, count), told

    return Stage(apply, init, by_row=True, of_task=frozenset({"answers"}))


def _class(answer: str | None) -> int:
    """A number of an answer's text, the same in every run; -1 for none."""
    if answer is None:
        return -1
    return int.from_bytes(hashlib.sha256(answer.encode()).digest()[:4], "big") >> 1


def olr(
    start: int = 4,
    slope: float = 0.05,
    visits: int = 10,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    kl_coefficient: KLCoefficient = 0.001,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on groups that are graded by their majority once that has settled.

    Args:
      start: visits of a prompt before its label can be replaced.
      slope: least rise of the majority's share, each visit.
      visits: that are remembered.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            kl_coefficient=kl_coefficient,
        ),
        experience=experience(stages=[relabel(start, slope, visits)]),
    )


METHOD = Method(
    olr,
    "Can LLMs Learn to Reason Robustly under Noisy Supervision?",
    "https://github.com/ShenzhiYang2000/OLR",
    changes="reward",
    reports=(
        "Qwen3-4B base, 10 to 90 % of labels wrong: 3.6 to 3.9 points on six maths sets, 3.3 to "
        "4.6 on three others"
    ),
    traps=(
        "the share is that of each visit's own majority, so a change of majority does not show; "
        "nothing is relabelled in the first visits or where answers tie; a saturated share gives "
        "the wrong label back"
    ),
)
