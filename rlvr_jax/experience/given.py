"""Rows of tokens that were not sampled: given responses, and given first tokens of responses."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rlvr_jax.objectives import GIVEN
from rlvr_jax.types import Rollouts
from rlvr_jax.types.fields import where_tokens


def with_given(
    tokens: np.ndarray, length: np.ndarray, given: Sequence[Sequence[int]], most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Prompts followed by the given first tokens of their responses, at most `most` of them.

    Args:
      tokens: int [P, L], right-padded prompts.
      length: int [P], lengths of the prompts.
      given: first tokens of each response.
      most: largest number of given tokens of a response.
    """
    whole = np.pad(tokens, ((0, 0), (0, most)))
    for row, ids in enumerate(given):
        whole[row, length[row] : length[row] + len(ids)] = ids
    return whole, length + np.array(list(map(len, given)), length.dtype)


def rows_of_responses(
    prompt_tokens: np.ndarray,
    prompt_length: np.ndarray,
    responses: Sequence[Sequence[int]],
    group: np.ndarray,
    temperature: np.ndarray,
    response_tokens: int,
    *,
    weight_version: int = 0,
) -> Rollouts:
    """Rollouts of unscored responses of at most `response_tokens` tokens, none truncated.

    Args:
      prompt_tokens, prompt_length, group, temperature: fields of the rows.
      responses: tokens of each row.
      response_tokens: budget of a response (T).
      weight_version: number that the rows record.
    """
    count = len(responses)
    length = np.array(list(map(len, responses)), np.int32)
    tokens = np.zeros((count, response_tokens), np.int32)
    for row, ids in enumerate(responses):
        tokens[row, : len(ids)] = ids
    nothing = np.zeros(tokens.shape, temperature.dtype)
    none = np.full(count, -1, np.int32)
    return Rollouts(
        prompt_tokens=prompt_tokens,
        prompt_length=prompt_length,
        tokens=tokens,
        length=length,
        mask=np.arange(response_tokens)[None] < length[:, None],
        group=group,
        rollout_id=np.arange(count, dtype=np.int32),
        parent=none,
        branch_position=none,
        truncated=np.zeros(count, bool),
        behaviour_logp=nothing,
        entropy=nothing,
        temperature=np.repeat(temperature[:, None], response_tokens, axis=1),
        outcome=nothing[:, 0],
        reward=nothing[:, 0],
        valid=np.ones(count, bool),
        weight_version=np.full(count, weight_version, np.int32),
    )


def behind_given(
    sampled: Rollouts,
    prompt_tokens: np.ndarray,
    prompt_length: np.ndarray,
    given: Sequence[Sequence[int]],
    trained: np.ndarray,
    response_tokens: int,
) -> Rollouts:
    """Rollouts whose responses begin with tokens that the sampler read as the prompt's end.

    Args:
      sampled: sampled rows, whose prompts end with the given tokens.
      prompt_tokens, prompt_length: of the rows, without the given tokens.
      given: tokens of each row, recorded as given.
      trained: bool [B], rows whose given tokens are on the mask.
      response_tokens: budget of given and sampled tokens; further tokens are removed.
    """
    count = np.array(list(map(len, given)))
    places = np.arange(response_tokens)[None] - count[:, None]
    width = sampled.tokens.shape[1]
    inside = (places >= 0) & (places < width)
    index = np.clip(places, 0, width - 1)
    front = places < 0
    known: dict[str, Any] = {}
    for name, array in sampled.token_arrays.items():
        spread = index.reshape(index.shape + (1,) * (array.ndim - 2))
        known[name] = where_tokens(inside, np.take_along_axis(array, spread, axis=1))
    for row, ids in enumerate(given):
        known["tokens"][row, : len(ids)] = ids
    length = count + sampled.length
    if "prompt_routes" in sampled.records:
        # Given tokens have none: the router chooses for them.
        there = np.arange(prompt_tokens.shape[1])[None] < prompt_length[:, None]
        own = sampled.records["prompt_routes"][:, : prompt_tokens.shape[1]]
        known["prompt_routes"] = where_tokens(there, own)
    origin = known.get("origin", np.zeros(front.shape, np.int32))
    return sampled.replace(
        **known
        | {
            "mask": known["mask"] | (front & np.asarray(trained)[:, None]),
            # Scores of given tokens on the mask also require a temperature.
            "temperature": np.where(inside, known["temperature"], sampled.temperature[:, :1]),
            "origin": np.where(front, np.int32(GIVEN), origin),
            "prompt_tokens": prompt_tokens,
            "prompt_length": prompt_length,
            "length": np.minimum(length, response_tokens).astype(sampled.length.dtype),
            "truncated": sampled.truncated | (length > response_tokens),
        },
    )
