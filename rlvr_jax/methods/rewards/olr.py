"""OLR: under noisy labels, grades a prompt by the answer on which the policy settles.

"Can LLMs Learn to Reason Robustly under Noisy Supervision?", https://github.com/ShenzhiYang2000/OLR

    each time e that a prompt is sampled:
    M_e   = the most frequent of its n answers, if it is unique;  p_e = its fraction
    slope = least squares of p_1 … p_e;  mode = the most frequent of M_1 … M_e, if it is unique
    if e > start, slope ≥ 0.05 and mode = M_e: the label of this step is M_e, else the given label
    loss  = GRPO's clip on the token mean + 0.001 k3(π ‖ π_ref)

Only the history is stored, so a label reverts when the test fails. A fraction that saturates has a
falling slope, so late repair stops. Answers are equal if the task assigns them one name
(`Grade.answer`). The authors' scripts also use a slope of 0.025.

Reports: Qwen3-4B base, 10 to 90 % of labels incorrect: 3.6 to 3.9 points on six maths sets, 3.3 to
4.6 on three others.
Traps: The fraction is that of each epoch's own majority, so a change of majority is not visible. No
prompt is relabelled in the first epochs or if answers tie. A saturated fraction restores the
incorrect label.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.experience import Stage, experience, part
from rlvr_jax.experience.batch import ROUNDING
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks.synthesis.concepts import slopes
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import Count, Finite, NonNegativeInt

NONE = -1  # in place of a majority that is not unique


class Labels(NamedTuple):
    """History of P prompts over the last E times each was sampled, the newest last.

    Fields:
      majority: int32 [P, E], the class of the most frequent answer, `NONE` if it is not unique.
      rate: float32 [P, E], its fraction of the answers, 0 if there is none.
      times_sampled: times sampled, int32 [P].
    """

    majority: np.ndarray
    rate: np.ndarray
    times_sampled: np.ndarray


@part
def relabel(start: NonNegativeInt, slope: Finite, times_sampled: Count) -> Stage:
    """Grades a group by its most frequent answer where `judged_label` replaces the label.

    It overwrites the verifier's outcome, reward and grades.

    Metrics: relabelled_groups (fraction of the groups), relabelled_rows (fraction of the rows whose
      outcome changed).
    """

    def init(setting):
        prompts = len(setting.task.train)
        return Labels(
            np.full((prompts, times_sampled), NONE, np.int32),
            np.zeros((prompts, times_sampled), np.float32),
            np.zeros(prompts, np.int32),
        )

    def apply(batch, actor, state, turn):
        majority, rate, count = (array.copy() for array in state)
        outcome, grades = batch.rollouts.outcome.copy(), list(batch.grades)
        replaced = np.zeros(len(batch.groups), bool)
        for place, rows in enumerate(batch.groups):
            number = batch.requests[rows[0]].number
            graded = rows[batch.decided[rows]]
            if number >= len(count) or not len(graded):
                continue
            answers = [_class(batch.grades[row].answer) for row in graded]
            known = min(int(count[number]), times_sampled)
            past = slice(times_sampled - known, times_sampled)
            label = judged_label(
                answers, majority[number, past], rate[number, past], count[number], start, slope
            )
            majority[number] = [*majority[number, 1:], label.majority]
            rate[number] = [*rate[number, 1:], label.rate]
            count[number] += 1
            if label.replaced:
                replaced[place] = True
                for row, answer in zip(graded, answers, strict=True):
                    outcome[row] = float(answer == label.majority)
                    grades[row] = replace(
                        grades[row], outcome=float(outcome[row]), reward=float(outcome[row])
                    )
        metrics = {
            "relabelled_groups": float(replaced.mean()),
            "relabelled_rows": float((outcome != batch.rollouts.outcome).mean()),
        }
        by_label = np.repeat(replaced, list(map(len, batch.groups)))
        reward = np.where(by_label & batch.decided, outcome, batch.rollouts.reward)
        return batch.graded(grades).rewarded(reward), Labels(majority, rate, count), metrics

    return Stage(apply, init, by_row=True, of_task=frozenset({"answers"}))


def _class(answer: str | None) -> int:
    """A number of an answer's text, equal in every run; -1 for none."""
    if answer is None:
        return -1
    return int.from_bytes(hashlib.sha256(answer.encode()).digest()[:4], "big") >> 1


class JudgedLabel(NamedTuple):
    """The majority of a group's answers, its fraction, and whether it replaces the label."""

    majority: int
    rate: float
    replaced: bool


def judged_label(
    answers: Sequence[int],
    majorities: Sequence[int],
    rates: Sequence[float],
    visit: int,
    start: int,
    slope: float,
) -> JudgedLabel:
    """Applies the rule of the module to one group.

    Args:
      answers: classes of the answers; negative ones agree with no other.
      majorities, rates: values of the earlier times the prompt was sampled, in order.
      visit: number of earlier times in total.
      start: earlier times above which a label may be replaced.
      slope: smallest slope of the fractions for a replacement, per time.
    """
    # An unreadable answer is a class of its own.
    named = [a if a >= 0 else -1 - number for number, a in enumerate(answers)]
    found = _unique_mode(named)
    majority, count = found if found and found[0] >= 0 else (NONE, 0)
    rate = count / max(len(answers), 1)
    (rise,) = slopes(np.array([[*rates, rate]])).tolist()
    mode = _unique_mode([*majorities, majority])
    settled = majority != NONE and mode is not None and mode[0] == majority
    return JudgedLabel(majority, rate, visit > start and rise >= slope - ROUNDING and settled)


def _unique_mode(values: Sequence[int]) -> tuple[int, int] | None:
    """The most frequent value and its count; None if several are equally frequent."""
    counts = Counter(values).most_common(2)
    if not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]):
        return None
    return counts[0]


@arguments_of(
    clipped_objective, "clip_low", "clip_high", "epsilon", "kl_coefficient", kl_coefficient=0.001
)
def olr(
    start: NonNegativeInt = 4, slope: Finite = 0.05, times_sampled: Count = 10, **clip: Any
) -> Recipe:
    """Applies GRPO to groups that are graded by their majority once it has settled.

    Args:
      start: times a prompt is sampled before its label can be replaced.
      slope: least rise of the majority's fraction per time sampled.
      times_sampled: number of remembered times.
    """
    return Recipe(
        objective=clipped_objective(**clip),
        experience=experience(stages=[relabel(start, slope, times_sampled)]),
    )


METHOD = Method(
    olr,
    changes="reward",
    shown=Shown(
        "calculations:sums=64,wrong_labels=0.5",
        "experience/relabelled_groups",
        without={"start": 1000},
        within=8,
    ),
)
