"""SvS: the policy writes variations of problems that it sometimes solves, and solves them.

"Beyond Pass@1: Self-Play with Variational Problem Synthesis Sustains RLVR",
https://github.com/MasterVito/SvS

    1. N responses to each prompt;  2. prompts with pass rate in [1/8, 1/2]: each correct response
    is a source;  3. N problems from each source, which is their whole prompt; they inherit the
    prompt's answer;  4. N responses to each problem;  5. R of a problem = 1 if its pass rate is in
    [1/8, 5/8], else 0
    loss = PPO's clip on the token mean over mixed groups of 1 and 4 and sources with R > 0 in 3

The policy never writes reference answers. A problem that reveals its answer is too easy, one that
is never solved too hard. `sources` bounds the rows of a step, which the authors do not; so does
`most`, because batches are split over devices. Without prompts in the band, the method is dynamic
sampling without refills.

Reports: Qwen2.5-32B-Instruct on DAPO-17k over plain RLVR: pass@32 rises by 18.3 points on AIME24
and by 22.8 on AIME25. Entropy is constant.
Traps: Prompts that are never solved are never varied. A copy of the prompt earns the full reward,
because novelty is not measured. A source of which all problems earn a reward does not train. The
negative reward of the README is 0 in the code.
"""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Bool

from rlvr_jax.experience import Batch, Stage, concatenate, experience
from rlvr_jax.experience.rewards.outcomes import Rate
from rlvr_jax.experience.stages.problems.written import (
    REQUEST,
    SOLVE,
    WRITE,
    WRITTEN,
    accepted_groups,
    earned,
    mixed,
    pass_rates,
    read_problems,
    requests_of_problems,
    with_request,
)
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe, Shown, is_correct, part
from rlvr_jax.types.hyperparameters import AtLeastOne, ClipHigh, ClipLow, Count, Epsilon, Unit
from rlvr_jax.types.passing import arguments_of

SOLVE_WRITTEN = 2
"""The cell of responses to problems that were written in the step."""

ROUNDING = 1e-9
"""Rates at a bound count as within it: 0.3 · 10 is not 3."""


@part(
    writes=frozenset({"cell"}),
    by_row=True,
    views=(replace(with_request(REQUEST, "", prompt_shown=False), responses=1), WRITTEN),
)
def synthesize_problems(
    low: Unit,
    high: Unit,
    written_low: Unit,
    written_high: Unit,
    sources: Count,
    most: AtLeastOne = 4.0,
) -> Stage:
    """The policy writes variations of problems from correct responses, and solves them.

    A correct response to a prompt of pass rate in [low, high] is a source. The policy sees the
    response without the question, and writes as many problems as a group has rows. Each has the
    prompt's answer and is answered as often. A problem earns 1 if its pass rate is in [written_low,
    written_high], else 0; a text without a problem earns 0. The batch then has groups of mixed
    outcomes of the prompts and of the written problems. Between them are the texts of each source
    if some earn a reward. Cells (record `cell`): 0 responses to prompts, 1 written problems, 2
    responses to these.

    Args:
      low, high: pass rates of prompts that are varied.
      written_low, written_high: pass rates of written problems that earn 1.
      sources: correct responses of a step from which problems are written, at most; chosen at
        random.
      most: maximum number of rows of an update, as a multiple of prompts × samples. Whole groups
        are left out from the end; the order above is ours.
    Reads: outcome, the responses' texts. Writes: cell. Metrics: sources (prompts that problems are
      written from), written_problems (problems read), written_fraction (fraction of the texts that
      earn 1), written_rate (mean pass rate of written problems), accepted_prompts,
      accepted_written, accepted_solved (trained groups).
    Raises:
      ValueError: bounds that do not ascend.
    """
    if not (low <= high and written_low <= written_high):
        raise ValueError(
            f"synthesize_problems: bounds must ascend, got {low}, {high} and {written_low},"
            f" {written_high}"
        )

    def apply(batch, actor, state, turn):
        task, samples = turn.setting.task, turn.setting.samples
        outcomes = batch.outcomes()
        rates = pass_rates(outcomes)
        batch = batch.with_rollouts(cell=np.full(len(batch), SOLVE, np.int32))
        parts = [accepted_groups(batch, mixed(outcomes))]
        metrics = {"accepted_prompts": float(mixed(outcomes).sum())}
        under = np.asarray(within_band(rates, low, high))
        correct = batch.decided & is_correct(batch.rollouts.outcome)
        rows = np.flatnonzero(correct & np.repeat(under, list(map(len, batch.groups))))
        rows = np.sort(turn.random().permutation(rows)[:sources])
        metrics["sources"] = float(len(rows))
        if len(rows):
            texts = batch.take(rows).responses
            requests = [
                replace(
                    batch.requests[row],
                    view=with_request(REQUEST, text.text, prompt_shown=False),
                    samples=samples,
                    first_sample=place * samples,
                )
                for place, (row, text) in enumerate(zip(rows, texts, strict=True))
            ]
            written = actor.draw(requests, turn.key)
            found = read_problems(written, actor.encode, turn)
            there = [place for place, problem in enumerate(found) if problem is not None]
            reward = np.zeros(len(written))
            metrics["written_problems"] = float(len(there))
            solved = None
            if there:
                problems = [found[place] for place in there]
                cells = [SOLVE_WRITTEN] * len(there)
                asked = requests_of_problems(problems, cells, samples, task)
                solved = actor.grade(actor.draw(asked, jax.random.fold_in(turn.key, 1)))
                own = pass_rates(solved.outcomes())
                reward[there] = np.asarray(within_band(own, written_low, written_high))
                metrics["written_rate"] = float(own.mean())
            metrics["written_fraction"] = float(reward.mean())
            written = earned(written, reward, WRITE)
            some = written.by_group(reward, 0.0).max(axis=1) > 0
            parts.append(accepted_groups(written, some))
            metrics["accepted_written"] = float(some.sum())
            if solved is not None:
                good = mixed(solved.outcomes())
                parts.append(accepted_groups(solved, good))
                metrics["accepted_solved"] = float(good.sum())
        whole = [part for part in parts if part is not None]
        if not whole:
            return batch.without(np.ones(len(batch), bool)), state, metrics
        most_rows = int(most * turn.setting.prompts * samples)
        return _first_rows(concatenate(whole).renumbered(), most_rows), state, metrics

    return Stage(apply, most=float(most))


def within_band(rate: Rate, low: float, high: float) -> Bool[Array, "..."]:
    """Whether a rate is in [low, high], both ends included up to rounding."""
    return (rate >= low - ROUNDING) & (rate <= high + ROUNDING)


def _first_rows(batch: Batch, most_rows: int) -> Batch:
    """The first groups, as many as fit into `most_rows` rows."""
    ends = np.cumsum(list(map(len, batch.groups)))
    return batch if ends[-1] <= most_rows else accepted_groups(batch, ends <= most_rows)


@arguments_of(
    synthesize_problems, low=0.125, high=0.5, written_low=0.125, written_high=0.625, sources=64
)
def svs(
    clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.2, epsilon: Epsilon = 1e-6, **problems: Any
) -> Recipe:
    """Applies GRPO to prompts, to problems written from responses, and to writing them."""
    return Recipe(
        objective=clipped_objective(clip_low, clip_high, epsilon=epsilon),
        experience=experience(stages=[synthesize_problems(**problems)]),
    )


METHOD = Method(
    svs,
    changes="sampling, selection, reward",
    shown=Shown("hinted_brackets:train=512", "experience/accepted_written"),
)
