"""Wrong answers whose right beginning is kept, and whose rest another policy writes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience.asks import View
from rlvr_jax.experience.batch import Batch, concatenate
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.donors.traces import own_rows
from rlvr_jax.experience.stages.rounds.first_errors import RIGHT, repairable
from rlvr_jax.objectives import TEACHER
from rlvr_jax.types.hyperparameters import Finite
from rlvr_jax.types.parts import part

__all__ = ["rectified_tokens", "salvage"]


def rectified_tokens(mask: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of the beginning that a row keeps, and those that were written anew; bool [B, T] each.

    Args:
      mask: bool [B, T].
      start: int [B], tokens that are kept.
    """
    kept = np.arange(mask.shape[1])[None] < np.asarray(start)[:, None]
    return mask & kept, mask & ~kept


@part(writes=frozenset({"off_policy", "origin"}), by_row=True)
def salvage(teacher: View, below: Finite) -> Stage:
    """Goes on from the right beginning of wrong answers as a teacher would, and learns from both.

    The teacher is the policy that is shown more, such as the solution. What it writes behind the
    steps before the first wrong one is graded together with these; if it is right, the whole takes
    the place of the wrong answer, with reward 1, its end marked as a teacher's (`origin`) and
    trained under the prompt as it was. Where that would leave a group without a wrong answer, the
    last one stays. `score_steps` stands before it.

    Args:
      teacher: what the one who goes on is shown, such as `hint(1.0)`.
      below: score below which a step is wrong.
    Reads: outcome, step, process_reward. Draws: one row for each that can be repaired. Writes:
      origin, off_policy; reward, of the rows that are put in.
    Metrics: salvageable_rows (share of all), salvaged_rows (share of all).
    Raises:
      ValueError: a bound that is not finite.
    Source: SCOPE (the link stands in the method's card).
    """

    def apply(batch, actor, state, turn):
        if batch.rollouts.step is None or batch.rollouts.process_reward is None:
            raise ValueError("salvage: steps must be scored, put score_steps() before it")
        can, start = repairable(batch, below)
        rows = np.flatnonzero(can & (start > 0))
        batch = own_rows(batch)
        told = {"salvageable_rows": len(rows) / len(batch), "salvaged_rows": 0.0}
        if not len(rows):
            return batch, state, told
        place = np.concatenate([np.arange(len(group)) for group in batch.groups])
        asks = [
            replace(
                batch.asks[row],
                view=teacher,
                samples=1,
                given=batch.rollouts.tokens[row, : start[row]].tolist(),
                first_sample=int(place[row]),
            )
            for row in rows
        ]
        drawn = actor.grade(actor.draw(asks, turn.key))
        right = np.flatnonzero(drawn.rollouts.outcome > RIGHT)
        right = right[_spared(batch, rows[right])]
        if not len(right):
            return batch, state, told
        mended = _mended(batch.take(rows[right]), drawn.take(right), start[rows[right]])
        order = np.arange(len(batch))
        order[rows[right]] = len(batch) + np.arange(len(right))
        group = batch.rollouts.group
        whole = concatenate([batch, mended]).take(order).with_rollouts(group=group).renumbered()
        return whole, state, told | {"salvaged_rows": len(right) / len(batch)}

    return Stage(apply, reads=teacher.reads, views=(teacher,))


def _spared(batch: Batch, rows: np.ndarray) -> np.ndarray:
    """Which of these wrong rows may be replaced so that each group keeps a wrong one, bool [n]."""
    kept = np.ones(len(rows), bool)
    group = batch.rollouts.group
    # One without a verdict is not wrong: it leaves its group.
    failed = batch.decided & (batch.rollouts.outcome <= RIGHT)
    for number in np.unique(group[rows]):
        wrong = np.sum((group == number) & failed)
        own = np.flatnonzero(group[rows] == number)
        kept[own[wrong - 1 :]] = False
    return kept


def _mended(before: Batch, drawn: Batch, start: np.ndarray) -> Batch:
    """The drawn rows as answers to the prompts as they were, begun by the policy."""
    rollouts, own = drawn.rollouts, before.rollouts
    places = np.arange(rollouts.mask.shape[1])[None]
    mask = places < rollouts.length[:, None]
    kept, written = rectified_tokens(mask, start)
    spread = {
        name: np.where(kept, getattr(own, name), 0).astype(getattr(own, name).dtype)
        for name in ("behaviour_logp", "entropy")
    }
    changed = own_rows(drawn).with_rollouts(
        prompt_tokens=own.prompt_tokens,
        prompt_length=own.prompt_length,
        mask=mask,
        origin=np.where(written, TEACHER, 0).astype(np.int32),
        reward=np.ones_like(rollouts.reward),
        **spread,
    )
    return replace(changed, asks=before.asks)
