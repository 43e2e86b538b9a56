"""Fits the decoder of soft prefixes for `reasoning_palette` to questions with their answers.

    python -m experiments.palette --task brackets --out decoder.npz
    python -m rlvr_jax train --method reasoning_palette --task brackets \\
        --hyperparameters decoder=decoder.npz --run-dir runs/palette

A text is a train prompt of the task with its worked solution, else its gold response. The
autoencoder reconstructs the mean embedding of the tokens of a text. The command prints how much of
the variance of these means the decoder explains.
"""

from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
import tyro

from rlvr_jax import policy, tasks
from rlvr_jax.arguments import as_typed
from rlvr_jax.keys import named_key
from rlvr_jax.policy.prefixes import (
    decode_prefix,
    encode_latent,
    fit_prefix_vae,
    new_prefix_vae,
    save_prefix_vae,
)
from rlvr_jax.ranges import Count
from rlvr_jax.runs import described
from rlvr_jax.tasks import Task


@dataclass(frozen=True)
class Config:
    """Texts, sizes and steps."""

    out: Path
    """File of the decoder, .npz."""
    task: str = "brackets"
    """Task with gold responses or worked solutions."""
    model: str = ""
    """Policy folder; empty: base model of the task."""
    latent: Count = 32
    """Size of the latent."""
    prefix: Count = 4
    """Vectors of a prefix."""
    texts: Count = 2000
    """Largest number of texts."""
    steps: Count = 1000
    """Steps of Adam over all texts."""
    seed: int = 0
    """Seed of the initial weights and of the latents."""


def mean_embeddings(task: Task, model: str, most: int) -> np.ndarray:
    """The mean embedding of each question with its answer, float32 [N, D].

    Raises:
      ValueError: no train prompt has a worked solution or a gold response.
    """
    pairs = [
        prompt.text + " " + ("".join(prompt.solution) or prompt.gold)
        for prompt in task.train
        if prompt.solution or prompt.gold
    ][:most]
    if not pairs:
        raise ValueError(
            f"palette: --task must have worked solutions or gold responses, got {task.name!r}"
        )
    tokenizer, (_, params) = policy.tokenizer(model), policy.load(model)
    table = np.asarray(params["embedding"], np.float32)
    rows = tokenizer(pairs, add_special_tokens=False)["input_ids"]
    return np.stack([table[row].mean(axis=0) for row in rows])


def main(config: Config) -> None:
    """Fits the autoencoder, prints what it explains, and writes it."""
    with as_typed("--task", "load: name"):
        task = tasks.load_as_written(config.task)
    means = mean_embeddings(task, config.model or task.base_model, config.texts)
    keys = jax.random.split(named_key(config.seed, "palette", 0))
    scale = float(np.sqrt(np.mean(means**2)))
    vae = new_prefix_vae(keys[0], means.shape[1], config.latent, config.prefix, scale=scale)
    vae, loss = fit_prefix_vae(vae, means, keys[1], steps=config.steps)
    again = np.asarray(decode_prefix(vae, encode_latent(vae, means)[0])).mean(axis=1)
    explained = 1 - np.sum((means - again) ** 2) / np.sum((means - means.mean(axis=0)) ** 2)
    save_prefix_vae(config.out, vae)
    print(
        f"{len(means):,} texts of {task.name}, loss {loss:.4f}, variance explained"
        f" {explained:.2f} → {config.out}"
    )


if __name__ == "__main__":
    main(tyro.cli(Config, description=described(__doc__)))
