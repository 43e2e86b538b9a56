"""The compiled functions of a run, from shapes only, for devices that are not present.

These are the functions that `make_run` would compile: the sampler, the scorer, the update and the
critic's. Two forward passes are left out: the critic's values and the scores of prompts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax

from rlvr_jax.experience import experience
from rlvr_jax.objectives import Objective, Scorer, Spec
from rlvr_jax.parallel import (
    make_mesh,
    parameter_shardings,
    placed_shapes,
    regrouped,
    replicated,
    row_sharding,
)
from rlvr_jax.policy import Model, ModelConfig, Params, lora
from rlvr_jax.policy.parameters import parameter_shapes
from rlvr_jax.policy.trees import PrefixTree
from rlvr_jax.rollout import Prompts, Sampling, sample
from rlvr_jax.runs.composition import writers_of
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.runs.resolved import settle, with_rules
from rlvr_jax.runs.run import make_optimizer
from rlvr_jax.training.critic import CriticState, critic_shapes, jitted_critic
from rlvr_jax.training.layout import (
    copies_weights,
    sampler_params,
    sampler_shardings,
    state_shardings,
    trained_shapes,
    views_weights,
)
from rlvr_jax.training.programs import jitted
from rlvr_jax.training.scorers import scorer_needs
from rlvr_jax.training.statistics import DIVERGENCES
from rlvr_jax.training.update import TrainState, check_needs, old_shapes
from rlvr_jax.types import Recipe, Rollouts, replace
from rlvr_jax.types.rollouts import kind_and_axes


@dataclass(frozen=True)
class AbstractRun:
    """A run without weights: shapes with shardings.

    Fields:
      config: with `prompt_tokens` and `response_tokens`.
      model, sampler: the policy on the mesh to train on, and on the mesh to sample on.
      recipe, sampling: the method, and its settings of the sampler.
      optimizer, critic_optimizer: of the policy, and of the critic if the method has one.
      opening: number of tokens at the beginning of all prompts.
    """

    config: TrainConfig
    model: Model
    sampler: Model
    recipe: Recipe
    sampling: Sampling
    optimizer: optax.GradientTransformation
    critic_optimizer: optax.GradientTransformation
    opening: int

    @property
    def objective(self) -> Objective:
        return self.recipe.objective

    def params(self) -> Params:
        """All weights as they are trained, without adapters."""
        shapes = parameter_shapes(self.model.config)
        return placed_shapes(shapes, parameter_shardings(self.model.config, self.model.mesh))

    def policy_params(self) -> Params:
        """The same with adapters attached, if the model has them."""
        params = self.params()
        return lora.attach(params, trained_shapes(self.model)) if self.model.config.lora else params

    def sampler_params(self) -> Params:
        """Weights that the sampler reads: the trained ones if it needs no copy."""
        params = self.policy_params()
        meshes = self.model, self.sampler
        if not (copies_weights(*meshes) or views_weights(*meshes)):
            return params
        # Beside its layers a CPU's sampler has their stack, which is the same memory.
        shapes = jax.eval_shape(partial(sampler_params, self.sampler), params)
        return placed_shapes(shapes, sampler_shardings(self.sampler))

    def state(self) -> TrainState:
        """State that an update changes."""
        shardings = state_shardings(self.model, self.optimizer)
        params = trained_shapes(self.model)
        spec = Spec(
            prompts=self.config.sampling.prompts_per_step,
            B=self.config.plan.rows,
            T=self.config.sampling.response_tokens,
        )
        whole = replicated(self.model.mesh)
        method = jax.eval_shape(partial(self.objective.init, spec))
        return TrainState(
            params,
            placed_shapes(jax.eval_shape(self.optimizer.init, params), shardings.optimizer_state),
            jax.tree.map(lambda x: _shape(x.shape, x.dtype, whole), method),
            _shape((), jnp.int32, whole),
        )

    def critic(self) -> CriticState | None:
        """State that an update of the critic changes, if the method has a critic."""
        if self.recipe.critic is None:
            return None
        return critic_shapes(self.model, self.recipe.critic, self.critic_optimizer)

    def frozen(self) -> Params | None:
        """Weights that are not trained: base of adapters, reference of a KL, or teacher."""
        read = self.objective.reads | scorer_needs(self.recipe.critic)
        wanted = self.model.config.lora or "reference_logp" in read
        return self.params() if wanted or self.recipe.teacher is not None else None

    def other(self) -> Params | None:
        """The second policy of divergences, if the objective has any."""
        return self.policy_params() if DIVERGENCES & self.objective.reads else None

    def rollouts(self) -> Rollouts:
        """Rollouts of one update, with the recorded statistics of the weights that sampled them."""
        rows = self.config.plan.rows
        sharding = row_sharding(self.model.mesh)
        sampled = jax.eval_shape(*self._sampling(replace(self.sampler, mesh=None), 1, 1))
        sampled = jax.tree.map(lambda x: _shape((rows, *x.shape[1:]), x.dtype, sharding), sampled)
        known = {
            field: _shape(shape, sampled.behaviour_logp.dtype, sharding)
            for field, shape in old_shapes(self.objective, sampled.tokens.shape).items()
        }
        if "reference_logp" in self.objective.reads | scorer_needs(self.recipe.critic):
            known["reference_logp"] = sampled.behaviour_logp
        scorer = isinstance(self.recipe.critic, Scorer)
        if self.recipe.critic is not None and not scorer:
            known["values"] = sampled.behaviour_logp
        if self.recipe.teacher is not None:
            known["teacher_logp"] = sampled.behaviour_logp
        sizes = dict(zip("BT", sampled.tokens.shape, strict=True)) | {
            "Q": sampled.prompt_tokens.shape[1],
            "D": self.model.config.width,
            # Nobody knows how many a stage gives, and they are few.
            "E": 4,
            "K": 5,
            "F": 16,
        }
        numbers = {"Int": jnp.int32, "Bool": jnp.bool_, "Float": sampled.behaviour_logp.dtype}
        chain = self.recipe.experience
        given = chain.writes if chain is not None else frozenset()
        for field in given | ({self.recipe.critic.writes} if scorer else set()):
            kind, axes = kind_and_axes(field)
            shape = tuple(sizes[axis] for axis in axes)
            known[field] = _shape(shape, numbers[kind], sharding)
        if "prompt_logp" in self.objective.reads:
            shape = sampled.prompt_tokens.shape
            known["prompt_logp"] = _shape(shape, sampled.behaviour_logp.dtype, sharding)
        if "answer" in self.objective.reads:
            known["answer"] = sampled.group
        if "component_rewards" in self.objective.reads:
            # Without weights it does not matter how many there are.
            rewards = dict(self.objective.records).get("component_rewards", 2)
            known["component_rewards"] = _shape((rows, rewards), sampled.reward.dtype, sharding)
        if self.config.plan.updates > 1 and self.objective.decide_once is not None:
            known |= {"advantage": sampled.behaviour_logp, "weight": sampled.behaviour_logp}
            known["decided_mask"] = sampled.mask
        return sampled.replace(**known)

    def lower_sample(self, prompts: int, samples: int) -> jax.stages.Lowered:
        """The sampler of `samples` responses to each of `prompts` prompts."""
        with jax.sharding.use_abstract_mesh(self.sampler.mesh.abstract_mesh):
            function, *arguments = self._sampling(self.sampler, prompts, samples)
            return jax.jit(function).lower(*arguments)

    def lower_score(self) -> jax.stages.Lowered | None:
        """The scorer of an update's rollouts; None if no step of the run calls it."""
        if "reference_logp" not in self.objective.reads and self.config.plan.updates == 1:
            return None
        score, _, _ = self._jitted()
        # With one update per step only the reference is scored.
        params = self.policy_params() if self.config.plan.updates > 1 else self.params()
        with jax.sharding.use_abstract_mesh(self.model.mesh.abstract_mesh):
            return score.lower(params, self.rollouts())

    def lower_update(self, tree: PrefixTree | None = None) -> jax.stages.Lowered:
        """The update.

        Args:
          tree: shapes of the rows' trees, with shardings; None: rows share their prompts only.
        """
        _, _, step = self._jitted()
        whole = replicated(self.model.mesh)
        base = self.params() if self.model.config.lora else None
        fresh = _shape((), jnp.bool_, whole)
        with jax.sharding.use_abstract_mesh(self.model.mesh.abstract_mesh):
            rows = self.rollouts()
            return step.lower(self.state(), base, rows, _key(whole), fresh, self.other(), tree=tree)

    def lower_fit(self) -> jax.stages.Lowered | None:
        """The update of the critic, if the method has one; it needs more memory than the values."""
        if self.recipe.critic is None:
            return None
        _, fit = jitted_critic(
            self.model, self.recipe.critic, self.critic_optimizer, self.config.plan, self.opening
        )
        with jax.sharding.use_abstract_mesh(self.model.mesh.abstract_mesh):
            shared = self.recipe.critic.trunk == "policy"
            policy = self.policy_params() if shared else None
            return fit.lower(self.critic(), self.rollouts(), policy)

    def _jitted(self):
        return jitted(self.model, self.objective, self.optimizer, self.config.plan, self.opening)

    def _sampling(self, model, prompts, samples):
        """A function and the shapes of its arguments."""
        whole = None if model.mesh is None else replicated(model.mesh)
        params = self.sampler_params()
        if model.mesh is None:
            params = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), params)
        numbers = _shape((prompts,), jnp.int32, whole)
        tokens = _shape((prompts, self.config.data.prompt_tokens), jnp.int32, whole)
        function = partial(
            sample,
            model,
            samples=samples,
            response_tokens=self.config.sampling.response_tokens,
            sampling=self.sampling,
            stop_tokens=(0,),
            opening=self.opening,
            at_once=None if model.mesh is None else self.config.slots(),
        )
        return function, params, Prompts(tokens, numbers, numbers, numbers), _key(whole)


