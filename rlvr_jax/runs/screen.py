"""Lines that a run prints before its first step: method, policy, data and settings."""

import inspect
from collections.abc import Mapping
from typing import Any

import jax

from rlvr_jax import methods, tasks
from rlvr_jax.experience.prompts import shown_tokens
from rlvr_jax.policy.parameters import parameter_shapes
from rlvr_jax.runs.hyperparameters import plain
from rlvr_jax.runs.run import Run
from rlvr_jax.training.memory import describe_memory


def differences(card: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Returns the hyperparameters of a run that differ from the defaults of the method.

    Args:
      card: content of its config.json.
    Returns:
      By name the value of the run and the default of the method.
    """
    parameters = inspect.signature(methods.method(card["method"]).recipe).parameters
    published = {name: plain(parameters[name].default) for name in card["hyperparameters"]}
    return {
        name: (value, published[name])
        for name, value in card["hyperparameters"].items()
        if value != published[name] and parameters[name].default is not inspect.Parameter.empty
    }


def run_lines(run: Run, card: Mapping[str, Any], check: tasks.SelfCheck) -> list[str]:
    """Returns six lines: run, policy, data, step, loss, deviations from the paper."""
    config, start = run.config, run.start
    shapes = parameter_shapes(start.model.config)
    size = sum(leaf.size for leaf in jax.tree.leaves(shapes))
    trained = f"adapters of rank {config.policy.lora_rank}" if run.adapts else "all weights"
    sampler, updates = start.sampler, config.plan.updates
    prompts, samples = config.sampling.prompts_per_step, config.sampling.samples_per_prompt
    source = "published" if card["method"] in methods.names() else "default"
    changed = [
        f"{name}={own} ({source}: {theirs})" for name, (own, theirs) in differences(card).items()
    ]
    preset = f"preset {config.preset} (--no-preset: none); " if config.preset else ""
    usual = "as published" if source == "published" else "its defaults"
    interval, optimizer = config.evaluation.evaluate_every, config.optimizer
    warmup = "without warm-up"
    if optimizer.warmup_updates:
        warmup = f"after a warm-up of {optimizer.warmup_updates} updates"
    return [
        f"{config.method} on {config.data.task}, seed {config.seed}, {config.steps}"
        f" step{'s' * (config.steps > 1)} → {config.run_dir}",
        f"policy  {card['model']}, {size / 1e6:.3g}M parameters; trained: {trained};"
        f" {describe_memory(run.memory)}",
        f"data    {len(run.task.train):,} prompts, {len(run.held_out)} of {len(run.task.test):,}"
        f" held out × {config.evaluation.evaluation_samples} samples; {_paid(check)};"
        f" {shown_tokens(start.train_table)}",
        f"step    {prompts} prompts × {samples} samples of at most"
        f" {sampler.response_tokens} tokens at temperature {sampler.sampling.temperature:g};"
        f" {updates} update{'s' * (updates > 1)} at {optimizer.learning_rate:g}, {warmup}, Adam"
        f" decays {optimizer.adam_b1:g} and {optimizer.adam_b2:g}; evaluated every"
        f" {f'{interval} steps' if interval > 1 else 'step'}",
        f"loss    {' · '.join(card['loss_terms'])}",
        f"method  {', '.join(changed) if changed else usual}; {preset}every setting is in"
        " config.json",
    ]


def _paid(check: tasks.SelfCheck) -> str:
    """Mean outcomes of known, other and empty answers, over all kinds of prompts."""
    found = []
    for name, label in (("gold", "known answers"), ("wrong", "others' answers"), ("empty", "none")):
        means = [value for kind in check.kinds if (value := getattr(kind, name)) is not None]
        if means:
            found.append(f"{label} earn {sum(means) / len(means):.2f}")
    return ", ".join(found) or "no known answers"
