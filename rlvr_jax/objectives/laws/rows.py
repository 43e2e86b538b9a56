"""Laws of rows and positions: no row reads another one that it should not read."""

import itertools
from typing import Any

import jax
import numpy as np

from rlvr_jax.laws import require
from rlvr_jax.objectives.laws.cases import (
    Case,
    agree,
    array,
    cast,
    changed,
    require_finite,
    same_step,
)
from rlvr_jax.types import Rollouts, replace

MICRO_BATCHES = (2, 4)


def order_of_rows(case: Case) -> None:
    """The order of the rows does not matter."""
    order = np.random.default_rng(2).permutation(case.rows)
    found = case.step(*(changed(tree, lambda v: v[order]) for tree in (case.stats, case.rollouts)))
    back = np.argsort(order)
    same_step(found, case.found, changed(found.dstats, lambda v: v[back]))


def padding(case: Case) -> None:
    """Wider padding does not matter."""
    width = case.rollouts.mask.shape[1]

    def widen(values):
        if values.ndim < 2 or values.shape[1] != width:
            return values
        tokens = ((0, 0), (0, 3)) + ((0, 0),) * (values.ndim - 2)
        return np.pad(values, tokens, constant_values=False if values.dtype == bool else 1)

    found = case.step(changed(case.stats, widen), changed(case.rollouts, widen))
    same_step(found, case.found, changed(found.dstats, lambda v: v[:, :width]))


def mask(case: Case) -> None:
    """Values off the mask are never read: NaN there changes nothing."""
    scored = np.asarray(case.rollouts.scored)

    def poison(values):
        if values.shape != scored.shape or not np.issubdtype(values.dtype, np.floating):
            return values
        return np.where(scored, values, np.nan)

    found = case.step(changed(case.stats, poison), changed(case.rollouts, poison))
    same_step(found, case.found, found.dstats)


def empty_rows(case: Case) -> None:
    """Rollouts without tokens have gradient 0 and leave all numbers finite."""
    rows = [0, 5, 11]
    found = case.step(rollouts=_without(case, rows, soft=case.card.rewards == "any"))
    require_finite(found)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(found.dstats)]
    require(not np.asarray(found.dstats.logp)[rows].any(), "rows without tokens have a gradient")
    require(any(leaf.any() for leaf in leaves), "the other rows have no gradient")


def _without(case: Case, rows: Any, soft: bool = False) -> Rollouts:
    """The batch in which some rows have no tokens to train on."""
    rollouts = case.soft if soft and case.soft is not None else case.rollouts
    gone = np.isin(np.arange(case.rows), rows)
    known = {"mask": array(np.asarray(rollouts.mask) & ~gone[:, None], bool)}
    if "supervised" in rollouts.records:
        known["supervised"] = array(np.asarray(rollouts.records["supervised"]) & ~gone, bool)
    return rollouts.replace(**known)


def empty_batch(case: Case) -> None:
    """A batch without tokens has loss and gradient 0."""
    found = case.step(rollouts=_without(case, np.arange(case.rows)))
    require(float(found.loss) == 0, f"the loss is {float(found.loss):.3g}")
    require_finite(found)
    slopes = [np.asarray(leaf) for leaf in jax.tree.leaves(found.dstats)]
    require(not any(slope.any() for slope in slopes), "the gradient is not 0")


def supervised_rows(case: Case) -> None:
    """Supervised and ungraded rows do not change the result of the other rows."""
    supervises = "supervised" in case.objective.reads
    rows = case.rows
    order = np.insert(np.arange(rows), [1, 6, 12], [0, 5, 11])
    added, group = np.array([1, 7, 14]), case.rollouts.group
    # The second and third row are ungraded, with tokens; the second one has graded group members.
    added_values = {
        "mask": np.array([[False], [True], [True]]),
        "valid": np.array([True, False, False]),
        "group": np.array([98 if supervises else int(group[0]), int(group[6]), 99]),
        "rollout_id": rows + np.arange(3),
        "reward": np.array([1, 0, 1]),
        "outcome": np.array([1, 0, 1]),
    }
    batch = changed(case.rollouts, lambda v: v[order])
    fields = {field: np.asarray(batch.get(field)).copy() for field in added_values}
    for field, values in added_values.items():
        fields[field][added] = values
    before = batch.records.get("supervised")
    supervised = np.zeros(rows + 3, bool) if before is None else np.asarray(before).copy()
    supervised[added] = False
    supervised[added[0]] = not supervises
    batch = replace(batch, **{field: array(v, v.dtype) for field, v in fields.items()})
    batch = batch.replace(supervised=array(supervised, bool))
    found = case.step(changed(case.stats, lambda v: v[order]), batch)
    factor = (rows + 3) / rows if case.card.denominator == "rows" else 1
    found = found._replace(loss=factor * found.loss)
    gradient = changed(found.dstats, lambda v: factor * np.delete(v, added, axis=0))
    same_step(found, case.found, gradient)
    agree("the state", found.state, case.found.state)


def micro_batches(case: Case) -> None:
    """The gradient of a micro-batch needs only the statistics of its rows, unless `reads` has
    "batch_statistics"."""
    if "batch_statistics" in case.objective.reads:
        return
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-6)):
        stats, rollouts = cast(case.stats, dtype), cast(case.rollouts, dtype)
        whole = case.step(stats, rollouts).dstats
        splits = (np.array_split(np.arange(case.rows), number) for number in MICRO_BATCHES)
        for rows in itertools.chain(*splits):
            own = np.isin(np.arange(case.rows), rows)

            def hide(values, own=own):
                return np.where(own.reshape(-1, *(1,) * (values.ndim - 1)), values, 0)

            found = case.step(changed(stats, hide), rollouts).dstats
            found, wanted = (changed(tree, lambda v, rows=rows: v[rows]) for tree in (found, whole))
            agree("the gradient of a micro-batch", found, wanted, tolerance)