def abstract_run(
    config: TrainConfig,
    shape: ModelConfig,
    recipe: Recipe,
    devices: Sequence[Any],
    opening: int = 0,
) -> AbstractRun:
    """The run of `config` with a policy of this shape on these devices.

    Args:
      config: checked already, with a mesh, prompt_tokens and response_tokens.
      shape: of the policy.
      recipe: of the method, with the experience of the run.
      devices: of a topology, or present ones.
      opening: number of tokens at the beginning of all prompts.
    Raises:
      ValueError: a mesh that does not match the devices or the model. Sequences longer than the
        model allows. An objective with fields that training does not have.
    """
    chain = recipe.experience or experience()
    check_needs(recipe, config.method, config.plan.updates, chain.writes, writers_of)
    length = config.data.prompt_tokens + config.sampling.response_tokens
    if length > shape.max_positions:
        raise ValueError(
            f"prompt_tokens + response_tokens must be at most {shape.max_positions} for this model,"
            f" got {length}"
        )
    mesh = make_mesh(config.devices.mesh, devices)
    options = config.policy.options()
    model = Model(replace(shape, **options), mesh=mesh)
    sampler = model
    if config.devices.sample_mesh:
        sampler = replace(model, mesh=regrouped(mesh, config.devices.sample_mesh))
    for each in (model, sampler):
        parameter_shardings(each.config, each.mesh)
    config, sampling = settle(with_rules(config), recipe)
    rates = config.optimizer.learning_rate, config.optimizer.critic_learning_rate
    optimizers = (make_optimizer(config.optimizer, rate) for rate in rates)
    return AbstractRun(config, model, sampler, recipe, sampling, *optimizers, opening)


def _shape(shape, dtype, sharding) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)


def _key(sharding) -> jax.ShapeDtypeStruct:
    key = jax.eval_shape(jax.random.key, 0)
    return _shape(key.shape, key.dtype, sharding)
