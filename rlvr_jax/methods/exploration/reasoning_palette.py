"""Reasoning Palette: a random latent sets the style of a response before its first token.

"Reasoning Palette: Modulating Reasoning via Latent Contextualization for Controllable Exploration
for (V)LMs", https://arxiv.org/abs/2512.17206

    z ~ N(0, I) for each rollout, prefix = decoder(z), P vectors before the prompt's embeddings
    fraction of a group's rows with a prefix: max(0, 1 - step / (S / 2)) of S steps
    A and loss of GRPO; log-probs and old log-probs are computed with the prefix of the row

A reconstruction from the abstract and the introduction: sizes and schedule are ours. The decoder is
half of an autoencoder of mean embeddings of questions with their answers
(`rlvr_jax.policy.prefixes`). It is fitted before the run, and frozen in it:

    python -m experiments.palette --task brackets --out decoder.npz
    python -m rlvr_jax train --method reasoning_palette --task brackets \\
        --hyperparameters decoder=decoder.npz --run-dir runs/palette

Evaluations have no prefix; the late phase without prefixes prepares for them.

Left out: the short tuning to the prefixes.
Reports: steadily above plain RL on reasoning, with control of the style (no numbers).
Traps: Without `decoder` the weights are random, and prefixes are noise. `decoder=task` is the one
that ships with the base model of brackets. A score without the row's prefix
would be off-policy without a warning. Without a late phase of plain prompts, evaluations measure an
untrained input.
"""

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience import Draw, experience
from rlvr_jax.keys import named_key
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.policy.prefixes import PrefixVAE, decode_prefix, load_prefix_vae, new_prefix_vae
from rlvr_jax.tasks import Task
from rlvr_jax.types import Method, Recipe, Shown, part
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, Positive
from rlvr_jax.types.passing import arguments_of

OF_TASK = "task"
"""Name of the decoder that is in the folder of the task's base model."""


@part(writes=frozenset({"soft_prompt", "soft_length"}))
def soft_prefixes(
    latent: Count = 32,
    prefix: Count = 4,
    until: Positive = 0.5,
    decoder: str = "",
) -> Draw:
    """Adds vectors of a random latent z ~ N(0, I) before the prompts of some rows.

    In each group the first `falling_fraction` of the rows have a prefix, each its own; the others
    are plain. The prefix is context and not trained. Its vectors are recorded, so a row is scored
    and trained with the prefix with which it was sampled. Groups mix latents, and the baseline is
    over the mixture. Evaluations sample without a prefix.

    Args:
      latent: size of z.
      prefix: vectors of a prefix (P).
      until: fraction of the run's steps over which prefixes are withdrawn.
      decoder: file of a fitted autoencoder (`python -m experiments.palette`), or "task":
        palette.npz in the folder of the task's base model. Empty: random weights by the run's seed.
    Writes: soft_prompt, soft_length. Metrics: prefixed_fraction (of the rows), decoded_prefixes
      (rows with a prefix of a fitted decoder).
    """
    if decoder not in ("", OF_TASK):
        _fitted(decoder)

    def apply(requests, actor, state, turn):
        fraction = falling_fraction(turn.step, turn.setting.steps, until)
        rows = [prefixed_rows(fraction, request.samples) for request in requests]
        z = turn.random().normal(size=(sum(rows), latent)).astype(np.float32)
        fitted = _weights(decoder, turn.setting.task)
        vectors = _decoded(fitted, z, prefix, actor, turn) if len(z) else z
        split, prefixes = [], iter(vectors)
        for request, number in zip(requests, rows, strict=True):
            first = request.first_sample
            split += [
                replace(request, samples=1, first_sample=first + sample, prefix=next(prefixes))
                for sample in range(number)
            ]
            if rest := request.samples - number:
                split.append(replace(request, samples=rest, first_sample=first + number))
        batch = actor.draw(split, turn.key)
        sizes = [request.samples for request in requests]
        group = np.repeat(np.arange(len(requests), dtype=np.int32), sizes)
        batch = replace(
            batch.with_rollouts(group=group).renumbered(),
            requests=[request for request in requests for _ in range(request.samples)],
            sample_seconds=batch.sample_seconds,
        )
        metrics = {
            "prefixed_fraction": sum(rows) / max(len(group), 1),
            "decoded_prefixes": float(sum(rows)) if fitted is not None else 0.0,
        }
        return batch, state, metrics

    return apply


def falling_fraction(step: int, steps: int, until: float = 0.5) -> float:
    """max(0, 1 - step / (until · steps)): all rows at first, none after `until` of the run."""
    return max(0.0, 1 - step / max(until * steps, 1e-9))


def prefixed_rows(fraction: float, samples: int) -> int:
    """Number of rows of a group that get a prefix, the first ones; half a row counts as one."""
    return int(np.floor(fraction * samples + 0.5))


_fitted = functools.cache(load_prefix_vae)


def _weights(decoder: str, task: Task) -> PrefixVAE | None:
    """The fitted autoencoder; None: random weights."""
    if decoder == OF_TASK:
        return _fitted(str(Path(task.base_model or "") / "palette.npz"))
    return _fitted(decoder) if decoder else None


def _decoded(fitted: PrefixVAE | None, z: np.ndarray, prefix: int, actor, turn) -> np.ndarray:
    embeddings = actor.embeddings()
    width, latent = embeddings.shape[1], z.shape[1]
    if fitted is None:
        scale = float(np.sqrt(np.mean(embeddings.astype(np.float32) ** 2)))
        key = named_key(turn.setting.seed, "soft_prefixes", 0)
        fitted = new_prefix_vae(key, width, latent, prefix, scale=scale)
    found = (fitted.mean.shape[1], *fitted.output.shape[1:])
    if found != (latent, prefix, width):
        raise ValueError(
            "soft_prefixes: decoder must have latent, prefix and the width of the model as"
            f" {(latent, prefix, width)}, got {found}"
        )
    return np.asarray(jax.jit(decode_prefix)(fitted, z))


@arguments_of(soft_prefixes)
def reasoning_palette(
    clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.2, epsilon: Epsilon = 1e-6, **prefixes: Any
) -> Recipe:
    """Applies GRPO to rows of which fewer and fewer have a random soft prefix."""
    return Recipe(
        objective=clipped_objective(clip_low, clip_high, epsilon=epsilon),
        experience=experience(draw=soft_prefixes(**prefixes)),
    )


METHOD = Method(
    reasoning_palette,
    changes="sampling",
    evidence="reconstruction",
    shown=Shown(
        "brackets",
        "experience/decoded_prefixes",
        without={"decoder": ""},
        hyperparameters={"decoder": OF_TASK},
        steps=300,
    ),
)
