"""CURE: responses are drawn again from where the policy was least certain.

"CURE: Critical-Token-Guided Re-Concatenation for Entropy-Collapse Prevention",
https://github.com/bytedance/CURE

    1. n₁ = 4 responses to each prompt
    2. of each one of its 20 sampled positions of highest entropy, uniformly, but no special token
       and no text of one character: c; 0 if there is none
    3. n₂ = 3 more responses that begin with its tokens before c
    4. DAPO over the n₁ + n₁ n₂ = 16 rows of the prompt; of a branch, tokens from c on are learned

This is the first stage; the second is DAPO from the checkpoint that it gives. All 16 rows share a
baseline, although branches start from states of different value; as c depends on entropies alone,
it is correlated, not biased. Entropies are those of the sampler, where the authors score again.
The authors cut prompt and prefix from the left to fit a buffer of 1500 tokens, so that the question
itself may be lost; here a branch shares its parent's budget. Their overlong penalty sees a branch's
own tokens, ours the whole response. `barred_characters=0` is for vocabularies of single characters.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from rlvr_jax.experience import experience, refill, shape, uniform
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Actor, Stage, Turn
from rlvr_jax.objectives import (
    group_normalized,
    overlong_shaping,
    signed_outcome,
)
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, NonNegativeInt
from rlvr_jax.types.parts import Function, part
from rlvr_jax.types.rollouts import Rollouts

Places = Callable[[Batch, Turn], np.ndarray]
"""(batch, turn) -> int [B], of each row the first token that is drawn again; 0: the whole row."""


@part(by_row=True, counts=True)
def branch(at: Places, samples: Count) -> Stage:
    """Draws every row again from a place inside it; the branches join its group.

    What stands before the place is given and not trained, so that a branch differs from a fresh
    response by what its parent drew for it. Given that this was drawn by the same policy, it is a
    valid response to the prompt, but the rows of a group are correlated. n rows of a group become
    n (1 + samples): each row's branches stand behind all rows, in their order, and know their
    parent.

    Args:
      at: where, such as `critical_token()`.
      samples: branches of each row.
    Reads: what `at` reads. Writes: parent, branch_position, of the branches.
    Draws: `samples` for each row. Metrics: branched_share (rows with a branch inside, not at their
      beginning), branch_position (mean over rows).
    Raises:
      ValueError: fewer than one sample; rows per group that are no multiple of 1 + samples.
    """

    def size(trained: int) -> int:
        if trained % (1 + samples):
            raise ValueError(
                f"branch: rows of a group must be a multiple of {1 + samples}, a row and its"
                f" {samples} branches, got {trained}"
            )
        return trained // (1 + samples)

    def apply(batch, actor, state, turn):
        positions = np.asarray(at(batch, turn)).astype(np.int32)
        # An opening is what the view shows, not what the policy drew.
        openings = np.array([_opening(ask, actor, turn) for ask in batch.asks], np.int32)
        positions = np.maximum(positions, openings)
        asks = [
            replace(
                batch.asks[row],
                samples=samples,
                given=batch.rollouts.tokens[row, openings[row] : positions[row]].tolist(),
                # Rows of a group have one number, by which their branches would be keyed alike.
                first_sample=place * samples,
            )
            for rows in batch.groups
            for place, row in enumerate(rows)
        ]
        drawn = actor.grade(actor.draw(asks, turn.key))
        sizes = [len(rows) * samples for rows in batch.groups]
        every = np.arange(len(sizes), dtype=np.int32)
        drawn = drawn.with_rollouts(group=np.repeat(every, sizes)).renumbered()
        joined = batch.with_groups(np.ones(len(sizes), bool), drawn, "append")
        parent = joined.rollouts.parent.copy()
        place = joined.rollouts.branch_position.copy()
        for before, rows in zip(batch.groups, joined.groups, strict=True):
            own, branches = rows[: len(before)], rows[len(before) :]
            parent[branches] = np.repeat(own, samples)
            place[branches] = np.repeat(positions[before], samples)
        told = {
            "branched_share": float(np.mean(positions > openings)),
            "branch_position": float(positions.mean()),
        }
        return joined.with_rollouts(parent=parent, branch_position=place), state, told

    return Stage(apply, size=size)


def _opening(ask, actor: Actor, turn: Turn) -> int:
    """Tokens that the ask's view begins a response with."""
    return len(ask.view.show(ask.prompt, turn.setting.task).begun(actor.encode))


