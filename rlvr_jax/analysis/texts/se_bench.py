"""Closed books: sample with a document in the prompt, learn without it, and measure retention.

Yuan et al. 2026, "SE-Bench", https://arxiv.org/abs/2602.04811, https://github.com/thunlp/SE-Bench.
A package is renamed into random identifiers, with its documentation: trivial with the documents,
impossible without. Training may show them when it samples; the test never does.

    rollout prompt (with the document) ──sample──→ response ──splice──→ training prompt, response

Behind `splice` old, current and reference log-probs are all of the training prompt, so the ratio
begins at 1. The other context of sampling is not corrected, as in the authors' code. A truncated
weight against `behaviour_logp` would correct it. Closed SFT imitates the correct rows instead.
"""

import re
import types
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from rlvr_jax.types import Rollouts

_LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
_LENGTH = 6  # of a name; 3e8 of them


def splice(rollouts: Rollouts, prompt_tokens: ArrayLike, prompt_length: ArrayLike) -> Rollouts:
    """Puts responses after other prompts, as if they had been sampled there.

    Responses, masks, groups and grades stay. Old log-probs are dropped, for the scorer to give
    those of the new prompt; `behaviour_logp` stays as the record of the sampling prompt.

    Args:
      prompt_tokens: int [B, P], right-padded. prompt_length: int [B].
    Raises:
      ValueError: not one prompt per row, or a length outside [1, P].
    """
    tokens, length = np.asarray(prompt_tokens, np.int32), np.asarray(prompt_length, np.int32)
    rows = np.shape(rollouts.group)[0]
    if tokens.ndim != 2 or len(tokens) != rows or length.shape != (rows,):
        raise ValueError(
            f"splice: prompt_tokens and prompt_length must be [{rows}, P] and [{rows}], got"
            f" {tokens.shape} and {length.shape}"
        )
    if not ((length >= 1) & (length <= tokens.shape[1])).all():
        raise ValueError(f"splice: prompt_length must be in [1, {tokens.shape[1]}], got {length}")
    return rollouts.replace(
        prompt_tokens=tokens,
        prompt_length=length,
        shown_tokens=None,
        shown_length=None,
        old_logp=None,
        reference_logp=None,
    )


def rename(identifiers: Iterable[str], seed: int) -> dict[str, str]:
    """A one-to-one map of identifiers to random ones of six letters.

    No new name occurs in an old one. The map is a function of the set of identifiers and the seed.
    """
    originals = sorted(set(identifiers))
    random, taken = np.random.default_rng(seed), set()
    names = {}
    for original in originals:
        while True:
            name = "".join(random.choice(_LETTERS, _LENGTH))
            if name not in taken and not any(name in other for other in originals):
                break
        taken.add(name)
        names[original] = name
    return names


def renamed_text(text: str, names: Mapping[str, str]) -> str:
    """The text, be it documents or tests, with every whole identifier of the map replaced."""
    return re.sub(r"\b[A-Za-z_]\w*", lambda match: names.get(match[0], match[0]), text)


def renamed_module(module: object, names: Mapping[str, str], name: str) -> types.ModuleType:
    """A module called `name` that has the same functions only under their new names."""
    missing = sorted(original for original in names if not hasattr(module, original))
    if missing:
        raise ValueError(f"renamed_module: names must be of {module!r}, got {', '.join(missing)}")
    made = types.ModuleType(name)
    for original, new in names.items():
        setattr(made, new, getattr(module, original))
    return made
