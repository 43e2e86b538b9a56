"""Right answers that are kept, and imitated in later rounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.store import (
    Store,
    empty_store,
    oldest,
    push,
    repeatable,
    rewritten,
    taken,
    weighted_places,
)
from rlvr_jax.tasks import Grade
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part

__all__ = ["first_of_right", "imitate_right", "to_imitate"]

RIGHT = 0.5
"""An outcome above this counts as right."""


def first_of_right(batch: Batch) -> np.ndarray:
    """Right rows that are the first with their tokens in their group, bool [B]."""
    rollouts, known = batch.rollouts, set()
    kept = np.zeros(len(batch), bool)
    texts = np.where(rollouts.mask, rollouts.tokens, -1)
    for row in np.flatnonzero(rollouts.outcome > RIGHT).tolist():
        text = int(rollouts.group[row]), texts[row].tobytes()
        kept[row] = text not in known
        known.add(text)
    return kept


def to_imitate(batch: Batch, rows: np.ndarray) -> Batch:
    """The batch with nothing on the mask, and some rows supervised.

    Args:
      rows: bool [B].
    """
    nothing = np.zeros_like(batch.rollouts.mask)
    return batch.with_rollouts(mask=nothing, supervised=np.asarray(rows))


@part
def imitate_right(capacity: Count, round_steps: Count, per_prompt: Count) -> Stage:
    """Keeps right answers, and gives those of earlier rounds as rows to imitate.

    An answer is kept if it is new: not the same tokens as another one to its prompt. The rows that
    are learned from are as many as a step trains, drawn without replacement so that each prompt has
    the same chance however many answers it has; the answers of the step itself are not trained. In
    the first round there is nothing to learn from. Only answers to train prompts as they are can be
    kept.

    Args:
      capacity: answers that are kept, the newest ones.
      round_steps: steps of a round.
      per_prompt: answers to a prompt that are kept at most, its first ones.
    Reads: outcome. Writes: mask (nothing is on it), supervised.
    Metrics: new_answers (kept in this step), kept_answers (in all), imitated_answers (rows).
    Raises:
      ValueError: a number below 1.
    Source: Havrilla et al. 2024, "Teaching Large Language Models to Reason with Reinforcement
      Learning".
    """

    def init(setting):
        tokens = (setting.response_tokens,), np.int32
        return empty_store(capacity, number=((), np.int32), tokens=tokens, length=((), np.int32))

    def apply(batch, actor, state, turn):
        kept = _new_answers(batch, state, per_prompt, turn.setting)
        rollouts = batch.rollouts
        numbers = np.array([ask.number for ask in batch.asks], np.int32)
        fields = {"number": numbers, "tokens": _padded(rollouts), "length": rollouts.length}
        state = push(state, {name: array[kept] for name, array in fields.items()}, turn.step)
        places = oldest(state)
        places = places[state.step[places] < turn.step // round_steps * round_steps]
        told = {
            "new_answers": float(len(kept)),
            "kept_answers": float(state.held),
            "imitated_answers": 0.0,
        }
        if not len(places):
            return to_imitate(batch, np.zeros(len(batch), bool)), state, told
        asked = state.rows["number"][places]
        _, which, count = np.unique(asked, return_inverse=True, return_counts=True)
        most = turn.setting.prompts * turn.setting.samples
        drawn = weighted_places(places, most, 1 / count[which], turn.random())
        # Answers to one prompt stand together.
        drawn = drawn[np.argsort(state.rows["number"][drawn], kind="stable")]
        told["imitated_answers"] = float(len(drawn))
        return _as_batch(actor, state, drawn, batch, turn), state, told

    return Stage(apply, init, writes=frozenset({"supervised"}), by_row=True)


def _padded(rollouts) -> np.ndarray:
    """Tokens with 0 behind the ends of responses."""
    places = np.arange(rollouts.tokens.shape[1])[None]
    return np.where(places < rollouts.length[:, None], rollouts.tokens, 0)


def _new_answers(batch: Batch, store: Store, per_prompt: int, setting) -> np.ndarray:
    """The rows that are to be kept, in order."""
    places = oldest(store)
    known: dict[int, set[bytes]] = {}
    for number, tokens in zip(*(store.rows[x][places] for x in ("number", "tokens")), strict=True):
        known.setdefault(int(number), set()).add(tokens.tobytes())
    tokens = _padded(batch.rollouts).astype(np.int32)
    kept = []
    for row in np.flatnonzero(first_of_right(batch) & repeatable(batch, setting)).tolist():
        answers = known.setdefault(batch.asks[row].number, set())
        text = tokens[row].tobytes()
        if text not in answers and len(answers) < per_prompt:
            answers.add(text)
            kept.append(row)
    return np.array(kept, int)


def _as_batch(actor, store: Store, places: np.ndarray, batch: Batch, turn) -> Batch:
    written = rewritten(actor, turn.setting.task, taken(store, places))
    right = np.ones(len(written), batch.rollouts.outcome.dtype)
    whole = to_imitate(written, np.ones(len(written), bool))
    whole = whole.with_rollouts(outcome=right, reward=right)
    return replace(whole, grades=[Grade(1.0)] * len(whole), further=batch.further)