@functools.lru_cache(maxsize=4)
def barred_tokens(tokenizer: Any, characters: int) -> np.ndarray:
    """Which tokens say too little to branch at, bool [V]: special ones, and short texts.

    Args:
      tokenizer: of transformers.
      characters: texts of at most so many, without the white space around them, are barred.
    """
    number = len(tokenizer)
    texts = tokenizer.batch_decode(
        [[token] for token in range(number)], clean_up_tokenization_spaces=False
    )
    barred = np.array([len(text.strip()) <= characters for text in texts])
    special = np.array(sorted(tokenizer.all_special_ids), int)
    barred[special[special < number]] = True
    return barred


def eligible(rollouts: Rollouts, barred: np.ndarray) -> np.ndarray:
    """Where a row may be branched, bool [B, T]: at a sampled token behind the first, if not barred.

    Args:
      barred: bool [V]; ids beyond, which no text stands for, are barred, too.
    """
    tokens = np.asarray(rollouts.tokens)
    known = tokens < len(barred)
    told = ~barred[np.where(known, tokens, 0)] & known
    return np.asarray(rollouts.mask) & told & (np.arange(tokens.shape[1])[None] >= 1)


def critical_positions(entropy: np.ndarray, where: np.ndarray, top_k: int) -> np.ndarray:
    """The positions of highest entropy of each row, bool [B, T]; of equal ones the earlier.

    Args:
      entropy: [B, T].
      where: bool [B, T], eligible positions.
      top_k: at most so many of a row.
    """
    order = np.argsort(np.where(where, -entropy, np.inf), axis=1, kind="stable")
    rank = np.argsort(order, axis=1, kind="stable")
    return where & (rank < top_k)


def drawn_positions(candidates: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """One of the candidates of each row, uniformly, int [B]; 0 for a row without any.

    Args:
      candidates: bool [B, T].
    """
    number = candidates.sum(axis=1)
    chosen = np.floor(random.random(len(candidates)) * number).astype(int)
    reached = np.cumsum(candidates, axis=1) > chosen[:, None]
    return np.where(number > 0, reached.argmax(axis=1), 0)


@part
def critical_token(top_k: Count = 20, barred_characters: NonNegativeInt = 1) -> Function:
    """One of the positions where the policy was least certain, for `branch`.

    Of the sampled tokens behind the first that are neither special nor short, one of the `top_k` of
    highest entropy, uniformly; 0 where there is none. Entropies are the sampler's.

    Args:
      top_k: candidates of a row.
      barred_characters: a text of at most so many characters, without the white space around it, is
        no critical token; 0 for vocabularies of single characters.
    Raises:
      ValueError: fewer than one candidate, a negative number; when called, rows without entropies.
    """

    def place(batch: Batch, turn: Turn) -> np.ndarray:
        if batch.rollouts.entropy is None:
            raise ValueError(
                "critical_token: entropy must be recorded when rows are drawn, got None"
            )
        where = eligible(batch.rollouts, barred_tokens(batch.tokenizer, barred_characters))
        candidates = critical_positions(batch.rollouts.entropy, where, top_k)
        return drawn_positions(candidates, turn.random())

    return place


def cure(
    samples: int = 3,
    top_k: int = 20,
    barred_characters: int = 1,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    dual: float = 10.0,
    max_length: int = 2596,
    cache_length: int = 512,
    overlong_factor: float = 1.0,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """DAPO's loss on groups of responses and their branches, where outcomes differ.

    Args:
      samples: branches of each response (n₂); groups are of multiples of 1 + samples.
      top_k: positions of highest entropy, of which one is drawn.
      barred_characters: tokens of at most so many characters are no critical ones.
      dual: bound of the loss of a negative advantage.
      max_length: budget of response tokens.
      cache_length: last tokens of the budget, over which the penalty grows.
      overlong_factor: penalty at the full budget.
    """
    penalized = overlong_shaping(max_length, cache_length, overlong_factor, base=signed_outcome)
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            dual_clip=dual,
        ),
        experience=experience(
            stages=[
                branch(critical_token(top_k, barred_characters), samples),
                # Further prompts would come without branches.
                refill(uniform, rounds=1),
                shape(penalized),
            ]
        ),
    )


METHOD = Method(
    cure,
    "CURE: Critical-Token-Guided Re-Concatenation for Entropy-Collapse Prevention",
    "https://github.com/bytedance/CURE",
    changes="sampling, selection, surrogate, aggregation, reward",
    left_out="further prompts in the place of dropped groups",
    reports=(
        "Qwen2.5-Math-7B: about 5 % above other RLVR methods on the mean of six maths benchmarks, "
        "with more entropy"
    ),
    traps=(
        "tokens of one character are no branch points, digits and operators included; the group's "
        "size must be a multiple of 1 + samples; rows that start at different values share one "
        "baseline"
    ),
)
