"""Distributes the rows of a batch over updates.

A regular batch has `plan.prompts` groups of `plan.samples` rows with one prompt each. It is split
by whole groups. Any other batch (other sizes of groups, several prompts in a group, another number
of rows) is distributed group by group and padded with empty rows. An update is therefore compiled
for only a few numbers of rows.
"""

import zlib
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from rlvr_jax.policy.layout import ROWS
from rlvr_jax.training.micro_batches import spread
from rlvr_jax.training.plan import BatchPlan
from rlvr_jax.types import Rollouts, replace
from rlvr_jax.types.rollouts import missing_number

_SIZES = 4
"""Numbers of rows that an update is compiled for: the most, a half, a quarter, an eighth."""


@dataclass(frozen=True)
class Arrangement:
    """A batch made ready for its updates.

    Fields:
      rollouts: the batch followed by empty rows.
      orders: the rows of each update in turn; those of the first `minibatches` are all rows once.
      plan: of these updates.
      count: rows of the batch.
      left_out: rows of groups that fit into no update.
    """

    rollouts: Rollouts
    orders: list[np.ndarray]
    plan: BatchPlan
    count: int
    left_out: int = 0


class Shuffle(NamedTuple):
    """The random order of the groups of a step: seed of the run, and step."""

    seed: int
    step: int

    def permutation(self, plan: BatchPlan, count: int, epoch: int) -> np.ndarray:
        """The order in an epoch; as they are where a step is one update."""
        if plan.updates == 1:
            return np.arange(count)
        seeds = [self.seed, zlib.crc32(b"minibatches"), self.step, epoch]
        return np.random.default_rng(seeds).permutation(count)


def arrange(
    plan: BatchPlan,
    rollouts: Rollouts,
    several: bool,
    mesh: Mesh | None,
    shuffle: Shuffle,
    most: float = 1.0,
) -> Arrangement:
    """Distributes the rows of a batch over updates.

    Args:
      plan: number of updates, and rows of each.
      rollouts: rows of a group are adjacent.
      several: the objective uses several rewards, so rows differ if any of them differs.
      mesh: that the rows are split over; None: one device.
      shuffle: seed of the run, and step.
      most: largest number of rows of a batch, as a multiple of the rows of the plan.
    """
    if _is_regular(plan, rollouts):
        orders = _regular_orders(plan, rollouts, several, mesh, shuffle)
        return Arrangement(rollouts, orders, plan, len(rollouts.group))
    return _dealt(plan, rollouts, several, mesh, shuffle, most)


