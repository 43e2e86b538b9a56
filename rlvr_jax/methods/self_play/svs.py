"""SvS: the policy writes variations of problems that it solves now and then, and solves them.

"Beyond Pass@1: Self-Play with Variational Problem Synthesis Sustains RLVR",
https://github.com/MasterVito/SvS

    1. N answers to each prompt;  2. prompts with pass rate in [1/8, 1/2]: each right answer is a
    source;  3. N problems from each source, which see the answer alone and inherit the prompt's;
    4. N answers to each problem;  5. R of a problem = 1 if its pass rate is in [1/8, 5/8], else 0
    loss = PPO's clip on the token mean over mixed groups of 1 and 4 and sources with R > 0 in 3

No answer is ever made by the policy. A problem that gives its answer away is too easy, one that
nobody solves too hard; a copy of the prompt earns everything, for nothing asks for novelty.
`sources` bounds what a step draws, which the authors leave open; so does `most`, with batches cut
to devices. Without prompts in the band it is dynamic sampling without refills.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import jax
import numpy as np
from jaxtyping import Array, Bool

from rlvr_jax.experience import experience
from rlvr_jax.experience.batch import Batch, concatenate
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.problems.synthesize import REQUEST
from rlvr_jax.experience.stages.problems.written import (
    SOLVE,
    WRITE,
    WRITTEN,
    asks_of_problems,
    earned,
    kept_groups,
    mixed,
    pass_rates,
    read_problems,
    with_request,
)
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.arguments import check_within
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.rewards.proposals import Rate
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, Range
from rlvr_jax.types.parts import part

SOLVE_WRITTEN = 2
"""The cell of answers to problems that were written in the step."""


RIGHT = 0.5
"""An outcome above this counts as right."""


@part(by_row=True)
def synthesize_problems(
    low: float,
    high: float,
    written_low: float,
    written_high: float,
    sources: Count,
    most: Annotated[float, Range(1, finite=False)] = 4.0,
) -> Stage:
    """Has the policy write variations from right answers to prompts that it solves now and then.

    A right answer to a prompt of pass rate in [low, high] is a source: the policy is shown the
    answer without the question, and writes as many problems as a group has rows; each keeps the
    prompt's answer, and is asked that often. What was written earns 1 if its problem is solved at a
    rate in [written_low, written_high], else 0, also where there is none. Behind it stand in the
    batch: groups of mixed outcomes of the prompts; of each source what was written, if some of it
    earned something; and groups of mixed outcomes of what was written. Rows are labelled
    (`Rollouts.cell`): 0 answers to prompts, 1 written problems, 2 answers to these.

    Args:
      low, high: pass rates of prompts that sources are taken from.
      written_low, written_high: pass rates of written problems that earn something.
      sources: of a step at most, drawn at random of those there are.
      most: rows behind the stage at most, as a multiple of those before; the others are left out by
        whole groups, in the order above, which ours is.
    Reads: outcome, the responses' texts. Writes: cell. Metrics: sources, written_problems (read),
      written_share (of what was written, earned something), written_rate (mean pass rate of written
      problems), kept_prompts, kept_written, kept_solved (groups).
    Raises:
      ValueError: bounds outside [0, 1] or in the wrong order, no sources, a multiple below 1.
    """
    bounds = {"low": low, "high": high, "written_low": written_low, "written_high": written_high}
    check_within(0, 1, "synthesize_problems", **bounds)
    if not (low <= high and written_low <= written_high):
        raise ValueError(
            f"synthesize_problems: bounds must not fall, got {low}, {high} and {written_low},"
            f" {written_high}"
        )

    def apply(batch, actor, state, turn):
        task, samples = turn.setting.task, turn.setting.samples
        outcomes = batch.outcomes()
        rates = pass_rates(outcomes)
        batch = batch.with_rollouts(cell=np.full(len(batch), SOLVE, np.int32))
        parts = [kept_groups(batch, mixed(outcomes))]
        told = {"kept_prompts": float(mixed(outcomes).sum())}
        under = np.asarray(within_band(rates, low, high))
        right = batch.decided & (batch.rollouts.outcome > RIGHT)
        rows = np.flatnonzero(right & np.repeat(under, list(map(len, batch.groups))))
        rows = np.sort(turn.random().permutation(rows)[:sources])
        told["sources"] = float(len(rows))
        if len(rows):
            texts = batch.take(rows).responses
            asks = [
                replace(
                    batch.asks[row],
                    view=with_request(REQUEST, text.text, prompt_shown=False),
                    samples=samples,
                    first_sample=place * samples,
                )
                for place, (row, text) in enumerate(zip(rows, texts, strict=True))
            ]
            written = actor.draw(asks, turn.key)
            found = read_problems(written, actor, turn)
            there = [place for place, problem in enumerate(found) if problem is not None]
            reward = np.zeros(len(written))
            told["written_problems"] = float(len(there))
            solved = None
            if there:
                problems = [found[place] for place in there]
                cells = [SOLVE_WRITTEN] * len(there)
                asked = asks_of_problems(problems, cells, samples, task)
                solved = actor.grade(actor.draw(asked, jax.random.fold_in(turn.key, 1)))
                own = pass_rates(solved.outcomes())
                reward[there] = np.asarray(within_band(own, written_low, written_high))
                told["written_rate"] = float(own.mean())
            told["written_share"] = float(reward.mean())
            written = earned(written, reward, WRITE)
            some = written.by_group(reward, 0.0).max(axis=1) > 0
            parts.append(kept_groups(written, some))
            told["kept_written"] = float(some.sum())
            if solved is not None:
                good = mixed(solved.outcomes())
                parts.append(kept_groups(solved, good))
                told["kept_solved"] = float(good.sum())
        whole = [part for part in parts if part is not None]
        if not whole:
            return batch.without(np.ones(len(batch), bool)), state, told
        room = int(most * turn.setting.prompts * samples)
        return _first_rows(concatenate(whole).renumbered(), room), state, told

    shown = replace(with_request(REQUEST, "", prompt_shown=False), responses=1)
    views = (shown, WRITTEN)
    gives = frozenset({"cell"})
    return Stage(apply, views=views, writes=gives, most=float(most))


def _first_rows(batch: Batch, room: int) -> Batch:
    """The first groups, as many as there is room for."""
    ends = np.cumsum(list(map(len, batch.groups)))
    return batch if ends[-1] <= room else kept_groups(batch, ends <= room)


ROUNDING = 1e-9
"""Shares at a bound count as within it: 0.3 · 10 is not 3."""


def within_band(rate: Rate, low: float, high: float) -> Bool[Array, "..."]:
    """Whether a rate is in [low, high], both ends included, whatever rounding does."""
    return (rate >= low - ROUNDING) & (rate <= high + ROUNDING)


def svs(
    low: float = 0.125,
    high: float = 0.5,
    written_low: float = 0.125,
    written_high: float = 0.625,
    sources: int = 64,
    most: float = 4.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on prompts, on problems that the policy writes from its answers, and on writing them.

    Args:
      low, high: pass rates of prompts that are varied.
      written_low, written_high: pass rates of written problems that earn something.
      sources: right answers of a step that problems are written from, at most.
      most: rows of an update at most, as a multiple of prompts × samples.
    """
    stage = synthesize_problems(low, high, written_low, written_high, sources, most)
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=group_normalized(epsilon)
        ),
        experience=experience(stages=[stage]),
    )


METHOD = Method(
    svs,
    "Beyond Pass@1: Self-Play with Variational Problem Synthesis Sustains RLVR",
    "https://github.com/MasterVito/SvS",
    changes="sampling, selection, reward",
    reports=(
        "Qwen2.5-32B-Instruct on DAPO-17k, over plain RLVR: pass@32 18.3 points on AIME24, 22.8 "
        "on AIME25; entropy stays"
    ),
    traps=(
        "prompts never solved are never varied; a copy of the prompt earns everything; a source "
        "of which all problems earn is dead weight; the README's negative reward is 0 in the code"
    ),
)
