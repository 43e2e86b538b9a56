"""SUPO: an agent replaces its context by its own summaries; one reward trains all segments.

Lu et al. 2025, "Scaling LLM Multi-turn RL with End-to-end Summarization-based Context Management",
https://arxiv.org/abs/2510.06727

    a segment of L tokens that does not end is summarized; the next one begins with the summary
    A    = (R - mean) / (std + 1e-6) over the responses to a prompt, std with n - 1, of all segments
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n over segments of finished responses

A reconstruction: clip, aggregation, L (half a row) and S = 2 summaries (`most`) are ours. A
response is left out of the loss if it is truncated or has used up its turns or summaries. It still
counts in the statistics of its group.

Each segment is trained in its own context. The instruction, the copied summary and the replies of
tools have no loss. With `tools`, a response is written in turns, as in the paper. The length of a
segment is compared with L after each turn. The episode of the tools continues across segments.

Reports: gains over GRPO: CodeGym 3.2 % and BrowseComp-Plus 14.0 %, with no larger context. More
summaries at test time increase the gain.
Traps: A response that ends within half the budget is never summarized; for it, SUPO is GRPO. A mean
over segments would favour responses with many summaries. Without tools, a response is one text.
With tools, a call that is not closed at the end of its segment is lost.
"""

from __future__ import annotations

import concurrent
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlvr_jax.experience import Actor, Draw, StepContext, experience, turns
from rlvr_jax.experience.batch import Batch, by_trace
from rlvr_jax.experience.draws.asking import THREADS, Driver, Episode, environment_of
from rlvr_jax.experience.draws.trees.segments import Segments
from rlvr_jax.experience.draws.trees.turn_segments import TurnRow, answer_turns, draw_turn
from rlvr_jax.experience.requests import SampleRequest, numbered_answers
from rlvr_jax.methods._tools import Tools
from rlvr_jax.objectives import Transform, clipped_objective, has_tokens, trace_normalized
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.tools.environment import Environment
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, part, replace
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Count,
    Epsilon,
    NonNegativeInt,
    ReplyTokens,
)

SEGMENT = 1 << 20
"""Offset of a segment's sample numbers; a prompt has fewer samples."""

QUARTERS = 4
"""Turns are sampled with limits in quarters of the budget, so few functions are compiled."""


@part
def summaries(
    most: NonNegativeInt = 2,
    instruction: str = " Summarise. ",
    context: Count | None = None,
    summary: Count | None = None,
    **sampling: Any,
) -> Draw:
    """Writes each response in segments, between which the policy summarizes its work.

    A segment that has not ended after `context` tokens gets the instruction. The policy then writes
    a summary of at most `summary` tokens, which ends the segment. The next segment has the summary
    after the prompt, and so on. The last one, after `most` summaries, has the run's whole budget.

    A segment is a row that is trained in the context of sampling. The policy's tokens and its
    summary are trained, the instruction and the copied summary are not. The rows of a response
    share one `trace` and are in order. The last one is graded. `truncated` is that of the whole
    response.

    Args:
      most: maximum number of summaries of a response (S).
      instruction: text that requests a summary.
      context: tokens of a segment before it (L), the copied summary included; None: half the run's
        response_tokens.
      summary: maximum number of tokens of a summary; None: a quarter of response_tokens.
      sampling: settings of the sampler that are prescribed, as in `plain`.
    Metrics: answers (responses), segments (their segments, so that the quotient is the mean),
      summaries (segments that end with one).
    """
    how = SummarySizes(most, instruction, context, summary)

    def apply(requests, actor, state, turn):
        budget = turn.setting.response_tokens
        until, size, suffix = how.sizes("summaries", actor, budget)
        segments = Segments(actor, turn.key)

        def write(part):
            limits = np.where(part.whole, 0, np.maximum(until - part.prefill, 1))
            tips = np.empty(len(part.rows), int)
            # Copied summaries differ in length: one call for each limit.
            for limit in np.unique(limits):
                at = np.flatnonzero(limits == limit)
                own, zero = [part.requests[row] for row in part.rows[at]], np.zeros(len(at), int)
                tips[at] = segments.draw(own, part.sample[at], zero - 1, zero, int(limit) or None)
            return tips, ~part.whole & segments.goes_on(tips)

        def sum_up(part, on, tips):
            cut = segments.batch.rollouts.length[tips]
            own = [part.requests[row] for row in part.rows[on]]
            return segments.draw(own, part.sample[on], tips, cut, size, inject=[suffix] * len(own))

        room = budget - len(suffix) - size
        batch = how.grow(requests, actor, turn, segments, room, write=write, sum_up=sum_up)
        responses = sum(request.samples for request in requests)
        counts = {"answers": responses, "segments": len(batch), "summaries": len(batch) - responses}
        return batch, state, {name: float(value) for name, value in counts.items()}

    return Draw(apply, sampling=sampling, of_policy=True, most=float(most + 1), splits=most > 0)


