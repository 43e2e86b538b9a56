"""ADCL and EGSR: pieces from easy to hard that are sorted anew, and solutions in one's own words.

"Learning Like Humans: Advancing LLM Reasoning Capabilities via Adaptive Difficulty Curriculum
Learning and Expert-Guided Self-Reformulation", of which notes were read.

    D_1 … D_K   prompts by the pass rates of the first policy, from easy to hard
    before D_k  its prompts, and no others, are rated by the current policy and sorted anew
    all wrong   the policy is shown the worked solution, and derives it in its own words; what is
                right replaces failed answers, half of the group at most
    A_i  = (R_i - mean) / (std + 1e-6),  loss = PPO's clip on the token mean

Replaced rows have old log-probs under the prompt that they were drawn from and are trained under
the plain one, so that their ratio crosses prompts, as in `guide`. They are the policy's words,
where `luffy_mixed` has the expert's. K, the samples of a rating, the number of replacements and
this ratio are ours; the paper does not tell.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience import experience
from rlvr_jax.experience.asks import PLAIN, View
from rlvr_jax.experience.batch import Batch, concatenate
from rlvr_jax.experience.curricula.batches import asks_for
from rlvr_jax.experience.curricula.history import rated_rates
from rlvr_jax.experience.parts import Curriculum, Stage
from rlvr_jax.experience.stages.choices.groups import all_wrong
from rlvr_jax.experience.stages.donors.traces import own_rows
from rlvr_jax.experience.stages.rounds.another_view import under_another_view
from rlvr_jax.experience.views import hint
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, Unit
from rlvr_jax.types.parts import part


class _State(NamedTuple):
    """Prompts in the order of training, int32 [P], and their last known difficulty, [P]."""

    order: np.ndarray
    difficulty: np.ndarray


def difficulty_batches(difficulty: np.ndarray, number: int) -> list[np.ndarray]:
    """Positions from easy to hard, in consecutive pieces of equal size, the first ones one longer
    where there is a rest; equal ones keep their order."""
    return np.array_split(np.argsort(difficulty, kind="stable"), number)


def resort(piece: np.ndarray, difficulty: np.ndarray) -> np.ndarray:
    """A piece from easy to hard by new estimates, [n] as the piece; equal ones keep their order."""
    return piece[np.argsort(difficulty, kind="stable")]


@part
def pieces_by_difficulty(number: Count, samples: Count) -> Curriculum:
    """Trains on the prompts from easy to hard, in pieces that are sorted anew before their turn.

    Difficulty is 1 - the pass rate of some answers that are drawn for this alone: in step 0 those
    of the first policy to all prompts, which sort them into pieces; in the last step before each
    piece begins those of the current policy to the prompts of that piece, which stay in it. Step 0
    trains on the first prompts of the task. A piece is gone through once; what is missing for its
    last step comes from its beginning. After the last piece the first one comes again.

    Args:
      number: pieces (K), at least 1 and at most as many as prompts.
      samples: answers that a prompt is rated by.
    Metrics: piece (from 0), rated_prompts, piece_difficulty (mean estimate of its prompts).
    Raises:
      ValueError: a number below 1; when a run begins, more pieces than prompts.
    """

    def init(setting):
        prompts = len(setting.task.train)
        if number > prompts:
            raise ValueError(
                f"pieces_by_difficulty: number must be at most the {prompts} prompts, got {number}"
            )
        return _State(np.arange(prompts, dtype=np.int32), np.full(prompts, np.nan, np.float32))

    def pieces(state):
        return np.array_split(state.order, number)

    def now(step, setting, state):
        """The piece of a step, the step's place in it, and whether it is the last one."""
        if step == 0:
            return number - 1, 0, True
        parts = pieces(state)
        steps = [-(-len(part) // (setting.prompts * setting.rounds)) for part in parts]
        place = (step - 1) % sum(steps)
        for piece, length in enumerate(steps):
            if place < length:
                return piece, place, place == length - 1
            place -= length
        raise AssertionError("a place is in a piece")

    def rated(step, piece, last, state):
        if step == 0:
            return state.order
        return pieces(state)[(piece + 1) % number] if last else np.zeros(0, int)

    def propose(asks, state, turn):
        del asks
        setting = turn.setting
        piece, place, last = now(turn.step, setting, state)
        part = pieces(state)[piece] if turn.step else state.order
        first = (place * setting.rounds + turn.round) * setting.prompts
        chosen = part[(first + np.arange(setting.prompts)) % len(part)]
        asked = asks_for(turn, chosen)
        if turn.round:
            return asked
        ratings = asks_for(turn, rated(turn.step, piece, last, state))
        return [*(replace(ask, samples=samples, rating=True) for ask in ratings), *asked]

    def observe(state, turn, seen, learned):
        del learned
        piece, _, last = now(turn.step, turn.setting, state)
        numbers = rated(turn.step, piece, last, state)
        told = {"piece": float(piece) if turn.step else 0.0, "rated_prompts": float(len(numbers))}
        if not len(numbers):
            return state, told
        difficulty = state.difficulty.copy()
        for prompt, rate in rated_rates(seen, len(difficulty)).items():
            difficulty[prompt] = 1 - rate
        # What nobody could grade is hard, as far as anyone knows.
        known = np.nan_to_num(difficulty, nan=1.0)
        if turn.step == 0:
            order = np.concatenate(difficulty_batches(known, number))
        else:
            parts = pieces(state)
            parts[(piece + 1) % number] = resort(numbers, known[numbers])
            order = np.concatenate(parts)
        told["piece_difficulty"] = float(known[numbers].mean())
        return _State(order.astype(np.int32), difficulty), told

    return Curriculum(propose, init, observe)


RIGHT = 0.5
"""An outcome above this counts as right."""


def failure_sources(outcome: np.ndarray, guided: np.ndarray, most: int) -> np.ndarray:
    """Which guided row each row gives way to, int [G, N]; -1: it stays.

    In a group without a success the right guided rows, in order, take the first rows.

    Args:
      outcome: [G, N], NaN without a verdict.
      guided: [G, M], of the guided rows.
      most: rows of a group that give way at most.
    """
    source = np.full(outcome.shape, -1)
    for group in np.flatnonzero(all_wrong(outcome)):
        right = np.flatnonzero(np.nan_to_num(guided[group]) > RIGHT)
        right = right[: min(most, outcome.shape[1])]
        source[group, : len(right)] = right
    return source


def with_rows(batch: Batch, rows: np.ndarray, others: Batch, sources: np.ndarray) -> Batch:
    """The batch with rows of another one in the places of some.

    Args:
      rows: int [n], places.
      sources: int [n], the rows of `others` that stand there.
    """
    order = np.arange(len(batch))
    order[rows] = len(batch) + sources
    group = batch.renumbered().rollouts.group
    return concatenate([batch, others]).take(order).with_rollouts(group=group).renumbered()


@part(writes=frozenset({"off_policy", "origin"}), by_row=True)
def replace_failures(view: View, samples: Count, share: Unit) -> Stage:
    """Asks groups that are all wrong again with help, and keeps what comes out right.

    Right answers that were drawn under the view take the places of failed ones, trained under the
    prompt as it is: marked `off_policy`, with old log-probs of the context they were drawn in. A
    group of which no guided answer is right stays as it is.

    Args:
      view: what helps, such as `hint(1.0)`, the whole worked solution.
      samples: guided answers to each prompt.
      share: of the rows of a group that give way at most, in [0, 1].
    Reads: outcome. Draws: `samples` for each group that is all wrong. Writes: off_policy, origin,
      shown_tokens, shown_length. Metrics: guided_groups (share of the groups), guided_right (of the
      guided answers), replaced_rows (share of the rows).
    """

    def apply(batch, actor, state, turn):
        batch, outcomes = own_rows(batch), batch.outcomes()
        failed = all_wrong(outcomes)
        told = {"guided_groups": float(failed.mean()), "replaced_rows": 0.0}
        if not failed.any():
            return batch, state, told
        asks = [replace(ask, view=view, samples=samples) for ask in batch.asks_of(failed)]
        drawn = actor.grade(actor.draw(asks, turn.key))
        told["guided_right"] = float(np.mean(drawn.rollouts.outcome > RIGHT))
        source = failure_sources(outcomes[failed], drawn.outcomes(), int(share * outcomes.shape[1]))
        own = [rows for rows, there in zip(batch.groups, failed, strict=True) if there]
        pairs = [
            (own[group][place], drawn.groups[group][source[group, place]])
            for group, place in np.argwhere(source >= 0)
        ]
        if not pairs:
            return batch, state, told
        rows, sources = np.array(pairs).T
        told["replaced_rows"] = len(rows) / len(batch)
        return with_rows(batch, rows, under_another_view(drawn, actor, PLAIN), sources), state, told

    return Stage(apply, reads=view.reads, views=(view,))


def adcl_egsr(
    pieces: int = 4,
    rating_samples: int = 8,
    guided_samples: int = 8,
    replaced: float = 0.5,
    shown: float = 1.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on pieces of rising difficulty, failed groups helped by the worked solution.

    Args:
      pieces: of the prompts (K).
      rating_samples: answers that a prompt's difficulty is estimated from.
      guided_samples: answers with the solution in sight to each prompt that nobody solved.
      replaced: share of a group's rows that give way to guided ones at most.
      shown: of the worked solution.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=group_normalized(epsilon)
        ),
        experience=experience(
            pieces_by_difficulty(pieces, rating_samples),
            stages=[replace_failures(hint(shown), guided_samples, replaced)],
        ),
    )


METHOD = Method(
    adcl_egsr,
    "Learning Like Humans: Advancing LLM Reasoning Capabilities via Adaptive Difficulty Curriculum"
    " Learning and Expert-Guided Self-Reformulation",
    "",
    changes="curriculum, sampling, guidance",
    evidence="reconstruction",
    reports=(
        "Qwen2.5-7B on AIME25: 33.33 % with both parts, 30.00 with either, 23.33 with a fixed "
        "curriculum, 16.67 by RL from the base"
    ),
    traps=(
        "shown the answer, the policy may argue a wrong way towards it, which nothing looks for; "
        "rating pieces costs samples; where guided answers fail as well the group teaches nothing"
    ),
)
