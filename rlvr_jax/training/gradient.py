"""The gradient of an objective over a whole batch, for any score function, in three steps.

    stats, pullback = vjp(score, params)      1 the model: numbers per token
    loss, dstats    = grad(objective)(stats)  2 the method, on the whole batch of the update
    grads           = pullback(dstats)        3 the model again, linear in dstats

With M micro-batches, step 1 runs M times without residuals, and step 2 once on all tokens. Step 3
recomputes each micro-batch and pulls back its slice of dstats. An objective without statistics of
the current policy over the batch needs one pass. The cotangents of a micro-batch then depend only
on its statistics, so it is pulled back directly after scoring. Zero cotangents are not pulled back.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Bool

from rlvr_jax.arguments import check_each
from rlvr_jax.objectives import Objective
from rlvr_jax.training.micro_batches import merge_rows, split_rows
from rlvr_jax.training.statistics import DIVERGENCES, measurable
from rlvr_jax.types import Rollouts, TokenStats
from rlvr_jax.types.hyperparameters import Count


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Gradient:
    """Result of steps 1 to 3: loss and its gradient, metrics and statistics."""

    loss: Array
    grads: Any
    stats: TokenStats
    method_state: dict[str, Any]
    metrics: dict[str, Array]


def statistics_needed(objective: Objective) -> frozenset[str]:
    """Returns the statistics that the gradient of the objective needs; "logp" always.

    Examples:
      >>> from rlvr_jax import methods
      >>> from rlvr_jax.training.gradient import statistics_needed
      >>> sorted(statistics_needed(methods.recipe("forking_tokens").objective))
      ['entropy', 'logp']
    """
    own = {*objective.reads, *old_statistics(objective).values()}
    return frozenset(own & measurable()) | {"logp"}


def old_statistics(objective: Objective) -> dict[str, str]:
    """Returns the statistics of the weights that sampled: name in `Rollouts` -> statistic."""
    wanted = {need: need.removeprefix("old_") for need in objective.reads if need[:4] == "old_"}
    alone = measurable() - DIVERGENCES
    return {"old_logp": "logp"} | {need: name for need, name in wanted.items() if name in alone}


def exact_gradient(
    score: Callable[..., TokenStats],
    objective: Objective,
    params: Any,
    rollouts: Rollouts,
    method_state: dict[str, Any],
    key: jax.Array,
    *,
    fresh: Bool[Array, ""] | bool = False,
    micro_batches: int = 1,
    mesh: Mesh | None = None,
    beside: Any = None,
) -> Gradient:
    """Computes loss and gradient of an objective over all rows of an update, for any model.

    Examples:
      >>> import jax
      >>> import jax.numpy as jnp
      >>> from rlvr_jax import Rollouts, Spec, TokenStats, exact_gradient, methods
      >>> objective = methods.recipe("reinforce").objective
      >>> tokens, mask = jnp.array([[0], [1]]), jnp.ones((2, 1), bool)
      >>> rows = Rollouts.of_responses(tokens, mask, jnp.array([1.0, 0.0]), jnp.array([0, 0]))
      >>> score = lambda params, rows: TokenStats(logp=jax.nn.log_softmax(params)[rows.tokens])
      >>> state = objective.init(Spec(1, 2, 1))
      >>> found = exact_gradient(score, objective, jnp.zeros(2), rows, state, jax.random.key(0))
      >>> found.grads.shape
      (2,)

    The gradient is that of the whole batch for any number of micro-batches: groups, quantiles and
    counts of tokens see all rows. The average of the losses of micro-batches is a different value.

    Args:
      score: (params, rows) -> `TokenStats` [b, T] with the fields of `statistics_needed`,
        differentiable in `params`. Values of a row must not depend on other rows. With batch
        statistics or experts with a capacity, the gradient depends on the split.
      objective: a loss, such as `rlvr_jax.methods.recipe("dapo").objective`.
      params: a pytree of arrays.
      rollouts: all rows of the update, as arrays of JAX or numpy.
      method_state: of `objective.init(Spec(prompts, B, T))`, then of the last call.
      key: a key of jax.random, a new one for each update.
      fresh: `params` are the weights that sampled the rollouts. Statistics of the old policy are
        then those of this pass, and the ratio is exactly 1. With False, `rollouts.old_logp` and
        others are read if they are given, else they are also those of this pass.
      micro_batches: micro-batches of the model; they change only memory and time. If its rows have
        no gradient (groups of equal rewards), a micro-batch needs only a forward pass.
      mesh: the mesh over which rows are split, if they are.
      beside: arrays that `score` receives as its third argument, if there are any. They are split
        like the rows, so their first axis is that of the rows, or of parts of the rows.
    Raises:
      ValueError: not an objective; micro_batches does not divide the rows; a score that returns
        no statistics, or lacks some that the objective reads.
    """
    if not isinstance(objective, Objective):
        raise ValueError(
            "exact_gradient: objective must be an Objective, such as that of a recipe"
            f" (recipe.objective), got {type(objective).__name__}"
        )
    check_each(Count, "exact_gradient", micro_batches=micro_batches)
    rollouts = jax.tree.map(jnp.asarray, rollouts)
    if rollouts.tokens.shape[0] % micro_batches:
        raise ValueError(
            f"exact_gradient: micro_batches must divide the {rollouts.tokens.shape[0]} rows, got"
            f" {micro_batches}"
        )
    inputs = (rollouts,) if beside is None else (rollouts, beside)
    given = jax.eval_shape(score, params, *inputs)
    if not isinstance(given, TokenStats):
        raise ValueError(
            f"exact_gradient: score must return TokenStats, got {type(given).__name__}"
        )
    missing = sorted(name for name in statistics_needed(objective) if given.get(name) is None)
    if missing:
        raise ValueError(f"exact_gradient: score must return {', '.join(missing)}, got none")

    grad_of_loss = jax.value_and_grad(objective.loss, has_aux=True, allow_int=True)

    def method(stats):
        return grad_of_loss(
            stats, with_old_statistics(objective, rollouts, stats, fresh), method_state, key
        )

    if micro_batches == 1:
        stats, pullback = jax.vjp(lambda p: score(p, *inputs), params)
        (loss, (method_state, metrics)), dstats = method(stats)
        (grads,) = pullback(dstats)
        return Gradient(loss, grads, stats, method_state, metrics)

    chunks = split_rows(inputs, micro_batches, mesh)
    zeros = jax.tree.map(jnp.zeros_like, params)

    def added(grads, pull, dstats):
        """`grads` plus `pull` of the cotangents; if all are 0, it is not called."""
        nonzero = [jnp.any(x != 0) for x in jax.tree.leaves(dstats) if x.dtype != jax.dtypes.float0]
        return jax.lax.cond(
            jnp.any(jnp.stack(nonzero)),
            lambda: jax.tree.map(jnp.add, grads, pull(dstats)[0]),
            lambda: grads,
        )

    def piece_of(tree, index):
        tree = split_rows(tree, micro_batches, mesh)
        return jax.tree.map(lambda x: x[index], tree)

    if "batch_statistics" in objective.reads:
        stats = merge_rows(jax.lax.map(lambda chunk: score(params, *chunk), chunks), mesh)
        (loss, (method_state, metrics)), dstats = method(stats)

        def pull(grads, index):
            chunk = jax.tree.map(lambda x: x[index], chunks)

            def recompute(cotangents):
                return jax.vjp(lambda p: score(p, *chunk), params)[1](cotangents)

            return added(grads, recompute, piece_of(dstats, index)), None

        grads, _ = jax.lax.scan(pull, zeros, jnp.arange(micro_batches))
        return Gradient(loss, grads, stats, method_state, metrics)

    shapes = given
    nothing = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)

    def score_and_pull(carry, index):
        grads, stats = carry
        chunk = jax.tree.map(lambda x: x[index], chunks)
        own, pullback = jax.vjp(lambda p: score(p, *chunk), params)
        stats = jax.tree.map(lambda whole, part: whole.at[index].set(part), stats, own)
        # The other rows' statistics are placeholders: these cotangents do not read them.
        _, dstats = method(merge_rows(stats, mesh))
        return (added(grads, pullback, piece_of(dstats, index)), stats), None

    nothing = split_rows(nothing, micro_batches, mesh)
    (grads, stats), _ = jax.lax.scan(score_and_pull, (zeros, nothing), jnp.arange(micro_batches))
    stats = merge_rows(stats, mesh)
    whole = with_old_statistics(objective, rollouts, stats, fresh)
    loss, (method_state, metrics) = objective.loss(stats, whole, method_state, key)
    return Gradient(loss, grads, stats, method_state, metrics)


def with_old_statistics(
    objective: Objective, rollouts: Rollouts, stats: TokenStats, fresh: Bool[Array, ""] | bool
) -> Rollouts:
    """Returns the rollouts with the statistics of the weights that sampled them.

    Args:
      objective: its reads of old statistics are recorded.
      rollouts: all rows of an update.
      stats: statistics of the current weights. They are the old ones if `fresh`, or if nothing was
        recorded. Rows of the record `stored` keep their recorded values.
      fresh: True for the first update after sampling.
    """
    known = {}
    for field, name in old_statistics(objective).items():
        now, then = jax.lax.stop_gradient(stats.get(name)), rollouts.get(field)
        own = fresh
        if "stored" in rollouts.records:
            own = fresh & ~rollouts.records["stored"].reshape(-1, *[1] * (now.ndim - 1))
        known[field] = now if then is None else jnp.where(own, now, then)
    return rollouts.replace(**known)
