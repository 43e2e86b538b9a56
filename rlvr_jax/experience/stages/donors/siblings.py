"""What a teacher is shown of a row's group: an answer to the same prompt that was right."""

from dataclasses import replace

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.rounds.another_view import GIVES
from rlvr_jax.experience.views import with_answer
from rlvr_jax.types.hyperparameters import Finite
from rlvr_jax.types.parts import part

__all__ = ["right_siblings", "show_sibling"]

SHOWN = replace(with_answer(""), responses=1)
"""The longest view is an answer longer."""


def right_siblings(batch: Batch, success: float) -> np.ndarray:
    """For each row the first other row of its group that is right, -1 where there is none; int [B].

    Args:
      success: outcome from which on a row is right.
    """
    found = np.full(len(batch), -1)
    right = batch.decided & (batch.rollouts.outcome >= success)
    for rows in batch.groups:
        good = rows[right[rows]]
        for row in rows:
            others = good[good != row]
            found[row] = others[0] if len(others) else -1
    return found


@part(writes=GIVES, by_row=True, views=(SHOWN,))
def show_sibling(success: Finite = 0.5) -> Stage:
    """Gives every row a second prompt that shows an answer of its group that was right, not its
    own.

    A teacher reads it in the place of the row's prompt. Rows of whose group no other one is right
    have none.

    Args:
      success: outcome from which on a row is right.
    Reads: outcome, the responses' texts. Writes: second_tokens, second_length. Metrics: shown_rows
      (share of the rows that have a second prompt).
    Source: SDPO, https://github.com/lasgroup/SDPO.
    """

    def apply(batch, actor, state, turn):
        sibling = right_siblings(batch, success)
        texts = [response.text for response in batch.responses]
        asks = [
            ask if other < 0 else replace(ask, view=with_answer(texts[other]))
            for ask, other in zip(batch.asks, sibling, strict=True)
        ]
        tokens, length = actor.prompts(asks)
        there = sibling >= 0
        told = {"shown_rows": float(there.mean())}
        second = {
            "second_tokens": np.where(there[:, None], tokens, 0).astype(tokens.dtype),
            "second_length": np.where(there, length, 0).astype(length.dtype),
        }
        return batch.with_rollouts(**second), state, told

    return apply
