"""The critic of methods that read values: a linear head on hidden states, fitted to the returns.

The head is zero at first: the first batch has values of 0, and its advantages are returns. The
hidden states come from one of two networks (`Critic.trunk`). A separate network starts with the
weights of the policy and trains all of them, even if the policy trains adapters. Or the states are
those of the policy. Then only the head is trained, and no gradient reaches the policy.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from rlvr_jax.objectives import Critic, Scorer, masked_mean, masked_std, value_loss
from rlvr_jax.parallel import parameter_shardings, placed_shapes, replicated, row_sharding
from rlvr_jax.policy import Model, Params, hidden_states, products
from rlvr_jax.policy.parameters import parameter_shapes
from rlvr_jax.policy.scoring import without_routes
from rlvr_jax.policy.trees import PrefixTree
from rlvr_jax.training.function_cache import cached_results
from rlvr_jax.training.layout import optimizer_shardings
from rlvr_jax.training.micro_batches import merge_rows, shared_rows, split_rows
from rlvr_jax.training.plan import BatchPlan
from rlvr_jax.training.scorers import CriticState, fit_scorer, head_shapes, initial_head, seen_by
from rlvr_jax.training.update import step_where
from rlvr_jax.types import Rollouts, replace


def critic_values(
    model: Model,
    params: Params,
    rollouts: Rollouts,
    shared: int = 1,
    opening: int = 0,
    tree: PrefixTree | None = None,
) -> Float[Array, "B T"]:
    """V [B, T] at each response token: the expected return before the token is sampled; 0 off the
    mask.

    Args:
      model: the model of the trunk: the policy, without adapters if the critic has its network.
      params: weights of head and trunk.
      rollouts: tokens that the critic reads.
      shared, opening, tree: as for `policy.score`.
    """
    rows = without_routes(rollouts)
    hidden = hidden_states(model, params["trunk"], rows, shared, opening, tree)
    head = params["head"]
    values = products.matmul(hidden.astype(head["weight"].dtype), head["weight"]) + head["bias"]
    return jnp.where(rollouts.mask, values, 0)


def fit_critic(
    model: Model,
    critic: Critic,
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
    """One optimizer update of `value_loss`, averaged over the tokens of all rows as the critic
    weighs them.

    A gradient that is zero everywhere or not finite changes nothing.

    Args:
      model: the policy.
      critic: network and loss of the critic.
      optimizer: of the weights of the critic.
      state: weights and state of the optimizer.
      rollouts: with `values`, the estimates when the batch was sampled, and inputs of the returns.
      policy: its weights, where the critic reads its hidden states.
      micro_batches: micro-batches of the critic; they change only memory and time.
      shared, opening: as for `policy.score`.
      tree: `policy.trees.prefix_tree` of the rows, with a part for each micro-batch of a device.
    Returns:
      The new state and metrics: critic/loss, critic/gradient_norm, critic/value, critic/return,
      critic/explained_variance. Value and return are means over the tokens. The last metric is
      1 - var(G - V_old) / var(G), NaN if all returns are equal.
    """
    mask = rollouts.mask
    returns = jax.lax.stop_gradient(critic.returns(rollouts))
    tokens = jnp.maximum(jnp.sum(mask), 1).astype(returns.dtype)
    weights = jnp.ones_like(returns) if critic.weigh is None else critic.weigh(rollouts)
    weights = jnp.broadcast_to(weights, returns.shape).astype(returns.dtype)

    def loss(params, rows, returns, weights, tree):
        whole = critic_params(params, policy)
        values = critic_values(trunk_of(model, critic), whole, rows, shared, opening, tree)
        errors = value_loss(values, rows.records["values"], returns, critic.clip)
        return jnp.sum(jnp.where(rows.mask, weights * errors, 0)) / tokens

    def add(carry, chunk):
        return jax.tree.map(jnp.add, carry, jax.value_and_grad(loss)(state.params, *chunk)), None

    nothing = jnp.zeros((), returns.dtype), jax.tree.map(jnp.zeros_like, state.params)
    chunks = split_rows((rollouts, returns, weights, tree), micro_batches, model.mesh)
    (total, grads), _ = jax.lax.scan(add, nothing, chunks)
    norm = optax.tree.norm(grads)
    usable = jnp.isfinite(total) & jnp.isfinite(norm) & (norm > 0)
    new = CriticState(*step_where(usable, optimizer, grads, state.optimizer_state, state.params))
    spread = masked_std(returns, mask) ** 2
    unexplained = masked_std(returns - rollouts.records["values"], mask) ** 2
    metrics = {
        "critic/loss": total,
        "critic/gradient_norm": norm,
        "critic/value": masked_mean(rollouts.records["values"], mask),
        "critic/return": masked_mean(returns, mask),
        "critic/explained_variance": jnp.where(spread > 0, 1 - unexplained / spread, jnp.nan),
    }
    return new, metrics


def trunk_of(model: Model, critic: Critic | Scorer) -> Model:
    """Returns the model whose hidden states the critic reads."""
    if critic.trunk == "policy":
        return model
    return replace(model, config=replace(model.config, lora=None))


def critic_params(params: Params, policy: Params | None) -> Params:
    """Head and trunk: the critic's own, or the policy's."""
    return params if "trunk" in params else {**params, "trunk": policy}


def critic_shapes(
    model: Model, critic: Critic | Scorer, optimizer: optax.GradientTransformation
) -> CriticState:
    """Shapes, dtypes and shardings of a critic's state."""
    trunk = placed_shapes(
        parameter_shapes(model.config), parameter_shardings(model.config, model.mesh)
    )
    whole = replicated(model.mesh)
    dtype = jax.tree.leaves(trunk)[0].dtype
    if isinstance(critic, Scorer):
        head = head_shapes(model, critic, dtype)
    else:
        head = {
            "weight": jax.ShapeDtypeStruct((model.config.width,), dtype, sharding=whole),
            "bias": jax.ShapeDtypeStruct((), dtype, sharding=whole),
        }
    params = {"head": head} | ({"trunk": trunk} if critic.trunk == "own" else {})
    shapes = jax.eval_shape(optimizer.init, params)
    return CriticState(params, placed_shapes(shapes, optimizer_shardings(optimizer, params)))


