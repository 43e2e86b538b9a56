"""The compiled functions of a run: the scorer, the decisions once per batch, the updates."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import optax

from rlvr_jax import policy
from rlvr_jax.objectives import Objective
from rlvr_jax.parallel import distribute, replicated, row_sharding
from rlvr_jax.policy import Model, Params, products
from rlvr_jax.training.critic import CriticState, jitted_critic
from rlvr_jax.training.function_cache import cached_results
from rlvr_jax.training.gradient import old_statistics
from rlvr_jax.training.layout import make_reshard, state_shardings
from rlvr_jax.training.micro_batches import merge_rows, shared_rows, split_rows
from rlvr_jax.training.plan import BatchPlan
from rlvr_jax.training.prefixes import Prefixes
from rlvr_jax.training.statistics import statistics
from rlvr_jax.training.update import TrainState, rounded_layers, scoring_options, update
from rlvr_jax.types import STATISTICS, Recipe, Rollouts, Statistic


def apart() -> list[str]:
    """Statistics that stages may request besides log-probs and entropies, one at a time."""
    return [name for name, entry in STATISTICS.items() if entry.apart]


@dataclass(frozen=True)
class Programs:
    """The compiled programs of a run, each compiled once.

    They take rollouts from host memory, the same on every process, and leave their results on the
    devices.

    Fields:
      score: (params, rollouts of one update) -> statistics of the weights that
        sampled, by the name it has in `Rollouts`: "old_logp", always, and others; [B, T] each, or
        [B, T, K].
      measures: functions by their statistic besides "logp" and "entropy", of the same arguments;
        prompts of rows may differ. "": nothing; others: see `apart`.
      score_prompts: the same arguments -> "prompt_logp" [B, P].
      decide_once: the objective's, for the rollouts of a step; None if it has none.
      update: (state, rollouts of one update, key, fresh, other) -> (state, metrics, record), with
        the weights of the second policy of divergences, if the objective has any.
      values: (`critic_params`, rollouts of one update) -> its estimates, "values" [B, T]; None if
        the method has no critic.
      fit_critic: (state of the critic, these rollouts with the estimates and the inputs of the
        returns, weights) -> (state, metrics), or None. The weights are those of the policy, if
        the critic reads its hidden states.
      reshard, reshard_evaluator: trained parameters -> parameters of the sampler and of the sampler
        of evaluations.
    """

    score: Callable[..., dict[str, jax.Array]]
    measures: Mapping[str, Callable[..., dict[str, jax.Array]]]
    score_prompts: Callable[..., dict[str, jax.Array]]
    decide_once: Callable[..., tuple[Rollouts, dict, dict]] | None
    update: Callable[..., tuple[TrainState, dict, dict]]
    values: Callable[..., dict[str, jax.Array]] | None
    fit_critic: Callable[..., tuple[CriticState, dict]] | None
    reshard: Callable[[Params], Params]
    reshard_evaluator: Callable[[Params], Params]


class PolicyModels(NamedTuple):
    """The policy on the meshes to train on, to sample on, and to sample on for evaluations."""

    trained: Model
    sampler: Model
    evaluator: Model


class Optimizers(NamedTuple):
    """The optimizers of a run."""

    policy: optax.GradientTransformation
    critic: optax.GradientTransformation


def make_programs(
    models: PolicyModels,
    base: Params | None,
    recipe: Recipe,
    optimizers: Optimizers,
    plan: BatchPlan,
    opening: int,
) -> Programs:
    """The jitted functions; updates take their state over.

    Args:
      models: policy, and the second policy of the recipe.
      base: frozen weights under adapters. An argument of the program: weights that it closed over
        would be constants in its code.
      recipe: its objective is compiled.
      optimizers: of policy and critic.
      plan: rows and micro-batches of an update.
      opening: tokens that all prompts begin with.
    """
    model, sampler, evaluator = models
    score, decide, step = jitted(model, recipe.objective, optimizers.policy, plan, opening)
    values = fit = None
    if recipe.critic is not None:
        values, fit = jitted_critic(model, recipe.critic, optimizers.critic, plan, opening)
    score_prompts = _jitted_prompts(model, plan)
    measures = _jitted_measures(model, plan, tuple(STATISTICS[name] for name in apart()))
    rows = row_sharding(model.mesh)
    prefixes = Prefixes(model, plan, opening)

    def put(rollouts):
        return distribute(rollouts, rows)

    def with_tree(program):
        def run(first, rollouts, *others):
            tree = put(prefixes.of(rollouts).tree)
            return program(first, put(rollouts), *others, tree=tree)

        return run

    def updated(state, rollouts, *others):
        tree, fraction = prefixes.of(rollouts)
        state, metrics, record = step(state, base, put(rollouts), *others, tree=put(tree))
        read = {} if fraction is None else {"update_tokens_fraction": fraction}
        return state, metrics | read, record

    reshard = make_reshard(model, sampler)
    return Programs(
        score=with_tree(score),
        measures={
            name: lambda params, rollouts, of=measured: of(params, put(rollouts))
            for name, measured in measures.items()
        },
        score_prompts=lambda params, rollouts: score_prompts(params, put(rollouts)),
        decide_once=decide and (lambda rollouts, *others: decide(put(rollouts), *others)),
        update=updated,
        values=values and with_tree(values),
        fit_critic=fit and with_tree(fit),
        reshard=reshard,
        reshard_evaluator=reshard if evaluator == sampler else make_reshard(model, evaluator),
    )


@cached_results
def _jitted_measures(
    model: Model, plan: BatchPlan, measured: tuple[Statistic, ...]
) -> dict[str, Any]:
    names = ["", *(one.name for one in measured)]
    return {name: _jitted_measure(model, plan, name) for name in names}


def _jitted_measure(model: Model, plan: BatchPlan, more: str) -> Any:
    """The program that measures log-probs and entropies of any rows, and one of `apart()`."""

    def of_chunk(params, rollouts):
        return statistics(model, params, rollouts, {"logp", "entropy", more} - {""}).arrays

    def measure(params, rollouts):
        chunks = split_rows(rollouts, plan.micro_batches, model.mesh)
        return merge_rows(jax.lax.map(partial(of_chunk, params), chunks), model.mesh)

    options = products.compiler_options(model.config.compute_dtype, model.mesh)
    return jax.jit(measure, out_shardings=row_sharding(model.mesh), compiler_options=options)


@cached_results
def _jitted_prompts(model: Model, plan: BatchPlan) -> Any:
    """The program that scores the prompts of an update's rollouts."""
    shared = shared_rows(plan, model.mesh)

    def score(params, rollouts):
        chunks = split_rows(rollouts, plan.micro_batches, model.mesh)
        found = jax.lax.map(
            lambda chunk: policy.score_prompts(model, params, chunk, shared), chunks
        )
        return {"prompt_logp": merge_rows(found, model.mesh)}

    options = products.compiler_options(model.config.compute_dtype, model.mesh)
    return jax.jit(score, out_shardings=row_sharding(model.mesh), compiler_options=options)