@part
def summarized_turns(
    environment: Environment | None = None,
    limit: Count = 8,
    reply_tokens: ReplyTokens = 512,
    most: NonNegativeInt = 2,
    instruction: str = " Summarise. ",
    context: Count | None = None,
    summary: Count | None = None,
    **sampling: Any,
) -> Draw:
    """Writes responses in turns with an environment, as `turns`, and in segments, as `summaries`.

    If a segment has `context` tokens or more after a turn and its reply, it gets the instruction.
    The policy then writes a summary, which ends the segment. The next segment begins with only the
    prompt and the summary. The episode continues: the environment is not reset.

    A turn may exceed `context` by half of the tokens that are left before the instruction, or more
    if a reply of `reply_tokens` still fits. A turn without a call at its end there is summarized
    as it is. A reply is shortened so that the instruction and the summary fit. In the last segment,
    after `most` summaries, a reply that does not fit ends the response, which is truncated. A
    summary that makes a call ends there, and the call gets no reply.

    Rows, traces and grades are those of `summaries`. A reply is not trained, and its `origin` is a
    tool. Turns are numbered through the response: a summary belongs to the policy's turn after the
    last reply. An environment that judges grades the response as a whole, with the rewards of all
    its segments. All prompts are sampled together, so sampling waits for replies.

    Args:
      environment, reply_tokens, sampling: as for `turns`.
      limit: maximum number of replies of a response, in all its segments together.
      most, instruction, context, summary: as for `summaries`.
    Writes: turn, origin, process_reward, as `turns`.
    Metrics: answers (responses), segments (their segments), summaries (segments that end with one),
      turns (turns of the policy, summaries included), tool_tokens (tokens of replies), cut_replies
      (replies that are shortened or left out), lost_answers (ungraded responses); those of the
      environment.
    """
    how = SummarySizes(most, instruction, context, summary)

    def init(setting):
        environment_of("summarized_turns", environment, setting.task, alone=True)
        return ()

    def apply(requests, actor, state, turn):
        budget = turn.setting.response_tokens
        world = environment_of("summarized_turns", environment, turn.setting.task, alone=True)
        until, size, suffix = how.sizes("summarized_turns", actor, budget)
        room, quarter = budget - len(suffix) - size, -(-budget // QUARTERS)
        rows = [
            TurnRow(number, sample, episode=Episode(request.prompt))
            for number, (request, sample) in enumerate(numbered_answers(requests))
        ]
        with concurrent.futures.ThreadPoolExecutor(THREADS) as threads:
            driver = Driver(actor, world, turn, limit, reply_tokens, sampling, threads)
            segments = Segments(actor, turn.key, driver.sampling)

            def write(part):
                own = [rows[number] for number in part.rows]
                for row, sample, whole in zip(own, part.sample, part.whole, strict=True):
                    row.tip, row.cut, row.inject, row.answered = -1, 0, (), 0
                    row.sample = int(sample)
                    row.spare = None if whole else budget - room
                ends = max((until + room + 1) // 2, room - reply_tokens)
                ends = np.where(part.whole, budget, ends)
                ends = np.maximum(ends, part.prefill + 1)
                full = np.where(part.whole, budget + 1, until)
                going, on = np.arange(len(own)), np.zeros(len(own), bool)
                while len(going):
                    some = [own[place] for place in going]
                    written = [row.cut + len(row.inject) for row in some]
                    written = np.where([row.tip < 0 for row in some], part.prefill[going], written)
                    left = int((ends[going] - written).max())
                    draw_turn(
                        segments, part.requests, some, -(-left // quarter) * quarter, ends[going]
                    )
                    answer_turns(driver, segments, part.requests, some)
                    replied = np.array([row.active for row in some])
                    beyond = [row.cut + len(row.inject) for row in some] >= full[going]
                    batch = segments.batch
                    cut = [driver.unended(batch, row.tip, row.answered) for row in some]
                    on[going] = np.where(replied, beyond, cut)
                    going = going[replied & ~beyond]
                return np.array([row.tip for row in own]), on & ~part.whole

            def sum_up(part, on, tips):
                own = [rows[number] for number in part.rows[on]]
                return draw_turn(segments, part.requests, own, size, behind=suffix)

            batch = how.grow(requests, actor, turn, segments, room, write=write, sum_up=sum_up)
        trace = batch.rollouts.records["trace"]
        rewards = np.bincount(
            trace, batch.rollouts.records["process_reward"].sum(axis=1), len(rows)
        )
        if grades := driver.grades([row.episode for row in rows], rewards):
            batch = replace(batch, brought=[grades[number] for number in trace])
        lost, counts = sum(row.episode.lost for row in rows), driver.counts
        counts.update(
            answers=len(rows),
            segments=len(batch),
            summaries=len(batch) - len(rows),
            turns=len(segments),
            lost_answers=lost,
        )
        return batch, state, {name: float(value) for name, value in counts.items()}

    whole = turns(environment, limit, reply_tokens, **sampling)
    return replace(whole, apply=apply, init=init, most=float(most + 1), splits=most > 0)


@dataclass(frozen=True)
class Segment:
    """One segment of the responses that continue.

    Fields:
      rows: int [n], numbers of the responses.
      requests: requests of all responses, with the tokens that this segment begins with.
      sample: int [n], numbers of the samples; each segment has its own, so that its random numbers
        differ from those of the segment before.
      prefill: int [n], tokens that the segment begins with.
      whole: bool [n], segments that are written to their end: no summary fits, or none is left.
    """

    rows: np.ndarray
    requests: Sequence[SampleRequest]
    sample: np.ndarray
    prefill: np.ndarray
    whole: np.ndarray


@dataclass(frozen=True)
class SummarySizes:
    """The split of responses into segments; the fields are arguments of `summaries`."""

    most: int
    instruction: str
    context: int | None
    summary: int | None

    def sizes(self, draw: str, actor: Actor, budget: int) -> tuple[int, int, list[int]]:
        """L, the tokens of a summary at most, and those of the instruction.

        Raises:
          ValueError: instruction and summary do not fit after L, or L is not longer than a summary.
        """
        size = max(budget // 4, 1) if self.summary is None else self.summary
        until = budget // 2 if self.context is None else self.context
        suffix = list(actor.encode(self.instruction))
        if self.most and not size < until <= budget - len(suffix) - size:
            raise ValueError(
                f"{draw}: context must be above {size}, the tokens of a summary, and at most"
                f" {budget - len(suffix) - size}, so that a summary fits, got {until}"
            )
        return until, size, suffix

    def grow(
        self,
        requests: Sequence[SampleRequest],
        actor: Actor,
        turn: StepContext,
        segments: Segments,
        room: int,
        *,
        write: Callable[[Segment], tuple[np.ndarray, np.ndarray]],
        sum_up: Callable[[Segment, np.ndarray, np.ndarray], np.ndarray],
    ) -> Batch:
        """The segments of all responses, as rows.

        Args:
          room: largest number of tokens of a segment after which a summary fits.
          write: writes a segment; returns the last of `segments` of each response, and bool [n],
            the responses to summarize.
          sum_up: (segment, bool [n], last `segments` of these) -> their last `segments`, with a
            summary.
        """
        responses, task = numbered_answers(requests), turn.setting.task
        going = np.arange(len(responses))
        opening = [
            len(request.view.show(request.prompt, task).prefill(actor.encode))
            for request, _ in responses
        ]
        own = [request for request, _ in responses]
        parts, traces = [], []
        for segment in range(self.most + 1):
            prefill = np.array([opening[row] + len(own[row].given) for row in going])
            part = Segment(
                going,
                own,
                np.array([responses[row][1] + segment * SEGMENT for row in going]),
                prefill,
                (prefill >= room) | (segment == self.most),
            )
            tips, on = write(part)
            if on.any():
                tips[on] = sum_up(part, on, tips[on])
            parts.append(segments.responses(tips, [replace(own[row], samples=1) for row in going]))
            traces.append(going)
            for row, tip in zip(going[on], tips[on], strict=True):
                own[row] = replace(own[row], given=_summary(segments, tip, actor.stop_token()))
            going = going[on]
            if not len(going):
                break
        batch = by_trace(parts, np.concatenate(traces), requests)
        return replace(batch, sample_seconds=segments.batch.sample_seconds)


def _summary(segments: Segments, tip: int, stop_token: int) -> list[int]:
    """The tokens of a summary, without the stop token."""
    rollouts = segments.batch.rollouts
    tokens = rollouts.tokens[tip][segments.new_tokens(np.array([tip]))[0]].tolist()
    return [token for token in tokens if token != stop_token]


@part(writes={"mask"})
def drop_truncated() -> Transform:
    """Takes truncated rollouts out of the loss and out of its denominators.

    Their rewards stay in the statistics of their groups.

    Metrics: dropped_rollouts_fraction (of those with tokens).
    Source: Yu et al. 2025, https://arxiv.org/abs/2503.14476 (overlong filtering).
    """

    def apply(signals, context, state):
        truncated = context.rollouts.truncated
        mask = signals.mask & ~truncated[:, None]
        dropped = masked_mean(truncated, has_tokens(signals.mask)).astype(signals.weight.dtype)
        metrics = {"dropped_rollouts_fraction": dropped}
        return replace(signals, mask=mask), state, metrics

    return apply


@arguments_of(Tools, into="tools")
@arguments_of(summaries, "most", "instruction", "context", "summary")
def supo(
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    epsilon: Epsilon = 1e-6,
    *,
    tools: Tools,
    **lengths: Any,
) -> Recipe:
    """Applies a clipped ratio to the segments of responses, between which the policy summarizes.

    Args:
      max_turns: maximum number of replies of a response, in all its segments together.
    """
    draw = tools.draw(summarized_turns, **lengths) if tools else summaries(**lengths)
    return Recipe(
        objective=clipped_objective(
            clip_low, clip_high, advantage=trace_normalized(epsilon), transforms=[drop_truncated()]
        ),
        experience=experience(draw=draw),
    )


METHOD = Method(
    supo,
    changes="sampling, advantage, mask",
    evidence="reconstruction",
    shown=Shown(
        "calculations",
        "experience/summaries",
        without={"most": 0},
        hyperparameters={"instruction": "=", "context": 8, "summary": 5},
    ),
)
