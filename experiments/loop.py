"""The whole training loop on the public API, for reading from top to bottom.

    python -m rlvr_jax loop --method clip_cov --task brackets --steps 300 --run-dir runs/loop

A step samples groups of responses, grades them, decides advantages, and takes optimizer updates
with the exact gradient of a published objective. Prompts, random numbers, settings and flags are
those of `rlvr-jax train`, which has more: stages, critics, teachers, references, chat templates.
"""

import json
import logging
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp

from rlvr_jax import methods, policy
from rlvr_jax.analysis import pass_at_k
from rlvr_jax.experience import held_out_indices
from rlvr_jax.objectives import Spec
from rlvr_jax.rollout import Prompts, Sampling, named_key, sample
from rlvr_jax.runs import TrainConfig, check_directory, guarded, parse_config, preset
from rlvr_jax.runs.resolved import resolve
from rlvr_jax.tasks import Batches, Prompt, Response, Task, grades_of
from rlvr_jax.training import objective_gradient
from rlvr_jax.types import Recipe, Rollouts, is_correct

READABLE = {
    *("logp", "logsumexp", "entropy", "p_squared", "p_squared_logp", "varentropy", "mean_logit"),
    *("max_logp", "max_id", "min_p_mass", "topk_logp", "topk_ids", "nucleus_entropy", "hidden"),
    *("behaviour_logp", "sampled_entropy", "batch_statistics"),
}
"""Token statistics of `policy.score`, records of the sampler, comparisons within the batch."""
SETTINGS = {
    *("method", "hyperparameters", "task", "model", "run_dir", "steps", "seed", "resume"),
    *("prompts_per_step", "samples_per_prompt", "response_tokens", "temperature"),
    *("minibatches", "epochs", "micro_batches", "mask_truncated", "learning_rate"),
    *("warmup_updates", "adam_b1", "adam_b2", "weight_decay", "max_gradient_norm"),
    *("evaluate_every", "evaluation_prompts", "evaluation_samples", "checkpoint_every"),
}
"""The settings of `python -m rlvr_jax train` that this loop has."""


@dataclass(frozen=True)
class _Actor:
    """A model that answers prompts of a task; `options` are further arguments of `sample`."""

    model: policy.Model
    tokenizer: Any
    task: Task
    options: Mapping[str, Any]

    def answer(
        self, params: Any, split: Sequence[Prompt], numbers: np.ndarray, key: Any, samples: int
    ) -> Rollouts:
        """Graded rollouts, `samples` for each prompt of the split that has one of the numbers."""
        prompts = [split[number] for number in numbers]
        ids = self.tokenizer([prompt.text for prompt in prompts])["input_ids"]
        length = np.array([len(row) for row in ids])
        tokens = np.stack([np.pad(row, (0, length.max() - len(row))) for row in ids])
        # A prompt that comes twice in one step gets further samples, not the first ones again.
        first = samples * np.array([np.sum(numbers[:n] == x) for n, x in enumerate(numbers)])
        asked = Prompts(tokens, length, numbers, first)
        rollouts = sample(self.model, params, asked, key, samples=samples, **self.options)
        rollouts = jax.device_get(rollouts)
        ends = rollouts.length - ~rollouts.truncated  # without the stop token
        rows = [row[:end].tolist() for row, end in zip(rollouts.tokens, ends, strict=True)]
        texts = self.tokenizer.batch_decode(rows, clean_up_tokenization_spaces=False)
        responses = list(map(Response, texts, rollouts.truncated.tolist()))
        grades = grades_of(self.task, [p for p in prompts for _ in range(samples)], responses)
        if any(grade.outcome is None for grade in grades):
            raise ValueError("loop: responses must all be graded; train leaves out ungraded ones")
        outcome = np.array([grade.outcome for grade in grades], rollouts.outcome.dtype)
        reward = np.array([grade.reward for grade in grades], rollouts.reward.dtype)
        return rollouts.replace(outcome=outcome, reward=reward)


@partial(jax.jit, static_argnums=(0, 1, 5))
def decide(model, objective, state, rollouts, key, samples):
    """The batch with its old log-probs, and with the advantages, which compare all of its rows."""
    old = {name.removeprefix("old_") for name in objective.reads if name.startswith("old_")}
    # The likeliest tokens are known in the pass of the update, which is then the first and only.
    needs = (old | {"logp"}) - {"topk_logp"}
    stats = policy.score(model, state["params"], rollouts, needs, objective.options, shared=samples)
    rollouts = rollouts.replace(**{f"old_{name}": stats.get(name) for name in needs})
    if objective.decide_once is None:
        return rollouts, state
    rollouts, method, _ = objective.decide_once(rollouts, state["method"], key)
    return rollouts, state | {"method": method}


