"""Good answers of the last steps are learned from once more, against what is usual by then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.store import Store, empty_store, oldest, push, repeatable, rewritten, taken
from rlvr_jax.objectives import rising_cosine
from rlvr_jax.tasks import Grade, Task
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part

__all__ = ["ReplayState", "replay_good", "replay_size", "usual_reward"]

FULL = 1.5
"""A replay begins when so many times its rows are good."""

PER_TOKEN = ("behaviour_logp", "entropy", "temperature", "old_logp")
PER_ROW = ("outcome", "reward")


class ReplayState(NamedTuple):
    """What is kept between steps.

    Fields:
      store: good rows with their old log-probs.
      means: float32 [Q], rewards of the last groups, NaN before there are any.
    """

    store: Store
    means: np.ndarray


def usual_reward(means: np.ndarray) -> float:
    """The median of the known means; NaN without any."""
    known = means[~np.isnan(means)]
    return float(np.median(known)) if len(known) else float("nan")


def replay_size(number: int, most: int) -> int:
    """The largest power of two up to both numbers; 0 of none."""
    number = min(number, most)
    return 2 ** (number.bit_length() - 1) if number > 0 else 0


@part
def replay_good(
    rows: Count = 32,
    age: Count = 5,
    groups: Count = 32,
    rise: Callable[[int], float] = rising_cosine(300),  # noqa: B008 (a function)
    where: Callable[[Batch, Task], np.ndarray] | None = None,
) -> Stage:
    """Keeps answers that were better than their group, and learns from them later in an update of
    their own.

    The usual reward b is the median of the mean rewards of the last groups, those of this step
    included; rows without a reward (NaN) are in no mean. Once more than 1.5 times `rows` of the
    kept answers have a reward above b, as many of them as a power of two, drawn without order, are
    a further update with the advantage R - b, the weight γ(step) and their old log-probs; then
    nothing is kept. Only answers to train prompts as they are can be kept.

    Args:
      rows: of a further update at most; of the kept ones there are twice as many at most.
      age: steps that an answer is kept.
      groups: whose mean rewards are remembered.
      rise: γ, of the step.
      where: (batch, task) -> bool [B], rows that may be kept; None: all.
    Reads: reward. Writes: `Batch.further`, of rows that are stored. Metrics: usual_reward (b),
      kept_rows, replayed_rows, replay_weight (γ).
    Raises:
      ValueError: a number below 1.
    Source: SPEAR, https://github.com/TencentYoutuResearch/SPEAR.
    """

    def init(setting):
        tokens = (setting.response_tokens,)
        store = empty_store(
            2 * rows,
            number=((), np.int32),
            tokens=(tokens, np.int32),
            length=((), np.int32),
            mask=(tokens, np.bool_),
            truncated=((), np.bool_),
            weight_version=((), np.int32),
            **{name: (tokens, np.float32) for name in PER_TOKEN},
            **{name: ((), np.float32) for name in PER_ROW},
        )
        return ReplayState(store, np.full(groups, np.nan, np.float32))

    def apply(batch, actor, state, turn):
        reward = batch.rollouts.reward
        known = batch.decided & ~np.isnan(reward)
        mean = np.full(len(batch), np.nan)
        for own in batch.groups:
            if known[own].any():
                mean[own] = reward[own][known[own]].mean()
        new = [mean[own[0]] for own in batch.groups if not np.isnan(mean[own[0]])]
        means = np.concatenate([state.means, np.array(new, np.float32)])[-groups:]
        usual = usual_reward(means)
        store = _younger(state.store, turn.step - age)
        good = known & (reward > mean) & repeatable(batch, turn.setting)
        if where is not None:
            good &= where(batch, turn.setting.task)
        if good.any():
            store = push(store, _records(batch.take(np.flatnonzero(good)), actor), turn.step)
        places = oldest(store)
        places = places[store.rows["reward"][places] > usual]
        further, weight = list(batch.further), float(rise(turn.step))
        told = {"usual_reward": usual, "replay_weight": weight, "replayed_rows": 0.0}
        if len(places) > FULL * rows:
            size = replay_size(len(places), rows)
            own = taken(store, np.sort(turn.random().permutation(places)[:size]))
            written = rewritten(actor, turn.setting.task, own)
            further.append(_replayed(written, own, usual, weight))
            store = store._replace(held=np.int32(0))
            told["replayed_rows"] = float(size)
        told["kept_rows"] = float(store.held)
        return replace(batch, further=further), ReplayState(store, means), told

    return Stage(apply, init, updates=1, by_row=True)


def _younger(store: Store, step: int) -> Store:
    """The store without rows of steps before this one; the oldest come first."""
    places = oldest(store)
    old = int(np.sum(store.step[places] < step))
    first = (int(store.first) + old) % store.capacity
    return store._replace(first=np.int32(first), held=np.int32(int(store.held) - old))


def _records(good: Batch, actor) -> dict[str, np.ndarray]:
    """What is kept of rows, their log-probs at the weights that sampled among it."""
    good = good.with_rollouts(old_logp=actor.score(good, ["logp"])["logp"])
    names = ("tokens", "length", "mask", "truncated", "weight_version", *PER_TOKEN, *PER_ROW)
    known = {name: getattr(good.rollouts, name) for name in names}
    return {"number": np.array([ask.number for ask in good.asks], np.int32), **known}


def _replayed(written: Batch, rows: dict[str, np.ndarray], usual: float, weight: float) -> Batch:
    """Stored rows as a batch that brings what was decided about it."""
    kind = written.rollouts.reward.dtype
    numbers = {name: rows[name].astype(kind) for name in (*PER_TOKEN, *PER_ROW)}
    other = {name: rows[name] for name in ("mask", "truncated", "weight_version")}
    mask = rows["mask"]
    advantage = np.where(mask, (rows["reward"] - usual)[:, None], 0).astype(kind)
    whole = written.with_rollouts(
        stored=np.ones(len(written), bool),
        advantage=advantage,
        weight=np.where(mask, weight, 0).astype(kind),
        kept=mask,
        **numbers,
        **other,
    )
    pairs = zip(rows["outcome"].tolist(), rows["reward"].tolist(), strict=True)
    return replace(whole, grades=[Grade(outcome, reward) for outcome, reward in pairs])
