"""One optimizer update of a policy: the exact gradient of its objective, applied."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool

from rlvr_jax.objectives import Objective, Scorer, is_chosen, is_clipped, masked_mean
from rlvr_jax.policy import Model, Params, lora, products
from rlvr_jax.policy.parameters import rounded
from rlvr_jax.policy.trees import PrefixTree
from rlvr_jax.training.gradient import (
    Gradient,
    exact_gradient,
    old_statistics,
    statistics_needed,
    with_old_statistics,
)
from rlvr_jax.training.metrics import sampler_metrics, token_metrics
from rlvr_jax.training.statistics import measurable, statistics
from rlvr_jax.types import Recipe, Rollouts


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TrainState:
    """The state on the devices that a step changes: weights, optimizer, method, critic.

    Fields:
      params, optimizer_state: of the policy.
      method_state: of the objective, by the names of its parts.
      updates: how many the policy has had.
      critic: a `CriticState`, which an update of the policy does not change; None: there is none.
      teacher: the exponential average of `params`, where a recipe has it for a teacher.
      reference: trained weights of the reference of a KL, where a run makes new ones; None: it is
        the policy that the run began with.
    """

    params: Params
    optimizer_state: Any
    method_state: dict[str, Any]
    updates: Array
    critic: Any = None
    teacher: Any = None
    reference: Any = None


def scoring_options(objective: Objective) -> tuple[tuple[str, Any], ...]:
    """Options with which `policy.score` measures the statistics of an objective."""
    temperatures = dict(objective.records).get("old_tempered_logp", ())
    return (*objective.options, ("temperatures", temperatures))


def old_shapes(objective: Objective, tokens: tuple[int, int]) -> dict[str, tuple[int, ...]]:
    """The shape of each of `old_statistics` that can be measured before an update, by its field.

    Args:
      tokens: [B, T] of the rollouts.
    """
    shapes = {}
    for field in old_statistics(objective):
        if field == "old_tempered_logp":
            shapes[field] = (*tokens, len(dict(objective.records)[field]))
        # Tokens that are known in the update's own pass only, or in the rollouts.
        elif field not in ("old_topk_logp", "old_candidate_logp"):
            shapes[field] = tokens
    return shapes


def check_needs(
    recipe: Recipe,
    method: str,
    updates_per_step: int,
    given: Collection[str] = (),
    writers: Callable[[str], Sequence[str]] = lambda record: (),
) -> None:
    """Refuses an objective that reads a value which the run neither measures nor records.

    Args:
      recipe: its objective declares the reads.
      method: name of the method, for errors.
      updates_per_step: number of updates of a batch.
      given: records of rollouts that the run's experience fills.
      writers: (record) -> parts that could fill it.
    Raises:
      ValueError: a read that is not one of these: a statistic of the current or old policy,
        log-probs of the reference, of prompts or of grades, values of the critic of the recipe.
        Also log-probs at unnamed temperatures, and old log-probs of the now likeliest tokens with
        several updates per batch.
    """
    objective = recipe.objective
    known = {*measurable(), *old_statistics(objective), "reference_logp", "batch_statistics"}
    if "second_tokens" not in given:
        known -= {"second_prompt_logp", "old_second_prompt_logp"}
    if "verdict_ids" not in given:
        known -= {"verdict_logp"}
    if recipe.teacher is not None:
        known.add("teacher_logp")
    known |= {"prompt_logp", "answer", "component_rewards", "behaviour_logp"}
    known |= {"sampled_entropy", *given}
    if recipe.critic is not None:
        known.add(recipe.critic.writes if isinstance(recipe.critic, Scorer) else "values")
    if "old_tempered_logp" in objective.reads - dict(objective.records).keys():
        raise ValueError(
            f"method {method!r}: the part that reads old_tempered_logp must declare its"
            f" temperatures in `records`, got {dict(objective.records)}"
        )
    if "old_topk_logp" in objective.reads and updates_per_step > 1:
        raise ValueError(
            f"--minibatches and --epochs must be 1 for method {method!r}, which reads the most"
            f" probable tokens at sampling, got {updates_per_step} updates per batch"
        )
    if missing := sorted(objective.reads - known):
        parts = {name: ", ".join(writers(name)) or "none" for name in missing}
        raise ValueError(
            f"method {method!r} reads {', '.join(missing)}, which no part of this run writes; parts"
            f" that can: {'; '.join(f'{name}: {own}' for name, own in parts.items())}"
        )


def objective_gradient(
    model: Model,
    objective: Objective,
    params: Params,
    rollouts: Rollouts,
    method_state: dict[str, Any],
    key: jax.Array,
    *,
    fresh: Bool[Array, ""] | bool = True,
    micro_batches: int = 1,
    shared: int = 1,
    opening: int = 0,
    tree: PrefixTree | None = None,
    base: Params | None = None,
    other: Params | None = None,
) -> Gradient:
    """`exact_gradient` for a decoder model of this library (`Model`).

    Args:
      model, params: policy and its weights.
      objective: loss of the update.
      rollouts: rows of the update.
      method_state: state of the objective, from `Objective.init` or the last update.
      key: random key of the update.
      fresh, micro_batches: as for `exact_gradient`.
      shared: number of adjacent rows of a micro-batch whose common prompt is computed once
        (`policy.score`).
      opening: number of first tokens that all prompts share, computed once per micro-batch.
      tree: `policy.trees.prefix_tree` of the rows, with a part for each micro-batch of a device.
      base: frozen weights to which `params` are the adapters; None: `params` are all weights.
      other: all weights of the second policy of divergences.
    Raises:
      ValueError: micro_batches does not divide the rows.
    """
    # Entropy is always recorded.
    needs = statistics_needed(objective) | {"entropy"}
    options = scoring_options(objective)
    given = params if base is None else base
    narrow = rounded_layers(model, given)

    def measure(params, rollouts, tree=None):
        if base is not None:
            whole = lora.attach(narrow, params)
        else:
            whole = params if narrow is given else _in_place_of(params, narrow)
        how = {"shared": shared, "opening": opening, "tree": tree, "other": other}
        return statistics(model, whole, rollouts, needs, options, **how)

    return exact_gradient(
        measure,
        objective,
        params,
        rollouts,
        method_state,
        key,
        fresh=fresh,
        micro_batches=micro_batches,
        mesh=model.mesh,
        beside=tree,
    )


def rounded_layers(model: Model, params: Params) -> Params:
    """Parameters whose layers are in the dtype of the products, on a CPU; elsewhere as they are.

    A CPU would round each layer again in every micro-batch and pass. On accelerators rounding is
    part of a layer's gather, and a rounded copy of all layers would take memory.
    """
    if not products.narrow_on_cpu(model.config.compute_dtype, model.mesh):
        return params
    return {**params, "layers": rounded(params["layers"], model.config.compute_dtype)}


@jax.custom_vjp
def _in_place_of(params, narrow):
    """The rounded parameters, with a gradient that goes to those which they were rounded from."""
    del params
    return narrow


_in_place_of.defvjp(
    lambda params, narrow: (narrow, None),
    lambda _, slope: (jax.tree.map(lambda x: x.astype(jnp.float32), slope), None),
)


def update(
    model: Model,
    objective: Objective,
    optimizer: optax.GradientTransformation,
    state: TrainState,
    rollouts: Rollouts,
    key: jax.Array,
    *,
    fresh: Bool[Array, ""] | bool,
    **how: Any,
) -> tuple[TrainState, dict[str, Array], dict[str, Array]]:
    """Makes one optimizer update with the exact gradient of the loss.

    A gradient that is zero everywhere (no group with mixed rewards, an empty mask) or not finite
    changes neither parameters nor optimizer. The momentum of Adam therefore does not move a policy
    without gradient. The state of the method stays unchanged only if a value is not finite. An
    infinite loss with a finite gradient counts, such as a divergence from a distant policy.

    Args:
      model: policy.
      objective: loss of the update.
      optimizer: optimizer of `state.params`.
      state: state before the update.
      rollouts: rows of the update.
      key: random key of the update.
      fresh: as for `objective_gradient`.
      **how: other options of `objective_gradient`.
    Returns:
      The new state, scalar metrics, and a record per token, [B, T] or [B, T, K]. The record has
      `old_logp` and other used statistics of the old policy, `logp`, `entropy`, `advantage`,
      `ratio`, `chosen` (`is_chosen`) and `clipped`.
    """
    arguments = state.params, rollouts, state.method_state, key
    gradient = objective_gradient(model, objective, *arguments, fresh=fresh, **how)
    norm = optax.tree.norm(gradient.grads)
    finite = ~jnp.isnan(gradient.loss) & jnp.isfinite(norm)
    usable = finite & (norm > 0)
    new_state = TrainState(
        *step_where(usable, optimizer, gradient.grads, state.optimizer_state, state.params),
        jax.tree.map(partial(jnp.where, finite), gradient.method_state, state.method_state),
        state.updates + 1,
        state.critic,
    )
    logp = gradient.stats.logp
    rollouts = with_old_statistics(objective, rollouts, gradient.stats, fresh)
    signals = objective.signals(gradient.stats, rollouts, state.method_state, key)
    chosen = is_chosen(signals)
    metrics = {
        "loss": gradient.loss,
        "gradient_norm": norm,
        "skipped_updates": 1.0 - usable.astype(norm.dtype),
        "chosen_fraction": masked_mean(chosen, rollouts.mask),
        "chosen_tokens": jnp.sum(chosen & rollouts.mask).astype(norm.dtype),
        **token_metrics(gradient.stats, rollouts),
        **sampler_metrics(rollouts, model.config.bitwise),
    }
    for name, value in gradient.metrics.items():
        metrics[f"objective/{name}" if name in metrics else name] = value
    record = {
        **{field: rollouts.get(field) for field in old_statistics(objective)},
        "logp": logp,
        "entropy": gradient.stats.entropy,
        "advantage": signals.advantage,
        "ratio": signals.ratio,
        "chosen": chosen,
        "clipped": is_clipped(signals),
    }
    return new_state, metrics, record


def step_where(
    usable: Bool[Array, ""],
    optimizer: optax.GradientTransformation,
    grads: Any,
    optimizer_state: Any,
    params: Any,
) -> tuple[Any, Any]:
    """Returns parameters and optimizer state after a step, or the same ones if it is not usable.

    Args:
      usable: False leaves everything unchanged.
      optimizer: of the parameters.
      grads: gradient, in the structure of `params`.
      optimizer_state: before the step.
      params: before the step.
    """
    # optax mixes dtypes, which a caller who is strict about promotion would be refused.
    with jax.numpy_dtype_promotion("standard"):
        changes, stepped = optimizer.update(grads, optimizer_state, params)
        changed = optax.apply_updates(params, changes)
    return jax.tree.map(partial(jnp.where, usable), (changed, stepped), (params, optimizer_state))
