"""Groups taken apart: some rows are learned from now, the others later, in updates of their own."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.rewards.estimates import estimator
from rlvr_jax.experience.store import empty_store, pop_oldest, push, repeatable, rewritten
from rlvr_jax.objectives import Transform
from rlvr_jax.tasks import Grade
from rlvr_jax.types.hyperparameters import Unit
from rlvr_jax.types.parts import part

__all__ = ["priority_rows", "recompose"]

RIGHT = 0.5
"""An outcome above this counts as right."""

PER_TOKEN = ("behaviour_logp", "entropy", "temperature", "old_logp", "advantage")
PER_ROW = ("outcome", "reward")


def priority_rows(
    outcome: np.ndarray, length: np.ndarray, group: np.ndarray, fraction: float
) -> np.ndarray:
    """The ⌈α n⌉ shortest right and the ⌈α n⌉ longest wrong rows of each group, bool [B].

    n is the number of right, or of wrong, rows of the group; equal lengths stay by their order.

    Args:
      outcome, length, group: [B].
      fraction: α.
    """
    right = outcome > RIGHT
    chosen = np.zeros(len(outcome), bool)
    for number in np.unique(group):
        for kind, key in ((right, length), (~right, -length)):
            rows = np.flatnonzero((group == number) & kind)
            rows = rows[np.argsort(key[rows], kind="stable")]
            chosen[rows[: math.ceil(fraction * len(rows))]] = True
    return chosen


@part
def recompose(advantage: Transform, fraction: Unit = 0.5) -> Stage:
    """Learns from the shortest right and the longest wrong rows now, from the others later.

    Advantages are estimated on whole groups, before these are taken apart. What is not chosen is
    scored and kept with its advantage and old log-probs, first in, first out; once there are as
    many rows as a step draws, the oldest are a further update. Only answers to train prompts as
    they are can be kept; the others are dropped.

    Args:
      advantage: of the objective, estimated here; it reads no policy.
      fraction: of the right and of the wrong rows of a group that are chosen (α), in (0, 1].
    Reads: outcome, length, what the advantage reads. Writes: advantage; `Batch.further`, of rows
      that are stored. Metrics: priority_share (of the rows), kept_rows (that wait),
      compensation_rows (in a further update).
    Raises:
      ValueError: fraction outside (0, 1]; an advantage that reads a policy.
    Source: RoRecomp, https://arxiv.org/abs/2509.25958.
    """
    if not fraction:
        raise ValueError(f"recompose: fraction must be above 0, got {fraction}")
    estimate = estimator(advantage)

    def init(setting):
        tokens, rows = (setting.response_tokens,), setting.prompts * setting.drawn_samples
        return empty_store(
            2 * rows,  # full, and one step's more
            number=((), np.int32),
            tokens=(tokens, np.int32),
            length=((), np.int32),
            mask=(tokens, np.bool_),
            truncated=((), np.bool_),
            weight_version=((), np.int32),
            **{name: (tokens, np.float32) for name in PER_TOKEN},
            **{name: ((), np.float32) for name in PER_ROW},
        )

    def apply(batch, actor, state, turn):
        batch = batch.with_rollouts(advantage=estimate(batch.rollouts))
        rollouts = batch.rollouts
        chosen = priority_rows(rollouts.outcome, rollouts.length, rollouts.group, fraction)
        aside = ~chosen & batch.decided & repeatable(batch, turn.setting)
        if aside.any():
            state = push(state, _records(batch.take(np.flatnonzero(aside)), actor), turn.step)
        further = list(batch.further)
        full = turn.setting.prompts * turn.setting.drawn_samples
        if state.held >= full:
            rows, state = pop_oldest(state, full)
            further.append(_compensation(rewritten(actor, turn.setting.task, rows), rows))
        told = {
            "priority_share": float(chosen.mean()),
            "kept_rows": float(state.held),
            "compensation_rows": float(sum(map(len, further))),
        }
        priority = batch.take(np.flatnonzero(chosen)).renumbered()
        return replace(priority, further=further), state, told

    return Stage(apply, init, writes=frozenset({"advantage"}), updates=1, by_row=True)


def _records(rest: Batch, actor) -> dict[str, np.ndarray]:
    """What is kept of rows, their log-probs at the weights that sampled among it."""
    rest = rest.with_rollouts(old_logp=actor.score(rest, ["logp"])["logp"])
    names = ("tokens", "length", "mask", "truncated", "weight_version", *PER_TOKEN, *PER_ROW)
    known = {name: getattr(rest.rollouts, name) for name in names}
    return {"number": np.array([ask.number for ask in rest.asks], np.int32), **known}


def _compensation(written: Batch, rows: dict[str, np.ndarray]) -> Batch:
    """Stored rows as a batch that brings its advantages and old log-probs."""
    kind = written.rollouts.reward.dtype
    numbers = {name: rows[name].astype(kind) for name in (*PER_TOKEN, *PER_ROW)}
    other = {name: rows[name] for name in ("mask", "truncated", "weight_version")}
    whole = written.with_rollouts(stored=np.ones(len(written), bool), **numbers, **other)
    pairs = zip(rows["outcome"].tolist(), rows["reward"].tolist(), strict=True)
    return replace(whole, grades=[Grade(outcome, reward) for outcome, reward in pairs])
