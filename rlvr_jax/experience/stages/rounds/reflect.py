"""What the policy says about a right and a wrong answer of its own, kept if it helps."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np

from rlvr_jax.experience.batch import concatenate
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.choices.pairs import RIGHT, asked_about, contrast_pairs
from rlvr_jax.experience.stages.donors.imitate_right import to_imitate
from rlvr_jax.experience.views import with_note, with_two_answers
from rlvr_jax.tasks import Grade
from rlvr_jax.types.parts import part

__all__ = ["reflect"]

REQUEST = (
    "Say where the two part, what is wrong with the second, and what to mind in such questions."
)


@part(by_row=True, most=1.5)
def reflect() -> Stage:
    """Adds what the policy says about a right and a wrong answer as rows to imitate.

    Of each group with both, one of each is shown beside the prompt (`with_two_answers`), and the
    policy writes about them. The text is tried: the prompt is asked once with it as a note
    (`with_note`), and the text is kept if that answer is right. It is imitated behind the prompt
    that it was written to, in a group of its own that no statistic sees; the answers that tried it
    are not trained.

    Reads: outcome, Grade.answer, the responses' texts. Draws: two rows for each mixed group.
      Writes: supervised. Metrics: mixed_groups (share), kept_notes (share of the groups).
    Raises:
      ValueError: when called, answers that leave no room for a response.
    Source: MEL (the link stands in the method's card).
    """

    def apply(batch, actor, state, turn):
        batch = batch.with_rollouts(supervised=np.zeros(len(batch), bool))
        pairs = contrast_pairs(batch)
        told = {"mixed_groups": len(pairs) / len(batch.groups), "kept_notes": 0.0}
        if not pairs:
            return batch, state, told
        asks = asked_about(batch, pairs, REQUEST)
        notes = actor.draw(asks, turn.key)
        tries = [
            replace(ask, view=with_note(note.text))
            for ask, note in zip(asks, notes.responses, strict=True)
        ]
        tried = actor.grade(actor.draw(tries, jax.random.fold_in(turn.key, 1)))
        good = tried.decided & (tried.rollouts.outcome > RIGHT) & (notes.rollouts.length > 0)
        if not good.any():
            return batch, state, told
        kept = notes.take(np.flatnonzero(good))
        # Nobody grades what is said about answers.
        kept = replace(kept, grades=[Grade(None)] * len(kept))
        rows = to_imitate(kept, np.ones(len(kept), bool))
        told["kept_notes"] = len(kept) / len(batch.groups)
        return concatenate([batch, rows]), state, told

    shown = replace(with_two_answers("", "", REQUEST), responses=2)
    views = (shown, replace(with_note(""), responses=1))
    gives = frozenset({"supervised"})
    return Stage(apply, views=views, writes=gives)
