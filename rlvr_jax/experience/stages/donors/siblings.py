"""A correct response of the same group, shown to a teacher."""

from dataclasses import replace

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.rounds.another_view import GIVES, with_second_prompts
from rlvr_jax.experience.views import with_answer
from rlvr_jax.types.hyperparameters import Finite
from rlvr_jax.types.parts import part

__all__ = ["correct_siblings", "show_sibling"]

SHOWN = replace(with_answer(""), responses=1)
"""The longest view: the prompt with one response."""


def correct_siblings(batch: Batch, success: float) -> np.ndarray:
    """The first other correct row of each row's group, -1 without one; int [B].

    Args:
      success: smallest outcome of a correct row.
    """
    found = np.full(len(batch), -1)
    correct = batch.decided & (batch.rollouts.outcome >= success)
    for rows in batch.groups:
        good = rows[correct[rows]]
        for row in rows:
            others = good[good != row]
            found[row] = others[0] if len(others) else -1
    return found


@part(writes=GIVES, by_row=True, views=(SHOWN,))
def show_sibling(success: Finite = 0.5) -> Stage:
    """Adds to rows a second prompt with another correct response of their group, for a teacher.

    Args:
      success: smallest outcome of a correct row.
    Metrics: shown_rows (fraction of the rows that have a second prompt).
    Source: SDPO, https://github.com/lasgroup/SDPO.
    """

    def apply(batch, actor, state, turn):
        sibling = correct_siblings(batch, success)
        texts = [response.text for response in batch.responses]
        requests = [
            request if other < 0 else replace(request, view=with_answer(texts[other]))
            for request, other in zip(batch.requests, sibling, strict=True)
        ]
        there = sibling >= 0
        batch = with_second_prompts(batch, actor, requests, there)
        return batch, state, {"shown_rows": float(there.mean())}

    return apply
