"""Laws of the numbers: gradient, ratio, baseline, dtypes, state, metrics, random keys."""

from typing import Any

import jax
import numpy as np

from rlvr_jax.laws import require
from rlvr_jax.objectives.laws.cases import (
    FLOAT32,
    Case,
    Step,
    agree,
    array,
    cast,
    changed,
    evaluated,
    require_finite,
    size_of_loss,
    spec,
)
from rlvr_jax.types import Rollouts

# The ratio of a method may have a small denominator.
RATIO = 1e-9
# The digits that remain of 16 after a difference of 1e-6.
SLOPE = 1e-8
METRICS = {
    "clipped_fraction",
    "covariance",
    "ratio/min",
    "ratio/mean",
    "ratio/max",
    "ratio/effective_sample_size",
}
"""Metrics that every objective reports."""


def slope(case: Case) -> None:
    """The gradient is the slope of the loss, unless the card declares `gradient="stopped"`."""
    random, distance = np.random.default_rng(0), 3e-7
    leaves, tree = jax.tree.flatten(case.stats)
    slopes = [np.asarray(one) for one in jax.tree.leaves(case.found.dstats)]
    # Along a random direction of all statistics through which gradient flows.
    direction = [random.normal(size=one.shape) * np.any(one != 0) for one in slopes]

    def loss_at(distance):
        moved = [
            array(np.asarray(leaf) + distance * change, leaf.dtype) if change.any() else leaf
            for leaf, change in zip(leaves, direction, strict=True)
        ]
        return float(case.step(stats=jax.tree.unflatten(tree, moved)).loss)

    def slope_over(distance):
        return (loss_at(distance) - loss_at(-distance)) / (2 * distance)

    terms = [one * change for one, change in zip(slopes, direction, strict=True)]
    size = sum(np.abs(term).sum() for term in terms)
    # Two differences cancel the curvature: SDPO's rest of the vocabulary is nearly empty.
    found, wanted = (
        (4 * slope_over(distance) - slope_over(2 * distance)) / 3,
        sum(map(np.sum, terms)),
    )
    equal = abs(found - wanted) < SLOPE * size
    require(
        equal == (case.card.gradient == "slope"),
        f"along a direction the loss rises by {found:.6g} and the gradient is {wanted:.6g}"
        f" (gradient={case.card.gradient!r})",
    )


def first_ratio(case: Case) -> None:
    """Without old log-probs every ratio is 1, unless the card declares `ratio="other"`."""
    metrics = case.step(rollouts=case.rollouts.replace(old_logp=None)).metrics
    ratios = [metrics[f"ratio/{which}"] for which in ("min", "mean", "max")]
    one = np.allclose(ratios, 1, rtol=0, atol=RATIO)
    listed = ", ".join(f"{float(ratio):.4g}" for ratio in ratios)
    require(one == (case.card.ratio == "policy"), f"least, mean and largest ratio are {listed}")


def groups_of_one(case: Case) -> None:
    """Groups of one have advantage 0, unless the card declares another baseline."""
    rows = np.arange(case.rows)
    found = case.step(rollouts=case.rollouts.replace(group=array(rows[::-1] * 3, np.int32)))
    require_finite(found)
    other = case.card.baseline in ("batch", "other")
    _advantage_is_zero_unless(found, other, f"groups of one (baseline={case.card.baseline!r})")


def equal_rewards(case: Case) -> None:
    """Groups of equal rewards have advantage 0, unless the card declares another baseline."""
    reward = array(np.full(case.rows, 0.1), np.float64)
    found = case.step(rollouts=case.rollouts.replace(reward=reward))
    other = case.card.baseline in ("signal", "other")
    _advantage_is_zero_unless(found, other, f"equal rewards (baseline={case.card.baseline!r})")


def _advantage_is_zero_unless(found: Step, expected: bool, what: str) -> None:
    given = bool(np.asarray(found.signals.advantage).any())
    require(given == expected, f"{what} have {'an' if given else 'no'} advantage")


def bad_grade(case: Case) -> None:
    """A reward or outcome that is not a number makes the loss NaN."""
    for field in ("reward", "outcome"):
        grade = np.asarray(case.rollouts.get(field)).copy()
        grade[3] = np.nan
        found = case.step(rollouts=case.rollouts.replace(**{field: array(grade, grade.dtype)}))
        require(bool(np.isnan(found.loss)), f"with {field} NaN the loss is {float(found.loss):.3g}")


