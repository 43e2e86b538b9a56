"""The objects of a run: policy, prompts, sampler, compiled functions."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from rlvr_jax.experience import Experience, RunActor, RunInfo
from rlvr_jax.experience.engine_sampler import EngineActor, EngineSampler
from rlvr_jax.experience.engines import EngineLink
from rlvr_jax.experience.evaluation import evaluation_sampler, held_out_indices
from rlvr_jax.experience.grades import check_grades_suffice
from rlvr_jax.experience.sampling import Sampler
from rlvr_jax.experience.task_fit import with_environment
from rlvr_jax.objectives import Spec, UpdatePlan
from rlvr_jax.parallel import distribute, faster_dtype, replicated
from rlvr_jax.policy import Params, lora
from rlvr_jax.rollout import Sampling, named_key
from rlvr_jax.rollout.engines import Decoding, VllmServer
from rlvr_jax.runs.composition import setting_of, writers_of
from rlvr_jax.runs.config import OptimizerSettings, PolicySettings, TrainConfig, flag
from rlvr_jax.runs.judging import check_asked
from rlvr_jax.runs.loading import (
    LoadedPolicy,
    StartWeights,
    load_policy,
    other_teacher,
)
from rlvr_jax.runs.resolved import ResolvedRun
from rlvr_jax.runs.state import HostState, RunState
from rlvr_jax.tasks import Task
from rlvr_jax.training.critic import initial_critic
from rlvr_jax.training.layout import sampling_mesh, state_shardings
from rlvr_jax.training.learning import Learner, Scorer
from rlvr_jax.training.memory import least_bytes
from rlvr_jax.training.micro_batches import usual_micro_batches
from rlvr_jax.training.plan import BatchPlan
from rlvr_jax.training.programs import Optimizers, PolicyModels, Programs, make_programs
from rlvr_jax.training.scorers import scorer_needs
from rlvr_jax.training.statistics import DIVERGENCES
from rlvr_jax.training.update import TrainState, check_needs
from rlvr_jax.types import Recipe, replace


@dataclass(frozen=True)
class Run:
    """The objects of one run, ready for its first step.

    Fields:
      config: the settings of `ResolvedRun`, with the width of the prompts and the micro-batches.
      start: the initial policy. Its weights are stored in memory only if the objective
        needs a reference or adapters are trained on them; else `start.params` is None.
      weights: of `start`, where it stores none.
      held_out: positions of the test prompts of evaluations.
      evaluator: the sampler of their responses.
      teacher: weights of another policy that the recipe names as its teacher.
      programs: compiled functions; `variant` makes those for batches with another split.
      setting: the context of the run for the parts of the experience.
      engine: another engine that samples the rollouts; None: the sampler of `start`.
    """

    config: TrainConfig
    task: Task
    recipe: Recipe
    start: LoadedPolicy
    weights: StartWeights
    optimizer: optax.GradientTransformation
    critic_optimizer: optax.GradientTransformation
    held_out: np.ndarray
    evaluator: Sampler
    setting: RunInfo
    programs: Programs
    variant: Callable[[BatchPlan], Programs]
    teacher: Params | None = None
    engine: EngineLink | None = None

    @property
    def experience(self) -> Experience:
        """The experience, which produces the batches of the run."""
        return self.recipe.experience

    def initial_state(self) -> RunState:
        """Returns the state before the first update."""
        spec = Spec(
            prompts=len(self.task.train),
            B=self.config.plan.rows,
            T=self.start.sampler.response_tokens,
        )
        model = self.start.model
        shardings = state_shardings(model, self.optimizer)
        if self.adapts:
            init = jax.jit(lora.init, static_argnums=0, out_shardings=shardings.params)
            params = init(model, self.key("adapter"))
        elif self.start.params is not None:
            params = jax.tree.map(jnp.copy, self.start.params)
        else:
            params = self.weights.take()
        init = jax.jit(self.optimizer.init, out_shardings=shardings.optimizer_state)
        rest = (self.recipe.objective.init(spec), np.zeros((), np.int32))
        critic = None
        if self.recipe.critic is not None:
            whole = self.start.params if self.adapts else params
            critic = initial_critic(model, self.recipe.critic, self.critic_optimizer, whole)
        rest = distribute(rest, replicated(model.mesh))
        teacher = None
        if self.recipe.teacher_decay is not None:
            teacher = jax.tree.map(jnp.copy, params)
        reference = None
        if self.experience.refreshes and "reference_logp" in self.recipe.objective.reads:
            reference = jax.tree.map(jnp.copy, params)
        device = TrainState(params, init(params), *rest, critic, teacher, reference)
        data = self.experience.init(self.setting)
        return RunState(device, HostState(np.zeros((), np.int64), data))

    def prepared(self, state: RunState, step: int) -> RunState:
        """Returns the initial state of a step: the experience may reset weights or optimizer."""
        events = self.experience.events(state.host.data, step)
        if not events:
            return state
        changed: dict[str, Any] = {}
        if "refresh" in events and state.device.reference is not None:
            changed["reference"] = jax.tree.map(jnp.copy, state.device.params)
        if events & {"restart", "reset"}:
            fresh = self.initial_state().device
            changed["optimizer_state"] = fresh.optimizer_state
            if "restart" in events:
                changed["params"] = fresh.params
        return replace(state, device=replace(state.device, **changed))

    @property
    def learner(self) -> Learner:
        """The learner, which updates the policy with the batches of the run."""
        model, frozen = self.start.model, self.start.params
        return Learner(
            self.recipe.objective,
            self.programs,
            self.config.plan,
            self.config.seed,
            model.mesh,
            frozen,
            self.adapts,
            self.variant,
            self.most_rows(),
            self.teacher_params if self.recipe.teacher is not None else None,
            self.recipe.teacher_decay,
            scorer_needs(self.recipe.critic),
        )

    def teacher_params(self, state: TrainState) -> Params:
        """Returns all weights of the teacher."""
        if self.recipe.teacher == "start":
            return self.start.params
        if state.teacher is None:
            return self.teacher
        average = replace(state, params=state.teacher)
        return lora.attach(self.start.params, average.params) if self.adapts else average.params

    def most_rows(self) -> float:
        """Returns the largest number of rows of a batch, as a multiple of prompts × samples."""
        _, draw = self.experience.draw
        return math.prod(part.most for part in (draw, *self.experience.stages.values()))

    @property
    def adapts(self) -> bool:
        """Whether adapters are trained, and the weights of `start` stay as they are."""
        return self.start.model.config.lora is not None

    def start_params(self) -> Params:
        """Returns the weights of the initial policy, read-only: those in memory, or from disk."""
        return self.weights.take() if self.start.params is None else self.start.params

    def policy_params(self, state: TrainState) -> Params:
        """Returns all weights of the policy in a state, with adapters and without a copy."""
        return self.learner.policy_params(state)

    def sampler_params(self, state: TrainState) -> Params:
        """Returns the weights of the policy on the sampler's mesh; a copy if that mesh differs."""
        return self.programs.reshard(self.policy_params(state))

    def sampler_teacher(self, state: TrainState) -> Callable[[], Params] | None:
        """Returns a function that returns the teacher's weights on the sampler's mesh."""
        if self.recipe.teacher is None:
            return None
        return lambda: self.programs.reshard(self.teacher_params(state))

    def evaluator_params(self, state: TrainState) -> Params:
        """Returns the weights of the policy on the mesh of `evaluator`."""
        return self.programs.reshard_evaluator(self.policy_params(state))

    def key(self, name: str, *numbers: int) -> jax.Array:
        """Returns the random key of a purpose, folded with numbers (step, update)."""
        return named_key(self.config.seed, name, *numbers)

    def actor(self, state: TrainState, version: int) -> RunActor:
        """Returns the actor that samples the rollouts of a step.

        Args:
          version: number of updates of the weights.
        """
        sampler, tables, scorer = self.start.sampler, self.start.tables, self.scorer(state)
        if self.engine is not None:
            # Only the policy's weights are in the engine, so no teacher samples.
            sampler = EngineSampler.of(sampler, self.engine, scorer)
            return EngineActor(sampler, self.policy_params(state), tables, version, scorer)
        teacher = self.sampler_teacher(state)
        return RunActor(sampler, self.sampler_params(state), tables, version, scorer, teacher)

    def scorer(self, state: TrainState) -> Callable[..., dict[str, np.ndarray]]:
        """Returns the scorer of token statistics, (rollouts, needs, policy) -> statistics by name.
        It works in chunks with as many rows as an update."""
        teacher = None
        if self.recipe.teacher is not None:
            teacher = partial(self.teacher_params, state)
        return Scorer(self.learner, self.policy_params(state), self.start_params, teacher).score

    @functools.cached_property
    def memory(self) -> dict[str, int]:
        """Known bytes on a device before the first computation, by purpose."""
        fitted = self.recipe.critic and (self.recipe.critic, self.critic_optimizer)
        frozen = self.start.params is not None
        parts = least_bytes(self.start.model, self.optimizer, frozen, fitted)
        width = self.start.train_table.tokens.shape[1]
        cache = self.start.sampler.cache_bytes(width)
        if self.evaluator is not self.start.sampler:
            cache = max(cache, self.evaluator.cache_bytes(width))
        return parts | {"sampler's cache": cache}

    def remarks(self) -> list[str]:
        """Returns a sentence for each setting or part of the method without effect in this run."""
        config, stages = self.config, self.experience.stages
        optimizer, updates = config.optimizer, config.plan.updates
        plan = UpdatePlan(updates, config.sampling.samples_per_prompt)
        found = self.recipe.objective.remarks(plan)
        if cut := self.start.sampler.sampling.cuts:
            found.append(
                f"{', '.join(map(flag, cut))}: tokens are sampled from a part of the distribution,"
                " but ratios and gradients use all of it; sampler_ratio shows the mass of the part."
            )
        if config.policy.compute_dtype == "bfloat16" and faster_dtype() == "float32":
            found.append(
                "--compute-dtype: this processor multiplies in float32 faster than in bfloat16."
            )
        names = ("lora_alpha", "lora_targets")
        idle = [n for n in names if getattr(config.policy, n) != getattr(PolicySettings, n)]
        taken = config.steps * updates
        if optimizer.warmup_updates > taken:
            found.append(
                f"--warmup-updates: the learning rate rises over {optimizer.warmup_updates} updates"
                f" and the run has {taken}, so it never reaches {optimizer.learning_rate:g};"
                " --warmup-updates or --steps changes that."
            )
        if not config.policy.lora_rank and idle:
            found.append(
                f"{', '.join(map(flag, idle))}: --lora-rank is 0, so all weights are trained."
            )
        asked = optimizer.critic_learning_rate or config.update.critic_epochs > 1
        if asked and self.recipe.critic is None:
            found.append(f"--critic-learning-rate, --critic-epochs: {config.method} has no critic.")
        judged = [name for stage in stages.values() for name in stage.rewards]
        # Stages of the method or the user may read these rewards.
        of_settings = (
            config.judging.judge,
            config.sampling.dynamic_sampling,
            config.sampling.mask_truncated,
        )
        others = config.stage or len(stages) > sum(map(bool, of_settings))
        if judged and not others and "component_rewards" not in self.recipe.objective.reads:
            found.append(
                f"{', '.join(judged)}: no part of --method {config.method} reads the grades of the"
                " judge; they are only in curves (info/) and samples."
            )
        return found


