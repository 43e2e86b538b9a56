"""The probe: trainer and engine score fixed token sequences after every sync of weights.

The gap of a token is |log p of the engine - log p of the trainer|, in nats. It is rounding if both
have the same weights and the same distribution. Above a bound, `explain` repeats the comparison
with weights that a known fault would have, and names the fault that fits.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from rlvr_jax.policy import Model, Params, score_tokens
from rlvr_jax.rollout.engines.engine import Decoding, Engine
from rlvr_jax.rollout.processors import Sampling
from rlvr_jax.types import replace

LIMITS = {"float32": 0.02, "bfloat16": 0.5}
"""Largest gap at equal weights, by format of the activations; above it the engine has another
policy. Chosen: vLLM on a CPU has at most 3e-5 in float32 on brackets. In bfloat16 the limit is at
least `SLACK` times the rounding of the policy: our own sampler has 0.3 on brackets and 2.7 on
SmolLM2."""

FLOORS = {"float32": 1e-3, "bfloat16": 0.1}
"""Smallest bound of a gap: below it a difference counts as rounding. Chosen, not measured."""

SLACK = 4.0
"""The bound is so many times the gap that was measured at equal weights. Chosen."""

MEAN_FLOOR = 0.1
"""Smallest bound of a mean gap, as a fraction of that of the largest one. Chosen."""

_EXPLAINED = 0.25
"""A fault explains a gap if it leaves less than this fraction of it. Chosen."""

_SHORT, _SEQUENCES = 6, 8
_GENERATED = 4
"""Tokens of a sampled continuation whose reported log-probs are compared."""


@dataclass(frozen=True)
class Gap:
    """Distance of an engine from the trainer.

    Fields:
      largest, mean: over all tokens (nats).
      where: sequence and position of the largest one.
    """

    largest: float
    mean: float
    where: tuple[int, int]

    @classmethod
    def of(cls, own: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> "Gap":
        """The gap of two scorings of the same sequences; a NaN is an infinite gap."""
        apart = [np.abs(a - b) for a, b in zip(own, theirs, strict=True)]
        apart = [np.nan_to_num(each, nan=np.inf, posinf=np.inf) for each in apart]
        row = max(range(len(apart)), key=lambda place: apart[place].max())
        every = np.concatenate(apart)
        return cls(float(every.max()), float(every.mean()), (row, int(apart[row].argmax()) + 1))


def probe_sequences(
    vocabulary: int, special_ids: Sequence[int], longest: int, seed: int = 0
) -> list[list[int]]:
    """Fixed sequences of token ids: short and long ones, with every special token in each kind.

    Args:
      vocabulary: number of token ids (V).
      special_ids: special tokens.
      longest: tokens of the long sequences, at least two.
      seed: of the random ids.
    """
    random = np.random.default_rng(seed)
    found = []
    for place in range(_SEQUENCES):
        size = max(2, min(longest, _SHORT) if place % 2 else longest)
        ids = random.integers(0, vocabulary, size)
        # In turn, so that short sequences have them all together.
        if special_ids:
            chosen = np.resize(np.roll(special_ids, -place), size // 3)
            ids[1 : 1 + len(chosen)] = chosen
        found.append(ids.tolist())
    return found


def own_scores(
    model: Model, params: Params, sequences: Sequence[Sequence[int]]
) -> list[np.ndarray]:
    """The scores of the trainer for `Engine.score`."""
    return [each.logp[1:] for each in score_tokens(model, params, sequences, top=1)]


def weight_faults(
    model: Model, params: Params, previous: Params | None, base: Params | None
) -> Iterator[tuple[str, Params]]:
    """Weights that an engine has by a known fault, each with its name.

    Args:
      model: the policy.
      params: weights of the last sync.
      previous: weights before the last sync; None: there are none.
      base: weights without the adapter; None: there is none.
    """
    if base is not None:
        yield "its weights lack the adapter", base
    # On the host, so that no change of a leaf is compiled.
    layers = jax.tree.map(np.asarray, params["layers"])
    count = model.config.num_layers
    if previous is not None:
        yield "its weights are those before the last sync", previous
        if model.config.tied:
            old = {**params, "unembedding": previous["embedding"]}
            yield "its output matrix is not tied to the embedding: it is an earlier one", old
        older = jax.tree.map(np.asarray, previous["layers"])
        for first in range(1, count):
            mixed = {
                name: np.concatenate([layers[name][:first], older[name][first:]]) for name in older
            }
            name = f"its layers from {first} on are those before the last sync"
            yield name, {**params, "layers": {**layers, **mixed}}
    for one, two in itertools.combinations(range(count), 2):
        order = np.arange(count)
        order[[one, two]] = two, one
        swapped = {name: leaf[order] for name, leaf in layers.items()}
        yield f"its layers {one} and {two} are swapped", {**params, "layers": swapped}
    for name, leaf in layers.items():
        if leaf.ndim == 3 and leaf.shape[1] == leaf.shape[2]:
            for layer in range(count):
                turned = leaf.copy()
                turned[layer] = leaf[layer].T
                changed = {**params, "layers": {**layers, name: turned}}
                yield f"its matrix {name} of layer {layer} is transposed", changed


def explain(
    model: Model,
    params: Params,
    sequences: Sequence[Sequence[int]],
    theirs: Sequence[np.ndarray],
    *,
    previous: Params | None = None,
    base: Params | None = None,
    first_tokens: Mapping[str, int] = {},
) -> str:
    """Names the fault that explains the scores of an engine, or where the gap begins.

    Args:
      model: the policy.
      params: weights of the last sync.
      sequences: token ids of the probe.
      theirs: scores of the engine for the sequences.
      previous, base: as for `weight_faults`.
      first_tokens: tokens by name that an engine may put before a sequence.
    """
    gap = Gap.of(own_scores(model, params, sequences), theirs)
    for name, token in first_tokens.items():
        with_first = own_scores(model, params, [[token, *ids] for ids in sequences])
        if Gap.of([each[1:] for each in with_first], theirs).mean < _EXPLAINED * gap.mean:
            return f"it puts the token {name} before every prompt"
    untied = replace(model, config=replace(model.config, tied=False))
    best, least = "", _EXPLAINED * gap.mean
    for name, changed in weight_faults(model, params, previous, base):
        shown = untied if model.config.tied and "unembedding" in changed else model
        found = Gap.of(own_scores(shown, changed, sequences), theirs).mean
        if found < least:
            best, least = name, found
    if best:
        return best
    row, position = gap.where
    return (
        f"no known fault fits; the largest gap is at token {position} of a sequence of"
        f" {len(sequences[row])}"
    )


def reported_gap(
    model: Model,
    params: Params,
    engine: Engine,
    prompts: Sequence[Sequence[int]],
    decoding: Decoding,
) -> tuple[Gap, str]:
    """Compares the log-probs that an engine reports for its own samples with the trainer's.

    Args:
      model: the policy.
      params: weights of the last sync.
      engine: the engine that samples.
      prompts: token ids of each prompt.
      decoding: settings of the sampler.
    Returns:
      The gap, and the distribution that fits better than the declared one; "" without one.
    """
    heat = decoding.sampling.temperature
    short = replace(decoding, tokens=min(_GENERATED, decoding.tokens))
    seeds = list(range(len(prompts)))
    found = engine.generate(prompts, seeds, [heat] * len(prompts), short)
    whole = [[*prompt, *one.tokens] for prompt, one in zip(prompts, found, strict=True)]
    tokens = np.zeros((len(whole), max(map(len, whole))), np.int32)
    for row, ids in zip(tokens, whole, strict=True):
        row[: len(ids)] = ids
    logits = [
        rows[len(prompt) - 1 : len(ids) - 1]
        for rows, prompt, ids in zip(
            np.asarray(_logits(model, params, tokens)), prompts, whole, strict=True
        )
    ]
    theirs = [np.asarray(one.logp) for one in found]

    def gap(sampling: Sampling) -> Gap:
        own = [_logp(rows, one.tokens, sampling) for rows, one in zip(logits, found, strict=True)]
        return Gap.of(own, theirs)

    processed = replace(decoding.sampling, processor=None, stops=None, soft=None)
    cuts_off = dict(top_k=0, top_p=1.0, min_p=0.0)
    meanings = {
        "processed": processed,
        "raw": Sampling(),
        "processed at temperature 1": replace(processed, temperature=1.0),
        "processed without the cuts top-k, top-p and min-p": replace(processed, **cuts_off),
    }
    own = gap(meanings.pop(engine.meaning))
    others = {name: gap(sampling) for name, sampling in meanings.items()}
    name = min(others, key=lambda name: others[name].mean)
    return own, name if others[name].mean < _EXPLAINED * own.mean else ""


_logits = jax.jit(Model.logits, static_argnums=0)


def _logp(logits: np.ndarray, tokens: Sequence[int], sampling: Sampling) -> np.ndarray:
    """Log-probs of tokens under the distribution of the settings, each given its logits [n, V]."""
    scaled = logits / np.asarray(sampling.temperature, logits.dtype)
    # The cuts read nothing besides the logits.
    context: Any = None
    if (cuts := sampling.chain()) is not None:
        scaled = np.asarray(cuts.apply(jnp.asarray(scaled), cuts.init(len(tokens)), context)[0])
    own = np.take_along_axis(scaled, np.asarray(tokens)[:, None], axis=1)[:, 0]
    return own - special.logsumexp(scaled, axis=1)