def update_sizes(plan: BatchPlan, most: float, mesh: Mesh) -> list[int]:
    """Numbers of rows for which an update may be compiled, multiples of the plan's micro-batch.

    Args:
      most: as for `arrange`.
    """
    chunk = _chunk(plan, mesh)
    largest = most * plan.rows
    return sorted({int(-(-largest // 2**n // chunk) * chunk) for n in range(_SIZES)})


def _chunk(plan: BatchPlan, mesh: Mesh | None) -> int:
    """Rows of a micro-batch, over all devices."""
    parts = 1 if mesh is None else int(np.prod([mesh.shape[axis] for axis in ROWS]))
    return -(-(plan.rows // plan.micro_batches) // parts) * parts


def _is_regular(plan: BatchPlan, rollouts: Rollouts) -> bool:
    group = np.asarray(rollouts.group)
    if len(group) != plan.prompts * plan.samples:
        return False
    groups = group.reshape(plan.prompts, plan.samples)
    whole = (groups == groups[:, :1]).all() and len(np.unique(groups[:, 0])) == plan.prompts
    prompts = rollouts.prompt_tokens.reshape(plan.prompts, plan.samples, -1)
    lengths = rollouts.prompt_length.reshape(plan.prompts, plan.samples)
    alike = (prompts == prompts[:, :1]).all() and (lengths == lengths[:, :1]).all()
    return bool(alike and whole)


def _equal(rollouts: Rollouts, rows: np.ndarray, several: bool) -> bool:
    """Whether the valid rows of these earned the same, so that most objectives learn nothing."""
    rewards = rollouts.records["component_rewards"] if several else rollouts.reward
    rewards = np.asarray(rewards)[rows[np.asarray(rollouts.valid)[rows]]]
    return bool((rewards == rewards[:1]).all())


def _regular_orders(plan, rollouts, several, mesh, shuffle: Shuffle) -> list[np.ndarray]:
    groups = plan.prompts // plan.minibatches
    # Groups of equal rewards, most of which get no gradient, come last: micro-batches of only them
    # are not pulled back.
    groups_of_rows = np.arange(len(rollouts.group)).reshape(plan.prompts, plan.samples)
    equal = np.array([_equal(rollouts, rows, several) for rows in groups_of_rows])
    orders = []
    for epoch in range(plan.epochs):
        order = shuffle.permutation(plan, plan.prompts, epoch)
        for start in range(0, plan.prompts, groups):
            part = np.sort(order[start : start + groups])
            part = spread(part[np.argsort(equal[part], kind="stable")], mesh)
            orders.append((part[:, None] * plan.samples + np.arange(plan.samples)).reshape(-1))
    return orders


def _dealt(plan, rollouts, several, mesh, shuffle, most) -> Arrangement:
    group = np.asarray(rollouts.group)
    starts = np.flatnonzero(np.diff(group, prepend=group[:1] - 1))
    groups = np.split(np.arange(len(group)), starts[1:])
    sizes = update_sizes(plan, most, mesh)
    equal = [_equal(rollouts, rows, several) for rows in groups]
    first = _packed(plan, groups, sizes[-1], shuffle, 0)
    used = max(sum(len(groups[g]) for g in part) for part in first)
    size = next(size for size in sizes if size >= used)
    number = plan.minibatches
    count = len(group)
    left_out = count - sum(len(groups[g]) for part in first for g in part)
    empty = number * size - (count - left_out)
    selected = sorted(g for part in first for g in part)
    orders = []
    for epoch in range(plan.epochs):
        parts = first if epoch == 0 else _packed(plan, groups, size, shuffle, epoch, selected)
        free = count + np.arange(empty)
        for part in parts:
            part = sorted(part, key=lambda g: (equal[g], g))
            rows = np.concatenate([groups[g] for g in part]) if part else np.zeros(0, int)
            filling, free = free[: size - len(rows)], free[size - len(rows) :]
            orders.append(np.concatenate([rows, filling]))
    # To the model one row has one prompt of its own.
    chunks = size // _chunk(plan, mesh)
    own = replace(plan, prompts=number * size, samples=1, micro_batches=chunks)
    return Arrangement(_filled(rollouts, empty), orders, own, count, left_out)


def _packed(plan, groups, size, shuffle: Shuffle, epoch, selected=None) -> list[list[int]]:
    """Groups dealt out in random order, each to the update with the fewest rows; those that find
    no place are left out, unless they are `selected`."""
    parts: list[list[int]] = [[] for _ in range(plan.minibatches)]
    rows = np.zeros(plan.minibatches, int)
    wanted = np.arange(len(groups)) if selected is None else np.array(selected)
    order = wanted[shuffle.permutation(plan, len(wanted), epoch)]
    # Large groups first where space is short: the order among equals stays random.
    order = order[np.argsort([-len(groups[g]) for g in order], kind="stable")]
    for g in order.tolist():
        place = int(np.argmin(rows))
        if rows[place] + len(groups[g]) <= size:
            parts[place].append(g)
            rows[place] += len(groups[g])
    if selected is not None and sum(map(len, parts)) < len(selected):
        return _packed(plan, groups, size, shuffle, 0, None)
    return parts


def _filled(rollouts: Rollouts, empty: int) -> Rollouts:
    """The rollouts followed by empty rows that are not valid."""
    if not empty:
        return rollouts

    def more(x):
        return np.concatenate([x, np.repeat(np.zeros_like(x[:1]), empty, axis=0)])

    filled = jax.tree.map(more, rollouts)
    count = len(rollouts.group)
    ids = filled.rollout_id.copy()
    ids[count:] = rollouts.rollout_id.max() + 1 + np.arange(empty)
    prompts = filled.prompt_length.copy()
    prompts[count:] = 1  # the model reads a token
    temperature = filled.temperature.copy()
    temperature[count:] = 1
    none = {name: x.copy() for name, x in filled.arrays.items() if missing_number(name)}
    for array in none.values():
        array[count:] = -1
    return filled.replace(
        rollout_id=ids,
        prompt_length=prompts,
        temperature=temperature,
        **none,
    )