def make_run(resolved: ResolvedRun) -> Run:
    """Loads the policy and builds the compiled functions.

    Raises:
      ValueError: as `load_policy`, `check_needs`, `check_grades_suffice`, `check_group_size` and
        `check_asked`; a method that reads `behaviour_logp`, if the sampler truncates it.
    """
    config, recipe = resolved.config, resolved.recipe
    chain = recipe.experience
    task = chain.graded(with_environment(resolved.task, chain.draw[1].environment))
    check_needs(recipe, config.method, config.plan.updates, chain.writes, writers_of)
    check_group_size(config, recipe)
    check_replay(config, recipe)
    check_grades_suffice(task, recipe.objective, config.method)
    held_out = held_out_indices(task, config.evaluation.evaluation_prompts)
    optimizer = make_optimizer(config.optimizer, config.optimizer.learning_rate)
    critic_optimizer = make_optimizer(config.optimizer, config.optimizer.critic_learning_rate)
    frozen = config.policy.lora_rank > 0 or "reference_logp" in recipe.objective.reads
    frozen |= recipe.teacher == "start" or bool(scorer_needs(recipe.critic))
    if (cut := resolved.sampling.cuts) and "behaviour_logp" in recipe.objective.reads:
        raise ValueError(
            f"{', '.join(map(flag, cut))} must be off for method {config.method!r}, which"
            f" weights tokens by the ratio of sampler and policy, got {resolved.sampling}"
        )
    fitted = recipe.critic and (recipe.critic, critic_optimizer)
    start = load_policy(
        config,
        task,
        config.policy.model,
        sampling=resolved.sampling,
        optimizer=optimizer,
        frozen=frozen,
        critic=fitted,
        views=chain.views,
        samples=chain.initial_samples(config.sampling.samples_per_prompt),
    )
    check_asked(config, start)
    setting = setting_of(
        config, task, chain, start.model.config.vocab_size, start.model.config.width
    )
    sampler = start.sampler
    if not config.devices.mesh:
        # Devices split the prompts of a call, and the rows that it computes at the same time.
        parts = math.gcd(sampler.sampling_batch[0], sampler.at_once or 0)
        mesh = sampling_mesh(sampler.model, parts)
        start = replace(start, sampler=replace(sampler, model=replace(sampler.model, mesh=mesh)))
    width = start.train_table.tokens.shape[1]
    config = config.replace(prompt_tokens=width)
    if not config.update.micro_batches:
        group = width + config.sampling.samples_per_prompt * start.sampler.response_tokens
        config = config.replace(
            micro_batches=usual_micro_batches(config.plan, start.model.mesh, group)
        )
    evaluator = start.sampler
    if not chain.draw[1].of_policy:
        evaluator = evaluation_sampler(
            start.sampler,
            len(held_out),
            config.evaluation.evaluation_samples,
            sampling_batches=config.sampling.sampling_batches,
            mesh_given=bool(config.devices.mesh),
        )
    if config.update.router_replay:
        # Evaluations are not scored.
        start = replace(start, sampler=replace(start.sampler, record_routes=True))
    base = start.params if config.policy.lora_rank else None
    models = PolicyModels(start.model, start.sampler.model, evaluator.model)
    optimizers = Optimizers(optimizer, critic_optimizer)

    @functools.cache
    def variant(plan):
        opening = start.sampler.opening
        return make_programs(models, base, recipe, optimizers, plan, opening)

    programs = variant(config.plan)
    weights = StartWeights(start.path, start.model.mesh, None if frozen else start.params)
    if not frozen:
        start = replace(start, params=None)
    return Run(
        config=config,
        task=task,
        recipe=recipe,
        start=start,
        weights=weights,
        optimizer=optimizer,
        critic_optimizer=critic_optimizer,
        held_out=held_out,
        evaluator=evaluator,
        setting=setting,
        programs=programs,
        variant=variant,
        teacher=other_teacher(recipe, start),
        engine=_engine(config, start, resolved.sampling),
    )


