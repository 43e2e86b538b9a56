"""The learned scorer of methods that have one, in the place of a critic.

Its state is a `CriticState`: its parameters as the head, and a trunk if it has one. It is stored in
checkpoints, and trained with the optimizer and in the passes of a critic.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

from rlvr_jax.keys import plain_key
from rlvr_jax.objectives import Critic, Scorer, masked_mean
from rlvr_jax.parallel import replicated
from rlvr_jax.policy import Model, Params, hidden_states, score
from rlvr_jax.policy.scoring import without_routes
from rlvr_jax.policy.trees import PrefixTree
from rlvr_jax.training.micro_batches import split_rows
from rlvr_jax.training.update import step_where
from rlvr_jax.types import Rollouts


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class CriticState:
    """State of a critic, or of a learned scorer in its place.

    The parameters are a head and, if the scorer has one, a trunk of the policy's shape.
    """

    params: dict[str, Any]
    optimizer_state: Any


def scorer_needs(critic: Critic | Scorer | None) -> frozenset[str]:
    """Records that are measured for a recipe's scorer; none for a critic."""
    return critic.reads if isinstance(critic, Scorer) else frozenset()


def head_shapes(model: Model, scorer: Scorer, dtype: Any) -> Any:
    """Shapes, dtypes and shardings of a scorer's own parameters."""
    make = partial(scorer.init, width=model.config.width, dtype=dtype)
    shapes = jax.eval_shape(make, jax.random.key(0))
    whole = replicated(model.mesh)
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=whole), shapes)


def initial_head(model: Model, scorer: Scorer, dtype: Any) -> Any:
    """A scorer's own parameters before the first update, the same in all runs."""
    make = partial(scorer.init, width=model.config.width, dtype=dtype)
    made = jax.jit(make, out_shardings=replicated(model.mesh))
    return made(plain_key(0))


def seen_by(
    model: Model,
    scorer: Scorer,
    trunk: Params,
    rollouts: Rollouts,
    shared: int,
    opening: int,
    *,
    tree: PrefixTree | None = None,
) -> Array:
    """Inputs of a scorer for each row; see `Scorer.trunk`.

    Args:
      model: of the trunk.
      scorer: declares the inputs.
      trunk: weights of the scorer's own network, or of the policy.
      rollouts: rows that the scorer reads.
      shared, opening: as for `policy.score`.
      tree: as for `policy.score`; states of the policy are computed without it.
    """
    rollouts = without_routes(rollouts)
    if scorer.trunk == "own":
        return score(model, trunk, rollouts, shared=shared, opening=opening, tree=tree).logp
    # A column more: the state at the last token.
    wider = rollouts.replace(tokens=jnp.pad(rollouts.tokens, ((0, 0), (0, 1))))
    states = hidden_states(model, jax.lax.stop_gradient(trunk), wider, shared, opening)
    return jax.lax.stop_gradient(states.astype(rollouts.reward.dtype))


def fit_scorer(
    model: Model,
    scorer: Scorer,
    optimizer: optax.GradientTransformation,
    state: CriticState,
    rollouts: Rollouts,
    policy: Params | None = None,
    *,
    micro_batches: int = 1,
    shared: int = 1,
    opening: int = 0,
    tree: PrefixTree | None = None,
) -> tuple[CriticState, dict[str, Array]]:
    """One optimizer update of the weighted mean of a scorer's losses.

    A gradient that is zero everywhere or not finite changes nothing, as where no row has a weight.

    Args:
      model: of the trunk.
      scorer: network and losses.
      optimizer: of the weights of the scorer.
      state: weights and state of the optimizer.
      rollouts: with the records that the scorer reads.
      policy: its weights, where the scorer sees its states.
      micro_batches: micro-batches of the rows; they change only memory and time.
      shared, opening: as for `policy.score`.
      tree: as for `fit_critic`.
    Returns:
      The new state, and metrics: critic/loss, critic/gradient_norm, critic/score (mean over the
      tokens, or over the rows' critics, when the batch was sampled).
    """

    def losses(params, rows, tree):
        trunk = params.get("trunk", policy)
        seen = seen_by(model, scorer, trunk, rows, shared, opening, tree=tree)
        return scorer.fit(params["head"], seen, rows)

    def weighed(params, *chunk):
        loss, weight = losses(params, *chunk)
        weight = jax.lax.stop_gradient(weight)
        return jnp.sum(weight * loss), jnp.sum(weight)

    def add(carry, chunk):
        (total, weight), grads = jax.value_and_grad(weighed, has_aux=True)(state.params, *chunk)
        return jax.tree.map(jnp.add, carry, (total, weight, grads)), None

    nothing = jnp.zeros((), rollouts.reward.dtype)
    zeros = nothing, nothing, jax.tree.map(jnp.zeros_like, state.params)
    chunks = split_rows((rollouts, tree), micro_batches, model.mesh)
    (total, weight, grads), _ = jax.lax.scan(add, zeros, chunks)
    weight = jnp.maximum(weight, jnp.finfo(weight.dtype).tiny)
    total = total / weight
    grads = jax.tree.map(lambda x: (x / weight).astype(x.dtype), grads)
    norm = optax.tree.norm(grads)
    usable = jnp.isfinite(total) & jnp.isfinite(norm) & (norm > 0)
    new = CriticState(*step_where(usable, optimizer, grads, state.optimizer_state, state.params))
    scores, there = rollouts.records[scorer.writes], rollouts.mask
    if scorer.writes == "critic_values":
        there = jnp.broadcast_to(jnp.any(there, axis=1, keepdims=True), scores.shape)
    mean = masked_mean(scores, there)
    return new, {"critic/loss": total, "critic/gradient_norm": norm, "critic/score": mean}