@partial(jax.jit, static_argnums=(0, 1, 2, 7, 8), donate_argnums=3)
def update(model, objective, optimizer, state, rollouts, key, fresh, samples, micro_batches):
    """One optimizer update; `fresh`: the weights are still those that sampled the rollouts."""
    how = dict(fresh=fresh, micro_batches=micro_batches, shared=samples)
    arguments = state["params"], rollouts, state["method"], key
    gradient = objective_gradient(model, objective, *arguments, **how)
    changes, moments = optimizer.update(gradient.grads, state["optimizer"], state["params"])
    moved = {"params": optax.apply_updates(state["params"], changes), "optimizer": moments}
    # Adam's momentum must not move a policy that a batch of equal rewards taught nothing.
    norm = optax.tree.norm(gradient.grads)
    usable = jnp.isfinite(norm) & (norm > 0)
    moved = {n: jax.tree.map(partial(jnp.where, usable), moved[n], state[n]) for n in moved}
    return moved | {"method": gradient.method_state}, gradient.loss, norm


def _take_step(config, actor, objective, optimizer, state, numbers, step):
    """One step: rollouts of the given prompts, their advantages, and updates of whole groups."""
    seed, size = config.seed, config.sampling.samples_per_prompt
    key = named_key(seed, "sampler", step, 0)
    rollouts = actor.answer(state["params"], actor.task.train, numbers, key, size)
    if config.sampling.mask_truncated:
        rollouts = rollouts.replace(mask=rollouts.mask & ~rollouts.truncated[:, None])
    key = named_key(seed, "decide_once", step)
    rollouts, state = decide(actor.model, objective, state, rollouts, key, size)
    parts = []
    for epoch in range(config.update.epochs):
        random = np.random.default_rng([seed, zlib.crc32(b"minibatches"), step, epoch])
        parts += np.split(random.permutation(len(numbers)), config.update.minibatches)
    for number, groups in enumerate(parts):
        rows = (np.sort(groups)[:, None] * size + np.arange(size)).reshape(-1)
        part = jax.tree.map(lambda x, rows=rows: x[rows], rollouts)
        key = named_key(seed, "objective", step, number)
        arguments = state, part, key, number == 0, size, config.update.micro_batches or 1
        state, loss, norm = update(actor.model, objective, optimizer, *arguments)
        if not np.isfinite([loss, norm]).all():
            raise FloatingPointError(f"step {step + 1}: loss {loss}, gradient norm {norm}")
    return state


