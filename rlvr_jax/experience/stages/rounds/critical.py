"""Critical tokens: where the policy was least certain while it drew a row."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Turn
from rlvr_jax.types import Rollouts
from rlvr_jax.types.hyperparameters import Count, NonNegativeInt
from rlvr_jax.types.parts import Function, part

__all__ = ["barred_tokens", "critical_positions", "critical_token", "drawn_positions", "eligible"]


@functools.lru_cache(maxsize=4)
def barred_tokens(tokenizer: Any, characters: int) -> np.ndarray:
    """Which tokens say too little to branch at, bool [V]: special ones, and short texts.

    Args:
      tokenizer: of transformers.
      characters: texts of at most so many, without the white space around them, are barred.
    """
    number = len(tokenizer)
    texts = tokenizer.batch_decode(
        [[token] for token in range(number)], clean_up_tokenization_spaces=False
    )
    barred = np.array([len(text.strip()) <= characters for text in texts])
    special = np.array(sorted(tokenizer.all_special_ids), int)
    barred[special[special < number]] = True
    return barred


def eligible(rollouts: Rollouts, barred: np.ndarray) -> np.ndarray:
    """Where a row may be branched, bool [B, T]: at a sampled token behind the first, if not barred.

    Args:
      barred: bool [V]; ids beyond, which no text stands for, are barred, too.
    """
    tokens = np.asarray(rollouts.tokens)
    known = tokens < len(barred)
    told = ~barred[np.where(known, tokens, 0)] & known
    return np.asarray(rollouts.mask) & told & (np.arange(tokens.shape[1])[None] >= 1)


def critical_positions(entropy: np.ndarray, where: np.ndarray, top_k: int) -> np.ndarray:
    """The positions of highest entropy of each row, bool [B, T]; of equal ones the earlier.

    Args:
      entropy: [B, T].
      where: bool [B, T], eligible positions.
      top_k: at most so many of a row.
    """
    order = np.argsort(np.where(where, -entropy, np.inf), axis=1, kind="stable")
    rank = np.argsort(order, axis=1, kind="stable")
    return where & (rank < top_k)


def drawn_positions(candidates: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """One of the candidates of each row, uniformly, int [B]; 0 for a row without any.

    Args:
      candidates: bool [B, T].
    """
    number = candidates.sum(axis=1)
    chosen = np.floor(random.random(len(candidates)) * number).astype(int)
    reached = np.cumsum(candidates, axis=1) > chosen[:, None]
    return np.where(number > 0, reached.argmax(axis=1), 0)


@part
def critical_token(top_k: Count = 20, barred_characters: NonNegativeInt = 1) -> Function:
    """One of the positions where the policy was least certain, for `branch`.

    Of the sampled tokens behind the first that are neither special nor short, one of the `top_k` of
    highest entropy, uniformly; 0 where there is none. Entropies are the sampler's.

    Args:
      top_k: candidates of a row.
      barred_characters: a text of at most so many characters, without the white space around it, is
        no critical token; 0 for vocabularies of single characters.
    Raises:
      ValueError: fewer than one candidate, a negative number; when called, rows without entropies.
    Source: CURE, https://github.com/bytedance/CURE.
    """

    def place(batch: Batch, turn: Turn) -> np.ndarray:
        if batch.rollouts.entropy is None:
            raise ValueError(
                "critical_token: entropy must be recorded when rows are drawn, got None"
            )
        where = eligible(batch.rollouts, barred_tokens(batch.tokenizer, barred_characters))
        candidates = critical_positions(batch.rollouts.entropy, where, top_k)
        return drawn_positions(candidates, turn.random())

    return place