def structure(case: Case) -> None:
    """State and metrics keep their structure, shapes and dtypes, and no second call compiles."""
    found = case.step()  # the compiled function of `case.found` may have been dropped
    before = evaluated._cache_size()
    second = case.step(state=found.state, seed=1)
    require(evaluated._cache_size() == before, "a second call compiles a second time")
    wanted = signature(case.objective.init(spec(case.rollouts)))
    for state in (found.state, second.state):
        require(
            signature(state) == wanted, f"init gives the state {wanted}, a step {signature(state)}"
        )
    require(signature(found.metrics) == signature(second.metrics), "metrics change their structure")
    for name, value in found.metrics.items():
        require(np.shape(value) == (), f"metric {name} is not a scalar: {np.shape(value)}")


def signature(tree: Any) -> tuple[Any, list[Any]]:
    """Structure, shapes and dtypes of a pytree."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(leaf.shape, leaf.dtype) for leaf in leaves]


def float32(case: Case) -> None:
    """A float32 batch has a float32 loss that agrees with float64."""
    stats, rollouts = (cast(tree, np.float32) for tree in (case.stats, case.rollouts))
    found, wanted = case.step(stats, rollouts), case.found
    for name, values in (("the loss", found.loss), ("the gradient", found.dstats.logp)):
        require(values.dtype == np.float32, f"{name} is {values.dtype}")
    require_finite(found)
    gap, limit = abs(float(found.loss) - float(wanted.loss)), FLOAT32 * size_of_loss(case)
    require(gap <= limit, f"the loss differs by {gap:.3g} from float64's")
    agree("the gradient", found.dstats.logp, wanted.dstats.logp, FLOAT32)


def decided_once(case: Case) -> None:
    """Decisions about the whole batch equal those of a single update."""
    own, batch = case.objective, case.rollouts
    if own.decide_once is None:
        return
    state, key = own.init(spec(batch)), jax.random.key(0)
    decided, moved, metrics = jax.jit(own.decide_once)(batch, state, key)
    found, wanted = case.step(rollouts=decided), case.found
    agree("the loss", found.loss, wanted.loss)
    agree("the gradient", found.dstats, wanted.dstats)
    for field in ("advantage", "weight", "mask"):
        agree(field, _decision(found, batch, field), _decision(wanted, batch, field))
    require(
        {**metrics, **found.metrics}.keys() == wanted.metrics.keys(), "metrics have other names"
    )
    parts = dict(own.made.arguments)
    if not any(part.once for part in (parts["advantage"], *parts["transforms"])):
        return
    first = np.asarray(batch.group == batch.group[0])
    for rows in map(np.flatnonzero, (first, ~first)):
        part, own_rows, part_rollouts = (
            changed(tree, lambda v, rows=rows: v[rows]) for tree in (case.stats, batch, decided)
        )
        found = case.step(part, part_rollouts)
        for field in ("advantage", "weight", "mask"):
            once = _decision(found, own_rows, field)
            agree(f"{field} of an update", once, _decision(wanted, batch, field)[rows])
    for one, after in moved.items():  # a controller acts on the batch, not on its updates
        if any(part.once and part.name == one for part in parts["transforms"]):
            agree(f"the state of {one}", after, wanted.state[one])


def _decision(found: Step, rollouts: Rollouts, field: str) -> np.ndarray:
    return np.where(rollouts.mask, getattr(found.signals, field), 0)


def metrics(case: Case) -> None:
    """Metrics include those that every objective reports."""
    missing = METRICS - case.found.metrics.keys()
    require(not missing, f"{', '.join(sorted(missing))} are missing")


def random_key(case: Case) -> None:
    """The loss depends on the random key exactly if the card declares `random=True`."""
    second = case.step(seed=1)
    if case.card.random:
        same = np.array_equal(case.found.signals.weight, second.signals.weight)
        require(not same, "the card declares random=True, and two keys choose the same")
    else:
        require(float(case.found.loss) == float(second.loss), "two keys give two losses")
