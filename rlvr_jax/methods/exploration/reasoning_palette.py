"""Reasoning Palette: a random latent sets the style of a response before its first token.

"Reasoning Palette: Modulating Reasoning via Latent Contextualization for Controllable Exploration
for (V)LMs", https://arxiv.org/abs/2512.17206

    z ~ N(0, I) for each rollout, prefix = decoder(z), P vectors before the prompt's embeddings
    fraction of a group's rows with a prefix: max(0, 1 - step / (S / 2)) of S steps
    A and loss of GRPO; log-probs and old log-probs are computed with the prefix of the row

A reconstruction from the abstract and the introduction: sizes and schedule are ours. The decoder is
frozen. By default it is random. `soft_prefixes` also accepts a trained decoder
(`rlvr_jax.policy.prefixes` has the autoencoder and its loss). Evaluations have no prefix; the late
phase without prefixes prepares for them.

Left out: training of the decoder on question-answer pairs; the short tuning to its prefixes.
Reports: steadily above plain RL on reasoning, with control of the style (no numbers).
Traps: The default decoder is never trained, so prefixes are noise. A score without the row's prefix
would be off-policy without a warning. Without a late phase of plain prompts, evaluations measure an
untrained input.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience import Draw, experience
from rlvr_jax.keys import named_key
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.policy.prefixes import decode_prefix, new_prefix_vae
from rlvr_jax.types import Method, Recipe, part
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, Positive
from rlvr_jax.types.passing import arguments_of


@part(writes=frozenset({"soft_prompt", "soft_length"}))
def soft_prefixes(
    latent: Count = 32,
    prefix: Count = 4,
    until: Positive = 0.5,
    decode: Callable[[np.ndarray], np.ndarray] | None = None,
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
      decode: (z [n, Z]) -> [n, P, D], such as a trained decoder. None: a random one of
        `new_prefix_vae`, of the embeddings' size, by the run's seed.
    Writes: soft_prompt, soft_length. Metrics: prefixed_fraction (of the rows).
    """

    def apply(requests, actor, state, turn):
        fraction = falling_fraction(turn.step, turn.setting.steps, until)
        rows = [prefixed_rows(fraction, request.samples) for request in requests]
        z = turn.random().normal(size=(sum(rows), latent)).astype(np.float32)
        vectors = _decoded(decode, z, prefix, actor, turn) if len(z) else z
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
        return batch, state, {"prefixed_fraction": sum(rows) / max(len(group), 1)}

    return apply


def falling_fraction(step: int, steps: int, until: float = 0.5) -> float:
    """max(0, 1 - step / (until · steps)): all rows at first, none after `until` of the run."""
    return max(0.0, 1 - step / max(until * steps, 1e-9))


def prefixed_rows(fraction: float, samples: int) -> int:
    """Number of rows of a group that get a prefix, the first ones; half a row counts as one."""
    return int(np.floor(fraction * samples + 0.5))


def _decoded(decode, z: np.ndarray, prefix: int, actor, turn) -> np.ndarray:
    embeddings = actor.embeddings()
    width = embeddings.shape[1]
    if decode is None:
        scale = float(np.sqrt(np.mean(embeddings.astype(np.float32) ** 2)))
        key = named_key(turn.setting.seed, "soft_prefixes", 0)
        vae = new_prefix_vae(key, width, z.shape[1], prefix, scale=scale)
        found = np.asarray(jax.jit(decode_prefix)(vae, z))
    else:
        found = np.asarray(decode(z))
    if found.shape != (len(z), prefix, width):
        raise ValueError(
            f"soft_prefixes: decode must give {(len(z), prefix, width)}, got {found.shape}"
        )
    return found


@arguments_of(soft_prefixes, "latent", "prefix", "until")
def reasoning_palette(
    clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.2, epsilon: Epsilon = 1e-6, **prefixes: Any
) -> Recipe:
    """Applies GRPO to rows of which fewer and fewer have a random soft prefix."""
    return Recipe(
        objective=clipped_objective(clip_low, clip_high, epsilon=epsilon),
        experience=experience(draw=soft_prefixes(**prefixes)),
    )


METHOD = Method(reasoning_palette, changes="sampling", evidence="reconstruction")