def _engine(config: TrainConfig, start: LoadedPolicy, sampling: Sampling) -> EngineLink | None:
    """The engine of the settings; it is reached before anything is sampled.

    Raises:
      ValueError: several processes, or a server that cannot be used.
    """
    own = config.engines
    if not own.engine:
        return None
    if jax.process_count() > 1:
        raise ValueError(
            f"--engine must be left out of a job of several processes, got {own.engine!r} in"
            f" {jax.process_count()} processes"
        )
    sampler = start.sampler
    return EngineLink(
        VllmServer(own.engine_address, own.engine_seconds),
        start.model,
        start.tokenizer,
        config.run_dir / "engine",
        Decoding(sampler.response_tokens, sampling, sampler.stop_tokens),
        # A server scores a sequence with room for one more token.
        longest=min(
            start.train_table.tokens.shape[1] + sampler.response_tokens,
            start.model.config.max_positions - 1,
        ),
        every=own.probe_every,
        bound=own.largest_gap,
        adapters=own.engine_adapters,
    )


def check_replay(config: TrainConfig, recipe: Recipe) -> None:
    """Refuses `--router-replay` for a method that compares whole distributions with a teacher."""
    compared = DIVERGENCES & recipe.objective.reads
    if config.update.router_replay and compared and recipe.teacher is not None:
        raise ValueError(
            f"--router-replay must be left out for method {config.method!r}, which compares"
            f" distributions with a teacher ({', '.join(sorted(compared))}): it has another router"
        )


