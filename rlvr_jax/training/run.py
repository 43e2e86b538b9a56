"""What a run is made of: the policy, the prompts, the sampler, the compiled programs."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from rlvr_jax import policy
from rlvr_jax.objectives import Objective, Spec, UpdatePlan
from rlvr_jax.policy import Model, Params
from rlvr_jax.rollout import Sampling
from rlvr_jax.tasks import Batches, Task
from rlvr_jax.training.config import TrainConfig
from rlvr_jax.training.evaluation import held_out_indices
from rlvr_jax.training.prompts import PromptTable, encode_prompts
from rlvr_jax.training.sampling import Sampler
from rlvr_jax.training.update import TrainState, check_needs, old_statistics, update
from rlvr_jax.types import Recipe, replace

__all__ = ["LoadedPolicy", "Programs", "Run", "load_policy", "make_run"]


@dataclass(frozen=True)
class LoadedPolicy:
    """A policy folder with a task's prompts in its tokens, ready to sample."""

    path: str
    model: Model
    params: Params | None
    tokenizer: Any
    train_table: PromptTable
    test_table: PromptTable
    sampler: Sampler


def load_policy(
    config: TrainConfig, task: Task, path: str, sampling: Sampling | None = None
) -> LoadedPolicy:
    """Loads the weights, tokenizes the prompts, sets the sampler up; nothing is compiled yet.

    Args:
      path: folder of the policy.
      sampling: how tokens are drawn; as in `config` if None.
    Raises:
      ValueError: a model that cannot be loaded, a prompt over the budget, or sequences longer than
        the model was made for.
    """
    # Prompts first: what is wrong with them or the tokenizer is said before weights are read.
    tokenizer = policy.tokenizer(path)
    train_table = encode_prompts(tokenizer, task.train, config.prompt_tokens, "train")
    test_table = encode_prompts(tokenizer, task.test, config.prompt_tokens, "test")
    model, params = policy.load(path)
    width = max(train_table.tokens.shape[1], test_table.tokens.shape[1])
    budget = config.response_tokens or task.response_tokens
    if width + budget > model.config.max_positions:
        raise ValueError(
            f"response_tokens must be at most {model.config.max_positions - width} for this model"
            f" (max_positions {model.config.max_positions}, prompts of {width}), got {budget}"
        )
    sampler = Sampler(
        model,
        tokenizer,
        task,
        config.prompts_per_step,
        config.samples_per_prompt,
        budget,
        sampling or config.sampling(),
    )
    return LoadedPolicy(
        path,
        model,
        params,
        tokenizer,
        _widen(train_table, width),
        _widen(test_table, width),
        sampler,
    )


@dataclass(frozen=True)
class Programs:
    """The compiled programs of a run, each compiled once.

    Fields:
      score: (params, rollouts of one update) -> what the objective needs of the weights that
        sampled, by the name it has in `Rollouts`: "old_logp", always, and others; [B, T] each.
      advantages: (rollouts of a step, method state, key) -> (advantages [B, T], method state);
        None if the method's estimator reads statistics of the policy.
      update: (state, rollouts of one update, key, fresh) -> (state, metrics, record).
    """

    score: Callable[..., dict[str, jax.Array]]
    advantages: Callable[..., tuple[jax.Array, dict]] | None
    update: Callable[..., tuple[TrainState, dict, dict]]


@dataclass(frozen=True)
class Run:
    """All that one run is made of, ready to step.

    Fields:
      start: the policy the run starts from. Its weights are kept in memory only if the objective
        needs a reference; else `start.params` is None and they are read from disk when asked for.
    """

    config: TrainConfig
    task: Task
    recipe: Recipe
    start: LoadedPolicy
    optimizer: optax.GradientTransformation
    held_out: np.ndarray
    batches: Batches
    programs: Programs

    def initial_state(self) -> TrainState:
        """The state before the first update."""
        rows = self.config.prompts_per_step * self.config.samples_per_prompt
        spec = Spec(
            prompts=len(self.task.train),
            B=rows // self.config.minibatches,
            T=self.start.sampler.response_tokens,
        )
        params = self.start_params()
        return TrainState(
            params,
            self.optimizer.init(params),
            self.recipe.objective.init(spec),
            jnp.zeros((), jnp.int32),
        )

    def start_params(self) -> Params:
        """The weights the run starts from, read anew: whoever asks may have them overwritten."""
        return policy.load(self.start.path)[1]

    def key(self, name: str, *numbers: int) -> jax.Array:
        """The random key of a purpose, folded with numbers (step, update)."""
        key = jax.random.fold_in(jax.random.key(self.config.seed), zlib.crc32(name.encode()))
        for number in numbers:
            key = jax.random.fold_in(key, number)
        return key

    def remarks(self) -> list[str]:
        """What of the method cannot act with these settings, a sentence each."""
        plan = UpdatePlan(self.config.updates_per_step(), self.config.samples_per_prompt)
        return self.recipe.objective.remarks(plan)


def make_run(config: TrainConfig, task: Task, recipe: Recipe, model_path: str) -> Run:
    """Loads the policy and builds the programs.

    Args:
      config: checked already.
      model_path: folder of the policy.
    Raises:
      ValueError: as `load_policy`.
    """
    check_needs(recipe.objective, config.method)
    start = load_policy(config, task, model_path, replace(config.sampling(), **recipe.sampling))
    if "reference_logp" not in recipe.objective.needs:
        start = replace(start, params=None)
    optimizer = make_optimizer(config)
    return Run(
        config=config,
        task=task,
        recipe=recipe,
        start=start,
        optimizer=optimizer,
        held_out=held_out_indices(task, config.evaluation_prompts),
        batches=Batches(task, config.prompts_per_step, config.seed),
        programs=make_programs(start.model, recipe.objective, optimizer, config.micro_batches),
    )


def make_optimizer(config: TrainConfig) -> optax.GradientTransformation:
    """Gradient clipping, Adam with decoupled weight decay, linear warm-up."""
    schedule = config.learning_rate
    if config.warmup_updates:
        schedule = optax.linear_schedule(0.0, config.learning_rate, config.warmup_updates)
    return optax.chain(
        optax.clip_by_global_norm(config.max_gradient_norm),
        optax.adamw(
            schedule, b1=config.adam_b1, b2=config.adam_b2, weight_decay=config.weight_decay
        ),
    )


def make_programs(
    model: Model,
    objective: Objective,
    optimizer: optax.GradientTransformation,
    micro_batches: int,
) -> Programs:
    """The jitted functions; the update takes its state over."""

    wanted = old_statistics(objective)

    def score(params, rollouts):
        stats = policy.score(model, params, rollouts, set(wanted.values()), objective.options)
        return {field: getattr(stats, name) for field, name in wanted.items()}

    step = partial(update, model, objective, optimizer, micro_batches=micro_batches)
    return Programs(
        jax.jit(score),
        objective.advantages and jax.jit(objective.advantages),
        jax.jit(
            lambda state, rollouts, key, fresh: step(state, rollouts, key, fresh=fresh),
            donate_argnums=0,
        ),
    )


def _widen(table: PromptTable, width: int) -> PromptTable:
    missing = width - table.tokens.shape[1]
    return replace(table, tokens=np.pad(table.tokens, ((0, 0), (0, missing))))