def evaluate(config: TrainConfig, actor: _Actor, params: Any, step: int) -> dict[str, float]:
    """Held-out pass@1, pass@k and entropy (nats per token)."""
    numbers = held_out_indices(actor.task, config.evaluation.evaluation_prompts)
    n, key = config.evaluation.evaluation_samples, named_key(config.seed, "evaluation", step)
    rollouts = actor.answer(params, actor.task.test, numbers, key, n)
    correct = np.sum(np.reshape(is_correct(rollouts.outcome), (-1, n)), axis=1)
    # Each kind of prompt counts by its fraction of the task's mixture.
    kinds = [actor.task.test[number].kind for number in numbers]
    mixture = actor.task.mixture or Counter(kinds)
    weights = [mixture.get(kind, 0) / kinds.count(kind) for kind in kinds]
    found = {}
    for k in sorted({1, (n + 1) // 2}):
        found[f"pass@{k}"] = float(np.average(pass_at_k(n, correct, k), weights=weights))
    found["entropy"] = float(rollouts.entropy.sum(dtype=np.float64) / rollouts.mask.sum())
    return found


def check(config: TrainConfig, recipe: Recipe) -> None:
    """Refuses a setting or a method that needs more than this loop has, by a `ValueError`."""
    start = preset(config.data.task, config.method).flat
    changed = {name for name, value in config.flat.items() if value != start[name]}
    for name in sorted(changed - SETTINGS):
        raise ValueError(f"loop: --{name.replace('_', '-')} must be left out, as it has no effect")
    parts = {name: part for name, part in vars(recipe).items() if part is not None}
    missing = sorted(parts.keys() - {"objective"})
    known = READABLE | {f"old_{name}" for name in READABLE}
    if config.plan.updates > 1:
        known -= {"old_topk_logp"}  # of tokens that the first update finds
    missing += sorted(recipe.objective.reads - known)
    if missing:
        raise ValueError(
            f"loop: --method must need only an objective of statistics that this loop measures,"
            f" got {config.method!r}, which needs {', '.join(missing)}; use"
            f" python -m rlvr_jax train --method {config.method}"
        )


def train(config: TrainConfig) -> dict[str, float]:
    """Trains from the first step or from the last checkpoint; returns the last evaluation."""
    run = resolve(config)
    recipe = methods.recipe(config.method, **run.hyperparameters)
    check(config, recipe)
    config, task, sampling, adam = run.config, run.task, run.config.sampling, run.config.optimizer
    folder = config.policy.model
    (model, params), tokenizer = policy.load(folder), policy.tokenizer(folder)
    if tokenizer.chat_template or any(prompt.messages for prompt in task.train):
        raise ValueError("loop: --model must have no chat template; `rlvr-jax train` applies it")
    objective, size = recipe.objective, sampling.samples_per_prompt
    options = dict(
        response_tokens=sampling.response_tokens,
        sampling=Sampling(temperature=sampling.temperature),
        stop_tokens={tokenizer.eos_token_id, *model.stop_tokens},
        at_once=sampling.prompts_per_step * size,
    )
    actor = _Actor(model, tokenizer, task, options)
    order = Batches(task, sampling.prompts_per_step, config.seed)

    rate, warmup = adam.learning_rate, adam.warmup_updates
    schedule = optax.linear_schedule(0.0, rate, warmup) if warmup else rate
    optimizer = optax.chain(
        optax.clip_by_global_norm(adam.max_gradient_norm),
        optax.adamw(schedule, adam.adam_b1, adam.adam_b2, weight_decay=adam.weight_decay),
    )
    rows = sampling.prompts_per_step * size // config.update.minibatches
    method_state = objective.init(Spec(len(task.train), rows, sampling.response_tokens))
    state = {"params": params, "optimizer": optimizer.init(params), "method": method_state}

    checkpoints = open_checkpoints(run.given)
    first = checkpoints.latest_step() or 0
    if first:
        leaves, structure = jax.tree.flatten(state)
        leaves = checkpoints.restore(first, args=ocp.args.StandardRestore(leaves))
        state = jax.tree.unflatten(structure, leaves)
    interval = config.evaluation.evaluate_every
    for step in range(first, config.steps + 1):
        last = step == config.steps
        if step % interval == 0 or last:
            found = evaluate(config, actor, state["params"], step)
            line = "  ".join(f"{name} {value:.3f}" for name, value in found.items())
            print(f"step {step:4d} of {config.steps}  {line}", flush=True)
        if step > first and (step % (config.checkpoint_every or interval) == 0 or last):
            checkpoints.save(step, args=ocp.args.StandardSave(jax.tree.leaves(state)))
        if not last:
            numbers = order.indices(step)
            state = _take_step(config, actor, objective, optimizer, state, numbers, step)
    policy.save(config.run_dir / "policy", model, state["params"], tokenizer)
    (config.run_dir / "summary.json").write_text(json.dumps(found))
    return found


def open_checkpoints(config: TrainConfig) -> ocp.CheckpointManager:
    """The checkpoints of a run directory, which is new or has a run of these settings."""
    check_directory(config.run_dir, config.resume)
    stored = config.run_dir / "config.json"
    text = json.dumps({"settings": config.to_json() | {"resume": False}})
    if stored.is_file() and stored.read_text() != text:
        raise ValueError(f"loop: --resume must continue with the settings in {stored}, got others")
    config.run_dir.mkdir(parents=True, exist_ok=True)
    stored.write_text(text)
    logging.getLogger("absl").setLevel(logging.ERROR)  # orbax reports every save
    options = ocp.CheckpointManagerOptions(max_to_keep=2, enable_async_checkpointing=False)
    return ocp.CheckpointManager(config.run_dir.absolute() / "checkpoints", options=options)


def main(arguments: Sequence[str]) -> None:
    """Reads the command line, which is that of `python -m rlvr_jax train`, and trains."""
    train(parse_config(arguments, __doc__))


if __name__ == "__main__":
    guarded(main)