def check_group_size(config: TrainConfig, recipe: Recipe) -> None:
    """Refuses groups of one response if a part of the method has no effect on them."""
    if config.sampling.samples_per_prompt > 1:
        return
    of_one, of_two = (
        recipe.objective.remarks(UpdatePlan(config.plan.updates, size)) for size in (1, 2)
    )
    for sentence in of_one:
        if sentence not in of_two:
            raise ValueError(
                f"--samples-per-prompt must be at least 2 for method {config.method!r}"
                f" ({sentence.rstrip('.')}), got 1"
            )


def make_optimizer(settings: OptimizerSettings, rate: float) -> optax.GradientTransformation:
    """Returns gradient clipping and Adam with decoupled weight decay and linear warm-up.

    Equal numbers return the same object, so that the next run in a process compiles nothing again.
    """
    numbers = settings.warmup_updates, settings.max_gradient_norm, settings.adam_b1
    return _optimizer(rate, *numbers, settings.adam_b2, settings.weight_decay)


@functools.cache
def _optimizer(learning_rate, warmup, max_norm, b1, b2, weight_decay):
    schedule = optax.linear_schedule(0.0, learning_rate, warmup) if warmup else learning_rate
    adam = optax.adamw(schedule, b1=b1, b2=b2, weight_decay=weight_decay)
    return optax.chain(optax.clip_by_global_norm(max_norm), adam)
