"""The probe of engines, applied to the sampler in this process.

    python -m experiments.own_gap --model smollm2

The sampler reads each token of the fixed sequences from its cache, one at a time, as in decoding.
The scorer of the trainer reads whole sequences. Both have the same weights and number format.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from rlvr_jax import policy, tasks
from rlvr_jax.keys import plain_key
from rlvr_jax.policy import Model, Params, bitwise
from rlvr_jax.rollout import Prompts, sample
from rlvr_jax.rollout.engines import Decoding, Generated
from rlvr_jax.rollout.engines.engine import Done
from rlvr_jax.rollout.engines.probe import Gap, own_scores, probe_sequences, reported_gap
from rlvr_jax.rollout.processors import Sampling
from rlvr_jax.runs import described, guarded
from rlvr_jax.types import replace


@dataclass(frozen=True)
class Options:
    """The policy, and the length of the probe."""

    model: str = ""
    """Policy folder, or smollm2; empty: the base model of brackets."""
    tokens: int = 47
    """Tokens of the long sequences of the probe."""


@dataclass(frozen=True)
class InProcess:
    """The sampler of this process as an engine."""

    model: Model
    params: Params

    meaning: Literal["processed", "raw"] = "processed"

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        temperatures: Sequence[float],
        decoding: Decoding,
        done: Done | None = None,
    ) -> list[Generated]:
        """See `Engine.generate`; all prompts are sampled together."""
        del seeds, done
        table, length = _table(prompts)
        numbers = np.arange(len(prompts), dtype=np.int32)
        heat = np.asarray(temperatures, np.float32)
        found = sample(
            self.model,
            self.params,
            Prompts(table, length, numbers, np.zeros_like(numbers), temperature=heat),
            plain_key(0),
            samples=1,
            response_tokens=decoding.tokens,
            sampling=decoding.sampling,
            stop_tokens=decoding.stop_tokens,
        )
        rows = zip(found.tokens, found.behaviour_logp, found.length, found.truncated, strict=True)
        return [
            Generated(tokens[:count].tolist(), logp[:count].tolist(), not bool(cut))
            for tokens, logp, count, cut in rows
        ]

    def score(self, sequences: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """See `Engine.score`; token by token, from the cache."""
        table, length = _table(sequences)
        logp = np.asarray(_decoded(self.model, self.params, jnp.asarray(table)))
        return [row[: count - 1] for row, count in zip(logp, length, strict=True)]

    def load(self, folder: Path) -> None:
        """See `Engine.load`; the weights are those of the trainer."""

    def load_adapter(self, folder: Path) -> None:
        """See `Engine.load_adapter`; the adapter is that of the trainer."""


@partial(jax.jit, static_argnums=0)
def _decoded(model: Model, params: Params, tokens: jax.Array) -> jax.Array:
    """Log-probs of the tokens after the first, each from the cache of those before it."""
    rows, width = tokens.shape
    unstacked = model.unstacked(params)

    def step(caches: Any, place: jax.Array) -> tuple[Any, jax.Array]:
        own = jax.lax.dynamic_slice_in_dim(tokens, place, 1, axis=1)
        after = jax.lax.dynamic_slice_in_dim(tokens, place + 1, 1, axis=1)
        positions = jnp.full((rows, 1), place, jnp.int32)
        hidden, caches = model.extend(unstacked, caches, own, positions)
        logits = model.to_logits(params, hidden[:, 0])
        if model.config.bitwise:
            return caches, bitwise.log_prob(logits, after[:, 0])
        logp = jax.nn.log_softmax(logits, axis=-1)
        return caches, jnp.take_along_axis(logp, after, axis=1)[:, 0]

    places = jnp.arange(width - 1, dtype=jnp.int32)
    return jax.lax.scan(step, model.empty_caches(rows, width), places)[1].T


def _table(rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of tokens, right-padded, and their lengths."""
    length = np.array(list(map(len, rows)), np.int32)
    table = np.zeros((len(rows), length.max()), np.int32)
    for row, ids in zip(table, rows, strict=True):
        row[: len(ids)] = ids
    return table, length


def main(arguments: Sequence[str]) -> None:
    """Prints a row for each number format, and one for `--bitwise`."""
    options = tyro.cli(Options, args=list(arguments), description=described(__doc__))
    name = options.model or tasks.load("brackets").base_model
    folder = policy.shipped_weights() if name == policy.SHIPPED else name
    loaded, params = policy.load(folder)
    special = sorted(set(policy.tokenizer(folder).all_special_ids))
    print("| format | largest gap | mean gap | largest gap of reported log-probs |")
    print("|---|---|---|---|")
    rows = {
        "float32": dict(compute_dtype="float32"),
        "float32, `--bitwise`": dict(compute_dtype="float32", bitwise=True),
        "bfloat16": dict(compute_dtype="bfloat16"),
    }
    for label, settings in rows.items():
        model = replace(loaded, config=replace(loaded.config, **settings))
        engine = InProcess(model, params)
        sequences = probe_sequences(model.config.vocab_size, special, options.tokens)
        gap = Gap.of(own_scores(model, params, sequences), engine.score(sequences))
        how = Decoding(8, Sampling(), ())
        reported, _ = reported_gap(model, params, engine, sequences[1:4:2], how)
        numbers = f"{gap.largest:.1e} | {gap.mean:.1e} | {reported.largest:.1e}"
        print(f"| {label} | {numbers} |")


if __name__ == "__main__":
    guarded(main)
