"""Delethink: writes long responses in short chunks that share only a short carry-over.

Aghajohari et al. 2025, "The Markovian Thinker", https://arxiv.org/abs/2510.06557

    a chunk of C tokens that does not end is followed by a chunk after the prompt, the first 100
    tokens of the response and its last m - 100; m = C/2; up to I chunks
    A    = (R - mean) / (std + 1e-6) over the responses to a prompt, std with n - 1
    loss = mean over responses of (1/n) Σ min(r, 2) · l over all tokens of its chunks
    l    = min(max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)), -3 A where A < 0)

R is the verifier's outcome for the last chunk, r = exp(old_logp - behaviour_logp), and n the number
of new tokens in all chunks of the response. The arguments `carry` and `max_chunks` are m and I. The
length C is `response_tokens` of the run. Each chunk is a row that is trained in the context of its
sampling. The authors use I = 5 chunks (24k tokens) or 23 (96k), C = 8192, and temperature 0.6 for
sampling and for the log-probs.

Reports: R1-Distill-Qwen-1.5B at 24k tokens: equal to or better than RL on one long context, at a
cost that is linear in the length.
Traps: For a response that ends in its first chunk, the method is GRPO. Chunks end anywhere, so the
policy must learn to write its state near their end. Log-probs must be computed at the sampler's
temperature, as here.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.experience import Draw, experience
from rlvr_jax.experience.batch import Batch, by_trace, given_tokens
from rlvr_jax.experience.requests import SampleRequest, numbered_answers
from rlvr_jax.objectives import GIVEN, Transform, part, rollout_mean_token_sum, trace_normalized
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.groups import group_sum, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_count
from rlvr_jax.objectives.statistics.traces import last_of_trace, trace_ids
from rlvr_jax.objectives.transforms.corrections import truncate_importance
from rlvr_jax.types import Ids, Mask, Method, Recipe, Shown, replace
from rlvr_jax.types.hyperparameters import (
    Bound,
    ClipHigh,
    ClipLow,
    Count,
    DualClip,
    Epsilon,
    NonNegativeInt,
    Temperature,
)


@part
def chunks(most: Count, head: NonNegativeInt, carry: Count | None = None, **sampling: Any) -> Draw:
    """Samples each response in chunks of bounded context, linked by a short carry-over.

    The first chunk is a response of the run's budget C (`response_tokens`). If it does not end, its
    first `head` and its last tokens, m in all, follow the prompt as the beginning of the next
    chunk. That chunk samples up to C - m further tokens, and so on until the response ends or has
    `most` chunks. Each chunk is a row: prompt, carry-over (given, not trained), new tokens. So a
    token is trained in exactly the context in which it was sampled.

    The rows of a response share one `trace` and follow one another. The last row is graded; its
    text is the carry-over and the new tokens. `truncated` of every row means that the whole
    response was truncated. A group has all rows of all responses to its prompt, so batches differ
    in size.

    Args:
      most: maximum number of chunks of a response (I).
      head: first tokens of a response that every chunk sees, at most half of the carry-over.
      carry: tokens of earlier chunks that a chunk sees (m). None: half of the budget.
      sampling: sampler settings that are prescribed, as for `plain`.
    Metrics: answers (responses), chunks (their chunks; the quotient is the mean number of chunks),
      carried_chunks (chunks that begin with a carry-over).
    Raises:
      ValueError: when a run begins, a carry-over after which no new token fits.
    """

    def init(setting):
        budget = setting.response_tokens
        least = 2 if carry is None else carry + 1
        if budget < least:
            raise ValueError(
                f"chunks: response_tokens must be at least {least} for a carry of {carry}, got"
                f" {budget}"
            )
        return ()

    def apply(requests, actor, state, turn):
        carried = turn.setting.response_tokens // 2 if carry is None else carry
        parts = [actor.draw(requests, turn.key)]
        answers = numbered_answers(requests)
        rows = np.arange(len(answers))
        traces = [rows]
        for chunk in range(1, most):
            unfinished = np.flatnonzero(parts[-1].rollouts.truncated)
            if not len(unfinished):
                break
            rows = rows[unfinished]
            again = [
                _next_chunk(parts[-1], row, *answers[answer], carried, head)
                for row, answer in zip(unfinished, rows, strict=True)
            ]
            sampled = actor.draw(again, jax.random.fold_in(turn.key, chunk))
            # A trained opening was trained in the first chunk.
            given = sampled.rollouts.records["origin"] == GIVEN
            parts.append(sampled.with_rollouts(mask=sampled.rollouts.mask & ~given))
            traces.append(rows)
        counts = {"answers": len(answers), "chunks": sum(map(len, parts))}
        counts["carried_chunks"] = counts["chunks"] - counts["answers"]
        metrics = {name: float(value) for name, value in counts.items()}
        return by_trace(parts, np.concatenate(traces), requests), state, metrics

    return Draw(apply, init, sampling=sampling, of_policy=True, most=float(most), splits=most > 1)


def _next_chunk(
    batch: Batch, row: int, request: SampleRequest, sample: int, carry: int, head: int
) -> SampleRequest:
    """The request for the next chunk of a response."""
    rollouts = batch.rollouts
    tokens = rollouts.tokens[row, : rollouts.length[row]].tolist()
    # The view's opening is added again by the view, and stays whole.
    opening = int(given_tokens(rollouts)[row]) - len(batch.requests[row].given)
    carried = carried_over(tokens, carry, max(min(head, carry // 2), opening))
    return replace(request, samples=1, first_sample=sample, given=carried[opening:])


def carried_over(tokens: Sequence[int], carry: int, head: int) -> list[int]:
    """The first `head` and the last `carry - head` tokens of a response.

    Args:
      tokens: at least `carry`.
      head: at most `carry`.
    """
    return [*tokens[:head], *tokens[len(tokens) - (carry - head) :]]


@part(writes={"weight"}, once=True)
def weigh_by_trace() -> Transform:
    """Gives every response the same total weight, in however many rows it was written.

    weight' = weight · (rows / traces) / n, with n the tokens of the trace. With
    `rollout_mean_token_sum` the loss is then the mean over responses of the mean over their tokens.
    For responses of one row each it equals `rollout_mean_token_mean`.

    Metrics: rows_per_trace (rows with tokens per response).
    """

    def apply(signals, context, state):
        rollouts, dtype = context.rollouts, signals.weight.dtype
        ids = trace_ids(rollouts.records.get("trace"), rollouts.rollout_id)
        ratio = rows_per_trace(signals.mask, ids, rollouts.rollout_id, dtype)
        tokens = jnp.maximum(trace_tokens(signals.mask, ids), 1).astype(dtype)
        weight = signals.weight * (ratio / tokens)[:, None]
        return replace(signals, weight=weight), state, {"rows_per_trace": ratio}

    return apply


def rows_per_trace(mask: Mask, ids: Ids, rollout_id: Ids, dtype: DTypeLike) -> Float[Array, ""]:
    """Rows with tokens per trace with tokens; 0 for an empty batch.

    Args:
      mask: response tokens that count, bool [B, T].
      ids: number of the response (trace) to which each row belongs, int [B], from `trace_ids`.
      rollout_id: number of each row, int [B]; it grows along a trace.
      dtype: of the result.
    """
    traces = masked_count(last_of_trace(ids, rollout_id) & (trace_tokens(mask, ids) > 0))
    rows = masked_count(has_tokens(mask))
    return rows.astype(dtype) / jnp.maximum(traces, 1).astype(dtype)


def trace_tokens(mask: Bool[Array, "B T"], ids: Int[Array, "B"]) -> Int[Array, "B"]:
    """Number of tokens on the mask in all rows of the trace."""
    return group_sum(masked_count(mask, axis=1), ids)


def delethink(
    max_chunks: Count = 5,
    head: NonNegativeInt = 100,
    carry: Count | None = None,
    temperature: Temperature = 0.6,
    cap: Bound = 2.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.26,
    dual: DualClip = 3.0,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Applies a clipped ratio to responses that are sampled in chunks of bounded context.

    Args:
      max_chunks: maximum number of chunks of a response (I).
      head: first tokens of a response that every chunk sees, at most half of the carry-over.
      carry: tokens of earlier chunks that a chunk sees (m). None: half of `response_tokens`.
      cap: largest importance weight of a token.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low,
            clip_high,
            advantage=trace_normalized(epsilon),
            transforms=[weigh_by_trace(), truncate_importance(cap)],
            dual_clip=dual,
            aggregation=rollout_mean_token_sum(),
        ),
        experience=experience(draw=chunks(max_chunks, head, carry, temperature=temperature)),
    )


METHOD = Method(
    delethink,
    changes="sampling, advantage, weight, aggregation",
    shown=Shown(
        "brackets",
        "experience/carried_chunks",
        without={"max_chunks": 1},
        hyperparameters={"head": 2},
        settings={"response_tokens": 12},
        steps=300,
    ),
)