@cached_results
def jitted(
    model: Model,
    objective: Objective,
    optimizer: optax.GradientTransformation,
    plan: BatchPlan,
    opening: int,
) -> tuple[Any, Any, Any]:
    """Returns the functions of `Programs`, for global arrays, or shapes of them to be lowered.

    Args:
      model: the policy.
      objective: a static argument.
      optimizer: of the trained weights.
      plan: rows and micro-batches of an update.
      opening: number of tokens at the beginning of all prompts.
    Returns:
      score (params, rollouts); decide_once (rollouts, method state, key), or None; and step
      (state, base weights under adapters, rollouts, key, fresh, the second policy's weights). Score
      and step also take the trees of the rollouts by the name `tree`.
    """
    rows, whole = row_sharding(model.mesh), replicated(model.mesh)
    wanted, options = old_statistics(objective), scoring_options(objective)
    shared = shared_rows(plan, model.mesh)

    def of_chunk(params, rollouts, tree):
        # Held-out rollouts have no second prompt.
        beside = "second_tokens" in rollouts.records
        own = {f: n for f, n in wanted.items() if beside or n != "second_prompt_logp"}
        if "candidate_ids" not in rollouts.records:
            own.pop("old_candidate_logp", None)
        needs = set(own.values())
        how = {"shared": shared, "opening": opening, "tree": tree}
        stats = statistics(model, params, rollouts, needs, options, **how)
        return {field: stats.get(name) for field, name in own.items()}

    def score(params, rollouts, tree=None):
        params = rounded_layers(model, params)
        if plan.micro_batches == 1:
            return of_chunk(params, rollouts, tree)
        chunks = split_rows((rollouts, tree), plan.micro_batches, model.mesh)
        found = jax.lax.map(lambda chunk: of_chunk(params, *chunk), chunks)
        return merge_rows(found, model.mesh)

    def step(state, base, rollouts, key, fresh, other=None, *, tree=None):
        return update(
            model,
            objective,
            optimizer,
            state,
            rollouts,
            key,
            fresh=fresh,
            micro_batches=plan.micro_batches,
            shared=shared,
            opening=opening,
            tree=tree,
            base=base,
            other=other,
        )

    shardings = state_shardings(model, optimizer)
    decide = objective.decide_once
    jit = partial(
        jax.jit, compiler_options=products.compiler_options(model.config.compute_dtype, model.mesh)
    )
    return (
        jit(score, out_shardings=rows),
        decide and jit(decide, out_shardings=(rows, whole, whole)),
        jit(step, donate_argnums=0, out_shardings=(shardings, whole, rows)),
    )
