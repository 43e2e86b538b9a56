"""Delethink: long answers in short chunks, from each of which only a short text is carried on.

Aghajohari et al. 2025, "The Markovian Thinker", https://arxiv.org/abs/2510.06557

    a chunk of C tokens that does not end is followed by one behind the prompt, the answer's first
    100 tokens and its last m - 100, m = C/2; up to I chunks
    A    = (R - mean) / (std + 1e-6) over the answers to a prompt, std with n - 1
    loss = mean over answers of (1/n) Σ min(r, 2) · l over all tokens of its chunks
    l    = min(max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)), -3 A where A < 0)

R is the verifier's word on the last chunk, r = exp(old_logp - behaviour_logp), n the new tokens of
all chunks of the answer. Each chunk is a row that is trained in the context in which it was drawn.
C is the run's `response_tokens`. The authors have I = 5 chunks (24k tokens) or 23 (96k), C = 8192
and temperature 0.6, in the log-probs, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.experience import experience
from rlvr_jax.experience.asks import Ask, numbered_answers
from rlvr_jax.experience.batch import Batch, given_tokens
from rlvr_jax.experience.draws.chunks import by_trace
from rlvr_jax.experience.parts import Draw
from rlvr_jax.objectives import (
    rollout_mean_token_sum,
    trace_normalized,
    truncate_importance,
)
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.arguments import check_count, check_positive
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.groups import group_sum, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_count
from rlvr_jax.objectives.statistics.traces import last_of_trace, trace_ids
from rlvr_jax.objectives.surrogates.by_origin import GIVEN
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Count,
    Epsilon,
    NonNegativeInt,
    Temperature,
)
from rlvr_jax.types.parts import part


def carried_over(tokens: Sequence[int], carry: int, head: int) -> list[int]:
    """The first tokens of a text and its last ones: so many of them together.

    Args:
      tokens: at least `carry` of them.
      carry: number that is kept.
      head: how many of them are from the beginning, at most `carry`.
    """
    return [*tokens[:head], *tokens[len(tokens) - (carry - head) :]]


@part
def chunks(most: Count, head: NonNegativeInt, carry: int | None = None, **sampling: Any) -> Draw:
    """Writes each answer in chunks of bounded context; a short carry-over is all that goes on.

    The first chunk is a response of the run's budget C (`response_tokens`). Where it does not end,
    its first `head` tokens and its last ones, m in all, stand behind the prompt as the beginning of
    the next chunk, which goes on for up to C - m further tokens; and so on, until an answer ends or
    has `most` chunks. A chunk is a row: prompt, carry-over (given, not trained), new tokens; so a
    token is trained in the very context that it was drawn in. The rows of an answer have one
    `trace`, stand in order, and are graded by the last of them, whose text is carry-over and new
    tokens. `truncated` says of all of them whether the answer as a whole was cut.

    A group has all rows of all answers to its prompt, so batches differ in their number of rows.

    Args:
      most: chunks of an answer at most (I), at least 1.
      head: tokens from the beginning of the answer that are always carried over; at most half the
        carry-over.
      carry: tokens that are carried over (m), below the run's budget; None: half of it.
      sampling: settings of the sampler that are prescribed, as in `plain`.
    Metrics: answers, chunks (numbers, so that their quotient is the mean).
    Raises:
      ValueError: a number that is no count; when a run begins, a carry that leaves no room.
    """
    if carry is not None:
        check_count(1, "chunks", carry=carry)

    def init(setting):
        budget = setting.response_tokens
        least = 2 if carry is None else carry + 1
        if budget < least:
            raise ValueError(
                f"chunks: response_tokens must be at least {least} for a carry of {carry}, got"
                f" {budget}"
            )
        return ()

    def apply(asks, actor, state, turn):
        kept = turn.setting.response_tokens // 2 if carry is None else carry
        parts = [actor.draw(asks, turn.key)]
        answers = numbered_answers(asks)
        rows = np.arange(len(answers))
        traces = [rows]
        for chunk in range(1, most):
            going = np.flatnonzero(parts[-1].rollouts.truncated)
            if not len(going):
                break
            rows = rows[going]
            again = [
                _going_on(parts[-1], row, *answers[answer], kept, head)
                for row, answer in zip(going, rows, strict=True)
            ]
            drawn = actor.draw(again, jax.random.fold_in(turn.key, chunk))
            # A trained opening was trained in the first chunk.
            given = drawn.rollouts.origin == GIVEN
            parts.append(drawn.with_rollouts(mask=drawn.rollouts.mask & ~given))
            traces.append(rows)
        told = {"answers": float(len(answers)), "chunks": float(sum(map(len, parts)))}
        return by_trace(parts, np.concatenate(traces), asks), state, told

    return Draw(apply, init, sampling=sampling, of_policy=True, most=float(most), splits=most > 1)


def _going_on(batch: Batch, row: int, ask: Ask, sample: int, carry: int, head: int) -> Ask:
    """What asks for the next chunk of an answer."""
    rollouts = batch.rollouts
    tokens = rollouts.tokens[row, : rollouts.length[row]].tolist()
    # What the view opens a response with comes again by itself, and stays whole.
    opening = int(given_tokens(rollouts)[row]) - len(batch.asks[row].given)
    kept = carried_over(tokens, carry, max(min(head, carry // 2), opening))
    return replace(ask, samples=1, first_sample=sample, given=kept[opening:])


def rows_per_trace(
    mask: Bool[Array, "B T"], ids: Int[Array, "B"], rollout_id: Int[Array, "B"], dtype: DTypeLike
) -> Float[Array, ""]:
    """Rows by traces, those without tokens left out; 0 of nothing.

    Args:
      ids: of `trace_ids`.
    """
    traces = masked_count(last_of_trace(ids, rollout_id) & (trace_tokens(mask, ids) > 0))
    rows = masked_count(has_tokens(mask))
    return rows.astype(dtype) / jnp.maximum(traces, 1).astype(dtype)


@part(writes={"weight"}, once=True)
def weigh_by_trace() -> Transform:
    """Lets every answer count the same, in however many rows it was written.

    weight' = weight · (rows / traces) / n, n the tokens of the trace, for an aggregation by
    `rollout_mean_token_sum`: the loss is then the mean over the answers of the batch of the mean
    over their tokens. Of answers in one row each it is `rollout_mean_token_mean`.

    Metrics: rows_per_trace.
    """

    def apply(signals, context, state):
        rollouts, dtype = context.rollouts, signals.weight.dtype
        ids = trace_ids(rollouts.trace, rollouts.rollout_id)
        share = rows_per_trace(signals.mask, ids, rollouts.rollout_id, dtype)
        tokens = jnp.maximum(trace_tokens(signals.mask, ids), 1).astype(dtype)
        weight = signals.weight * (share / tokens)[:, None]
        return replace(signals, weight=weight), state, {"rows_per_trace": share}

    return apply


def trace_tokens(mask: Bool[Array, "B T"], ids: Int[Array, "B"]) -> Int[Array, "B"]:
    """Tokens on the mask in all rows of the trace."""
    return group_sum(masked_count(mask, axis=1), ids)


def delethink(
    max_chunks: int = 5,
    head: int = 100,
    carry: int | None = None,
    temperature: Temperature = 0.6,
    cap: float = 2.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.26,
    dual: float = 3.0,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """A clipped ratio on the mean over answers, which are written in chunks of bounded context.

    Args:
      max_chunks: of an answer (I).
      head: first tokens of an answer that every chunk sees, at most half the carry-over.
      carry: tokens that a chunk sees of those before it (m); None: half the run's response_tokens.
      cap: largest importance weight of a token.
      dual: bound on the loss of a negative advantage.
    """
    check_positive("delethink", temperature=temperature)
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=trace_normalized(epsilon),
            transforms=[weigh_by_trace(), truncate_importance(cap)],
            dual_clip=dual,
            aggregation=rollout_mean_token_sum(),
        ),
        experience=experience(draw=chunks(max_chunks, head, carry, temperature=temperature)),
    )


METHOD = Method(
    delethink,
    "The Markovian Thinker",
    "https://arxiv.org/abs/2510.06557",
    changes="sampling, advantage, weight, aggregation",
    reports=(
        "R1-Distill-Qwen-1.5B at 24k tokens: as good as RL on one long context or better, at a "
        "cost that is linear in the length"
    ),
    traps=(
        "an answer that ends in its first chunk is plain GRPO; chunks are cut anywhere, so the "
        "policy must learn to write its state near their end; log-probs must be scored at the "
        "sampler's temperature, as here"
    ),
)
