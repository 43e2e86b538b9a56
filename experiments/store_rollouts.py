"""Stores one training batch with its token statistics, to study losses without a model.

    python -m rlvr_jax store_rollouts --out rlvr_jax/rollout/examples/brackets_rollouts.npz

The base model of the task samples and is graded. GRPO then takes `updates` steps on the whole
batch, and the statistics are those of the updated policy. The file is therefore the input of a loss
at a further update of a batch: ratios differ from 1. Same seed and machine: same file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
import tyro

from rlvr_jax import policy, tasks
from rlvr_jax.arguments import as_typed
from rlvr_jax.rollout import save_rollouts
from rlvr_jax.runs import described, guarded, preset
from rlvr_jax.runs.resolved import resolve
from rlvr_jax.runs.run import make_run
from rlvr_jax.runs.step import collect
from rlvr_jax.training.learning import learn

STATISTICS = ("logp", "logsumexp", "entropy", "p_squared", "p_squared_logp")


@dataclass(frozen=True)
class Config:
    """The stored batch."""

    out: Path
    """Output .npz file; an existing file is replaced."""
    task: str = "brackets"
    """Task with a base model, as in rlvr_jax train."""
    prompts: int = 64
    """Prompts of the batch."""
    samples: int = 8
    """Rollouts per prompt."""
    updates: int = 2
    """GRPO updates on the batch between sampling and measuring."""
    seed: int = 0
    """Seed of the prompts and the rollouts."""


def main(arguments: Sequence[str]) -> None:
    """Samples, updates, measures, writes; prints the content of the file."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    for name in ("prompts", "samples", "updates"):
        if getattr(config, name) < 1:
            raise ValueError(f"--{name} must be at least 1, got {getattr(config, name)}")
    settings = preset(config.task, "grpo").replace(
        seed=config.seed,
        prompts_per_step=config.prompts,
        samples_per_prompt=config.samples,
        minibatches=1,
        epochs=config.updates,
        warmup_updates=0,
    )
    with as_typed("--task", "load: name"):
        task = tasks.load_as_written(config.task)
    if not task.base_model:
        raise ValueError(f"--task must have a base model, got {config.task!r}")
    config.out.parent.mkdir(parents=True, exist_ok=True)
    run = make_run(resolve(settings, task))
    state = run.initial_state()
    batch = collect(run, state, step=0).batch
    device, _, records = learn(run.learner, state.device, batch.rollouts, step=0)

    rollouts = batch.rollouts.replace(old_logp=records["old_logp"])
    stats = policy.score(run.start.model, device.params, rollouts, STATISTICS)
    texts = {
        "prompt": [prompt.text for prompt in batch.prompts],
        "response": [response.text for response in batch.responses],
        "kind": [prompt.kind for prompt in batch.prompts],
    }
    save_rollouts(config.out, rollouts, jax.device_get(stats), texts)
    ratio = np.exp(stats.logp - rollouts.old_logp)[rollouts.mask]
    print(
        f"{config.out}: {len(rollouts.group)} rollouts, {rollouts.mask.sum()} tokens, outcome"
        f" {rollouts.outcome.mean():.3f}, ratio {ratio.min():.3f} to {ratio.max():.3f},"
        f" {config.out.stat().st_size / 1000:.0f} kB"
    )


if __name__ == "__main__":
    guarded(main)