def initial_critic(
    model: Model, critic: Critic | Scorer, optimizer: optax.GradientTransformation, start: Params
) -> CriticState:
    """The critic before the first update.

    Args:
      model: the policy.
      critic: network and loss of the critic.
      optimizer: of the weights of the critic.
      start: all weights of the policy; they are copied if the critic has a separate trunk.
    """
    shapes = critic_shapes(model, critic, optimizer)
    if isinstance(critic, Scorer):
        head = initial_head(model, critic, jax.tree.leaves(start)[0].dtype)
    else:
        zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes.params["head"])
        head = jax.device_put(zeros, replicated(model.mesh))
    params = {"head": head}
    if critic.trunk == "own":
        params["trunk"] = jax.tree.map(jnp.copy, start)
    shardings = jax.tree.map(lambda x: x.sharding, shapes.optimizer_state)
    return CriticState(params, jax.jit(optimizer.init, out_shardings=shardings)(params))


@cached_results
def jitted_critic(
    model: Model,
    critic: Critic | Scorer,
    optimizer: optax.GradientTransformation,
    plan: BatchPlan,
    opening: int,
) -> tuple[Any, Any]:
    """Returns two compiled functions for global arrays; those of a `Scorer` return its values.

    Args:
      model: the policy.
      critic: network and loss of the critic.
      optimizer: of the weights of the critic.
      plan: rows and micro-batches of an update.
      opening: number of tokens at the beginning of all prompts.
    Returns:
      values: (`critic_params`, rollouts of one update) -> {name: [B, T] or [B, K]}.
      fit: (state, these rollouts, weights of the policy or None) -> (state, metrics). The state
      cannot be used again. Both also take the trees of the rollouts by the name `tree`.
    """
    shardings = jax.tree.map(lambda x: x.sharding, critic_shapes(model, critic, optimizer))
    trunk = trunk_of(model, critic)
    shared = shared_rows(plan, model.mesh)
    if isinstance(critic, Scorer):
        name, fitted = critic.writes, partial(fit_scorer, trunk)

        def of_chunk(params, rows, tree):
            seen = seen_by(trunk, critic, params["trunk"], rows, shared, opening, tree=tree)
            return critic.score(params["head"], seen, rows)

    else:
        name, fitted = "values", partial(fit_critic, model)

        def of_chunk(params, rows, tree):
            return critic_values(trunk, params, rows, shared, opening, tree)

    def values(params, rollouts, tree=None):
        chunks = split_rows((rollouts, tree), plan.micro_batches, model.mesh)
        found = jax.lax.map(lambda chunk: of_chunk(params, *chunk), chunks)
        return {name: merge_rows(found, model.mesh)}

    def fit(state, rollouts, policy=None, *, tree=None):
        return fitted(
            critic,
            optimizer,
            state,
            rollouts,
            policy,
            micro_batches=plan.micro_batches,
            shared=shared,
            opening=opening,
            tree=tree,
        )

    rows, whole = row_sharding(model.mesh), replicated(model.mesh)
    jit = partial(
        jax.jit, compiler_options=products.compiler_options(model.config.compute_dtype, model.mesh)
    )
    return (
        jit(values, out_shardings=rows),
        jit(fit, donate_argnums=0, out_shardings=(shardings, whole)),
    )
