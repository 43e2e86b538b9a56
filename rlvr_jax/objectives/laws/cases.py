"""A law's case: an objective on a batch, its step, and how two numbers are compared."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.laws import require
from rlvr_jax.objectives.algebra.core import Objective
from rlvr_jax.objectives.algebra.parts import Spec
from rlvr_jax.types import Method, Rollouts, Signals, TokenStats

# Tolerance of float64 sums of some hundred terms in another order; then that of float32.
FLOAT64, FLOAT32 = 1e-11, 1e-5


@dataclass(frozen=True, eq=False)
class Case:
    """An objective on a batch.

    Fields:
      objective: the loss.
      stats: float64 `TokenStats`, [B, T].
      rollouts: the batch, float64.
      card: declarations of the method (`baseline`, `gradient`, `ratio`, …) that some laws read.
      soft: the batch with rewards between 0 and 1; None: `rollouts`.
    """

    objective: Objective
    stats: TokenStats
    rollouts: Rollouts
    card: Method
    soft: Rollouts | None = None

    @functools.cached_property
    def found(self) -> "Step":
        """The step on the whole batch."""
        return self.step()

    def step(
        self,
        stats: TokenStats | None = None,
        rollouts: Rollouts | None = None,
        state: dict[str, Any] | None = None,
        seed: int = 0,
    ) -> "Step":
        """The step with some inputs replaced."""
        stats = self.stats if stats is None else stats
        return step(
            self.objective, stats, self.rollouts if rollouts is None else rollouts, state, seed
        )

    @property
    def rows(self) -> int:
        """B."""
        return self.rollouts.mask.shape[0]


class Step(NamedTuple):
    """Loss, gradient by the statistics, new state, metrics and decisions of one call."""

    loss: jax.Array
    dstats: TokenStats
    state: dict[str, Any]
    metrics: dict[str, jax.Array]
    signals: Signals
    token_loss: jax.Array


def step(
    objective: Objective,
    stats: TokenStats,
    rollouts: Rollouts,
    state: dict[str, Any] | None = None,
    seed: int = 0,
) -> Step:
    """Evaluates an objective on statistics, with its gradient; compiled once per shape.

    Args:
      objective: its value is a static argument of the compiled function.
      stats: statistics of the current policy; the gradient is taken in them.
      rollouts: a whole batch.
      state: state by the name of a part; None: that of `init`.
      seed: of the key that the objective receives.
    """
    state = objective.init(spec(rollouts)) if state is None else state
    return evaluated(objective, stats, rollouts, state, jax.random.key(seed))


@functools.partial(jax.jit, static_argnums=0)
def evaluated(own, stats, rollouts, state, key):
    """The compiled function of `step`; its cache shows whether a call compiled.

    Args:
      own: an objective.
      stats: statistics of the current policy.
      rollouts: a whole batch.
      state: state by the name of a part.
      key: of the random choices of the parts.
    """
    gradient = jax.value_and_grad(own.loss, has_aux=True, allow_int=True)
    (loss, (new_state, metrics)), dstats = gradient(stats, rollouts, state, key)

    def numeric(slope):  # the gradient by integers has a dtype that numpy cannot compare
        return jnp.zeros(slope.shape) if slope.dtype == jax.dtypes.float0 else slope

    dstats = jax.tree.map(numeric, dstats)
    signals = own.signals(stats, rollouts, state, key)
    return Step(
        loss, dstats, new_state, metrics, signals, own.token_loss(stats, rollouts, state, key)
    )


def spec(rollouts: Rollouts) -> Spec:
    """The sizes of a batch."""
    return Spec(prompts=8, B=rollouts.mask.shape[0], T=rollouts.mask.shape[1])


def array(values: Any, dtype: Any) -> jax.Array:
    """A device array of a numpy dtype, built by numpy, so that nothing is compiled."""
    return jnp.asarray(np.asarray(values, dtype))


def changed(tree: Any, function: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Applies a function to the arrays of a pytree as numpy."""
    return jax.tree.map(lambda values: array(function(np.asarray(values)), values.dtype), tree)


def cast(tree: Any, dtype: Any) -> Any:
    """The floating-point arrays of a pytree in another dtype."""
    return jax.tree.map(
        lambda v: array(v, dtype) if np.issubdtype(v.dtype, np.floating) else v, tree
    )


def agree(name: str, found: Any, wanted: Any, tolerance: float = FLOAT64) -> None:
    """Requires |found - wanted| ≤ tolerance · max |wanted| in every array of a tree.

    Args:
      name: beginning of the error.
      found: a tree of arrays.
      wanted: a tree of the same structure.
      tolerance: relative to the largest entry of the wanted array.
    """
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)
    for one, two in ((np.asarray(one), np.asarray(two)) for one, two in pairs):
        require(one.shape == two.shape, f"{name} has the shape {one.shape}, not {two.shape}")
        limit = tolerance * np.abs(two).max(initial=0)
        close = np.isclose(one, two, rtol=0, atol=limit, equal_nan=True)
        gap = np.abs(np.where(close, 0, np.subtract(one, two, dtype=float))).max(initial=0)
        require(bool(close.all()), f"{name} differs by {gap:.3g}")


def same_step(found: Step, wanted: Step, gradient: Any) -> None:
    """Requires that loss, metrics and gradient of two steps agree."""
    agree("the loss", found.loss, wanted.loss)
    for name, values in wanted.metrics.items():
        agree(f"metric {name}", found.metrics[name], values)
    agree("the gradient", gradient, wanted.dstats)


def require_finite(found: Step) -> None:
    """Requires that loss, gradient, metrics and state are finite."""
    for name in ("loss", "dstats", "metrics", "state"):
        for leaf in jax.tree.leaves(getattr(found, name)):
            require(bool(np.isfinite(leaf).all()), f"{name} has values that are not finite")


def size_of_loss(case: Case) -> float:
    """Mean size of the token losses, or the loss: token losses of both signs may cancel."""
    size = np.abs(case.found.token_loss).sum() / max(np.asarray(case.rollouts.mask).sum(), 1)
    return float(max(size, np.abs(case.found.loss)))
