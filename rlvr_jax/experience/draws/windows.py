"""Responses that are written over several steps, a window of tokens in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.asks import PLAIN, Ask
from rlvr_jax.experience.batch import GIVEN, Batch
from rlvr_jax.experience.draws.trees.pieces import first_samples
from rlvr_jax.experience.parts import Draw, Setting
from rlvr_jax.types.hyperparameters import Unit
from rlvr_jax.types.parts import part

__all__ = ["in_windows"]


@part
def in_windows(share: Unit = 0.25) -> Draw:
    """Writes at most a window of each response in a step; what is unfinished goes on in the next.

    A step has as many rows as it asks for: first those that go on from the step before, behind
    their own tokens (given, trained in earlier steps), then new ones, whole groups as they find
    room; prompts that find none are passed over. So no step waits for its longest answer. A row is
    trained on the tokens of its window, drawn by the weights of the step. `truncated` says that it
    goes on: a response that has used up its budget has not, and gets its reward.

    Only responses to train prompts as they are go on, and those of a step's first draw; others are
    given up where their window ends. Evaluations draw whole responses. The state holds 4 bytes for
    each row and token.

    Args:
      share: of the budget of a response, that is a window.
    Metrics: carried_rows (that go on from the last step), new_rows, passed_over (prompts).
    Raises:
      ValueError: a share outside [0, 1].
    Source: Fan et al. 2025, https://arxiv.org/abs/2506.15050; the share is ours.
    """

    def init(setting):
        rows = setting.prompts * setting.drawn_samples
        none = np.full(rows, -1, np.int32)
        return {
            "tokens": np.zeros((rows, setting.response_tokens), np.int32),
            "length": np.zeros(rows, np.int32),
            "number": none,
            "sample": none,
            "used": np.array(-1, np.int32),
        }

    def apply(asks, actor, state, turn):
        first = state["used"] != turn.step
        setting, task = turn.setting, turn.setting.task
        window = max(1, round(share * setting.response_tokens))
        room = sum(ask.samples for ask in asks)
        going = np.flatnonzero(state["number"] >= 0)[:room] if first else np.zeros(0, int)
        going = going[np.argsort(state["number"][going], kind="stable")]
        rows = []
        for row in going:
            number, sample = int(state["number"][row]), int(state["sample"][row])
            given = state["tokens"][row, : state["length"][row]].tolist()
            rows.append(Ask(task.train[number], number, 1, first_sample=sample, given=given))
        carried, passed = len(rows), 0
        for ask, start in zip(asks, first_samples(asks), strict=True):
            if len(rows) + ask.samples > room:
                passed += 1
                continue
            one_each = range(ask.samples)
            rows += [replace(ask, samples=1, first_sample=start + one) for one in one_each]
        drawn = actor.draw([replace(ask, limit=window) for ask in rows], turn.key)
        batch = _in_groups(drawn, rows, carried)
        rollouts = batch.rollouts
        goes_on = rollouts.truncated & (rollouts.length < setting.response_tokens)
        batch = batch.with_rollouts(truncated=goes_on)
        if first:
            used = np.array(turn.step, np.int32)
            state = {**_carried(batch, rows, goes_on, setting), "used": used}
        told = {"carried_rows": carried, "new_rows": len(rows) - carried, "passed_over": passed}
        return batch, state, {name: float(value) for name, value in told.items()}

    return Draw(apply, init, fewer=True)


def _in_groups(drawn: Batch, rows: Sequence[Ask], carried: int) -> Batch:
    """The rows in groups: those that go on by their prompts, the others by their asks."""
    group, last, start = [], None, 0
    for place, ask in enumerate(rows):
        # Samples of an ask are numbered on; another ask begins anew.
        same = place != carried and last is not None and last.number == ask.number
        if place >= carried:
            same = same and ask.first_sample == last.first_sample + 1
        start += place > 0 and not same
        group.append(start)
        last = ask
    group = np.array(group, np.int32)
    rollouts = drawn.rollouts
    mask = rollouts.mask
    if carried and rollouts.origin is not None:
        behind = (np.arange(len(rows)) < carried)[:, None]
        # A trained opening was trained in the first window.
        mask = mask & ~(behind & (rollouts.origin == GIVEN))
    batch = drawn.with_rollouts(group=group, mask=mask).renumbered()
    sizes = np.bincount(group)
    whole = [
        replace(ask, samples=int(sizes[g]), given=ask.given if place >= carried else ())
        for place, (ask, g) in enumerate(zip(rows, group, strict=True))
    ]
    return replace(batch, asks=whole)


def _carried(batch: Batch, rows: Sequence[Ask], goes_on: np.ndarray, setting: Setting):
    """What of a batch goes on in the next step."""
    capacity, task = setting.prompts * setting.drawn_samples, setting.task
    train, rollouts = task.train, batch.rollouts
    state = {
        "tokens": np.zeros((capacity, setting.response_tokens), np.int32),
        "length": np.zeros(capacity, np.int32),
        "number": np.full(capacity, -1, np.int32),
        "sample": np.full(capacity, -1, np.int32),
    }
    place = 0
    for row in np.flatnonzero(goes_on).tolist():
        ask = rows[row]
        own = ask.number < len(train) and train[ask.number] is ask.prompt
        if not own or ask.view.label != PLAIN.label or place == capacity:
            continue
        length = int(rollouts.length[row])
        state["tokens"][place, :length] = rollouts.tokens[row, :length]
        state["length"][place], state["number"][place] = length, ask.number
        state["sample"][place] = ask.first_sample
        place += 1
    return state
