"""A policy's statistics of given texts: log-probs, entropies and likely tokens, by token."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.policy import products
from rlvr_jax.policy.model import Model, Params
from rlvr_jax.policy.scoring import score
from rlvr_jax.types import Rollouts

_CHUNK = 64
"""Texts are padded to a multiple of it, so that few lengths are compiled."""


class ScoredText(NamedTuple):
    """One text by its n tokens, in nats; the first has NaN, as nothing comes before it.

    Fields:
      ids: int [n].
      logp: log-prob of each token given those before it, [n].
      entropy: of the distribution that the token was one of, [n].
      top_ids, top_logp: the likeliest tokens in its place and their log-probs, [n, k].
    """

    ids: np.ndarray
    logp: np.ndarray
    entropy: np.ndarray
    top_ids: np.ndarray
    top_logp: np.ndarray


def score_texts(
    model: Model,
    params: Params,
    tokenizer: Any,
    texts: Sequence[str],
    top: int = 5,
    batch: int = 8,
) -> list[ScoredText]:
    """Scores texts as they are, without a chat template; with the special tokens that the tokenizer
    puts around any text. Nothing is rewarded, grouped or sampled.

    Examples:
      >>> from rlvr_jax import policy, tasks
      >>> path = tasks.load("brackets").base_model
      >>> (scored,) = policy.score_texts(*policy.load(path), policy.tokenizer(path), ["1 + 2 = 3"])
      >>> scored.logp.shape, scored.entropy.shape
      ((5,), (5,))

    Args:
      model, params: of `policy.load`; in bfloat16 where they were loaded so.
      tokenizer: tokenizer of the model, from `policy.tokenizer`.
      texts: of two tokens at least, and within the model's positions.
      top: k, alternatives for each token.
      batch: texts that are computed together.
    Raises:
      ValueError: a value that is not a text; a text with fewer than two tokens or more tokens than
        positions; `top` outside of 1 to the size of the vocabulary.
    """
    if isinstance(texts, str):
        raise ValueError(f"score_texts: texts must be a sequence of texts, got the text {texts!r}")
    texts = list(texts)
    if wrong := [text for text in texts if not isinstance(text, str)]:
        raise ValueError(f"score_texts: texts must be a sequence of texts, got {wrong[0]!r} in it")
    every = tokenizer(texts)["input_ids"] if texts else []
    for text, ids in zip(texts, every, strict=True):
        if not 2 <= len(ids) <= model.config.max_positions:
            raise ValueError(
                f"score_texts: texts must have 2 to {model.config.max_positions} tokens, got"
                f" {len(ids)} of {text[:80]!r}"
            )
    return score_tokens(model, params, every, top, batch)


def score_tokens(
    model: Model, params: Params, rows: Sequence[Sequence[int]], top: int = 5, batch: int = 8
) -> list[ScoredText]:
    """Scores sequences of token ids as `score_texts` scores those of texts.

    Args:
      model, params, top, batch: as for `score_texts`.
      rows: of two tokens at least, and within the model's positions.
    Raises:
      ValueError: `top` outside of 1 to the size of the vocabulary, or an empty `batch`.
    """
    if not 1 <= top <= model.config.vocab_size:
        raise ValueError(f"score_texts: top must be in [1, {model.config.vocab_size}], got {top}")
    if batch < 1:
        raise ValueError(f"score_texts: batch must be at least 1, got {batch}")
    # Sequences of like lengths together: least padding.
    order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
    found: dict[int, ScoredText] = {}
    program = _program(model.config.compute_dtype)
    for start in range(0, len(order), batch):
        places = order[start : start + batch]
        own = [rows[place] for place in places]
        width = -(-(max(map(len, own)) - 1) // _CHUNK) * _CHUNK
        width = min(width, model.config.max_positions - 1)
        padded = [*own, *[own[0]] * (batch - len(own))]
        statistics = jax.device_get(program(model, top, params, *_arrays(padded, width)))
        for row, place in enumerate(places):
            found[place] = _of_row(rows[place], {k: v[row] for k, v in statistics.items()})
    return [found[place] for place in range(len(rows))]


def _arrays(rows: Sequence[Sequence[int]], width: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens [B, 1 + width] and lengths [B]."""
    tokens = np.zeros((len(rows), 1 + width), np.int32)
    for row, ids in zip(tokens, rows, strict=True):
        row[: len(ids)] = ids
    return tokens, np.array(list(map(len, rows)), np.int32)


@functools.cache
def _program(dtype: str) -> Callable[..., dict[str, jax.Array]]:
    options = products.compiler_options(dtype)
    return jax.jit(_scored, static_argnums=(0, 1), compiler_options=options)


def _scored(model: Model, top: int, params: Params, tokens, length) -> dict[str, jax.Array]:
    """Statistics of the tokens after the first one, [B, width]."""
    rows, width = tokens.shape[0], tokens.shape[1] - 1
    mask = jnp.arange(1, width + 1, dtype=jnp.int32)[None] < length[:, None]
    rollouts = Rollouts.of_responses(
        tokens[:, 1:],
        mask,
        jnp.zeros(rows),
        jnp.arange(rows, dtype=jnp.int32),
        prompt_tokens=tokens[:, :1],
        prompt_length=jnp.ones(rows, jnp.int32),
    )
    needs = ("logp", "entropy", "topk_logp", "topk_ids")
    stats = score(model, params, rollouts, needs, (("top_k", top),))
    return {name: stats.get(name) for name in needs}


def _of_row(ids: Sequence[int], statistics: dict[str, np.ndarray]) -> ScoredText:
    count = len(ids) - 1

    def behind(name: str, nothing: float) -> np.ndarray:
        values = np.asarray(statistics[name][:count])
        return np.concatenate([np.full((1, *values.shape[1:]), nothing, values.dtype), values])

    return ScoredText(
        np.array(ids, np.int32),
        behind("logp", np.nan),
        behind("entropy", np.nan),
        behind("topk_ids", 0),
        behind("topk_logp", np.nan),
    )
