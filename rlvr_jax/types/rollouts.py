"""Sampled responses and their records."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.types.fields import axes_of, fits, pytree
from rlvr_jax.types.given import as_array, as_mask, numbered
from rlvr_jax.types.recorded import Recorded
from rlvr_jax.types.records import RECORDS, record_of
from rlvr_jax.types.token_stats import STATISTICS


@pytree
@dataclass(frozen=True, kw_only=True)
class Rollouts(Recorded):
    """Sampled responses with their records.

    The sampler writes what it sampled, the verifiers write `outcome` and `reward`, the scorer
    writes `old_logp` (and `reference_logp` where an objective needs it). Log-probs are nats, 0 off
    the mask; sequences are right-padded.

    Fields:
      prompt_tokens, prompt_length: the prompt.
      tokens: the response.
      length: response tokens including the stop token; 0 for an empty row.
      mask: the sampled tokens (from lengths, never from token values; False on tokens of a tool or
        a prefix).
      group: rows of one prompt have one id.
      rollout_id: identity of the rollout in its batch. Random choices are keyed by it, so they do
        not depend on the order of the rows.
      parent: the row this one was forked from, -1 if none: a row of the pool, or a `rollout_id`
        once the caller has renumbered it.
      branch_position: response position of that fork, -1 if none.
      truncated: ended by the budget or the sampler's driver and not by the stop token.
      behaviour_logp: under the distribution really sampled from (temperature, top-k, …).
      entropy: of the policy over the whole vocabulary at the sampling temperature.
      temperature: of the sampler, token by token; log-probs are scored at it.
      outcome: the verifier's grade, in [0, 1]; pass rates and filters read it.
      reward: the objective trains on it (outcome plus shaping).
      valid: rows with a reward. False: ungraded, or without one; see `only_valid`.
      weight_version: number of updates of the sampling weights, at the last sampled token.
      old_logp: the scorer's log-prob at the weights that sampled: denominator of the ratio.
      reference_logp: of the frozen policy of a KL term.
      records: all other arrays by name, as `rlvr_jax.types.records` declares them. A record that
        nothing wrote is absent.
    """

    prompt_tokens: Int[Array, "B P"]
    prompt_length: Int[Array, "B"]
    tokens: Int[Array, "B T"]
    length: Int[Array, "B"]
    mask: Bool[Array, "B T"]
    group: Int[Array, "B"]
    rollout_id: Int[Array, "B"]
    parent: Int[Array, "B"]
    branch_position: Int[Array, "B"]
    truncated: Bool[Array, "B"]
    behaviour_logp: Float[Array, "B T"] | None = None
    entropy: Float[Array, "B T"] | None = None
    temperature: Float[Array, "B T"]
    outcome: Float[Array, "B"]
    reward: Float[Array, "B"]
    valid: Bool[Array, "B"]
    weight_version: Int[Array, "B"]
    old_logp: Float[Array, "B T"] | None = None
    reference_logp: Float[Array, "B T"] | None = None
    records: Mapping[str, Any] = field(default_factory=dict)

    @property
    def token_arrays(self) -> dict[str, Any]:
        """The arrays of response tokens, [B, T, …], by name."""
        return {
            name: x for name, x in self.arrays.items() if kind_and_axes(name)[1][:2] == ("B", "T")
        }

    def replace(self, **changes: Any) -> Rollouts:
        """See `Recorded.replace`. Other prompts drop `routes`, unless the changes have new ones:
        the sampler read the responses after the earlier prompts."""
        if "prompt_tokens" in changes and "prompt_routes" not in changes:
            changes |= {"routes": None, "prompt_routes": None}
        return super().replace(**changes)

    def check(self, records: Mapping[str, Any]) -> None:
        """Refuses records that are not declared, or of another kind or shape than declared."""
        sizes = dict(zip("BT", self.mask.shape, strict=True))
        for name, array in records.items():
            record_of(name).check(array, sizes)

    @property
    def supervised_tokens(self) -> Bool[Array, "B T"]:
        """The tokens of supervised rows, up to their length."""
        supervised = self.records.get("supervised")
        if supervised is None:
            return self.mask & False
        places = jnp.arange(self.mask.shape[1], dtype=self.length.dtype)
        return supervised[:, None] & (places[None] < self.length[:, None])

    def only_valid(self) -> Rollouts:
        """The rollouts as rewards, losses and statistics count them.

        A row that is not valid has no tokens on the mask and is a separate group, as is a
        supervised row. Arrays of numpy stay arrays of numpy.
        """
        xp = self.mask.__array_namespace__()
        supervised = self.records.get("supervised")
        outside = ~self.valid if supervised is None else ~self.valid | supervised
        rows = xp.arange(len(self.group), dtype=self.group.dtype)
        own = xp.min(self.group, initial=0) - 1 - rows
        return self.replace(
            mask=self.mask & self.valid[:, None], group=xp.where(outside, own, self.group)
        )

    @property
    def scored(self) -> Bool[Array, "B T"]:
        """The tokens that a policy scores: those on the mask and those to imitate."""
        counted = self.mask & self.valid[:, None]
        return counted if "supervised" not in self.records else counted | self.supervised_tokens

    @classmethod
    def of_responses(
        cls,
        tokens: Int[Array | np.ndarray, "B T"],
        mask: Bool[Array | np.ndarray, "B T"],
        reward: Float[Array | np.ndarray, "B"],
        group: Int[Array | np.ndarray, "B"] | Sequence[Hashable],
        **records: Any,
    ) -> Rollouts:
        """The record of a batch of another sampler; every array may be numpy or jax.

        Examples:
          >>> import numpy as np
          >>> from rlvr_jax import Rollouts
          >>> tokens, mask = np.array([[5, 7], [5, 8]]), np.ones((2, 2), bool)
          >>> reward, group = np.array([1.0, 0.0]), np.array([0, 0])
          >>> rows = Rollouts.of_responses(tokens, mask, reward, group)
          >>> rows.length.tolist(), rows.outcome.tolist()
          ([2, 2], [1.0, 0.0])

        Args:
          tokens, mask: responses, and which of their tokens were sampled.
          reward: also the outcome unless that is given.
          group: id of each row's prompt: integers, or outside of jit labels of any kind. Labels
            that are not int32 are numbered in the order of their first rows.
          records: any other fields and records. Without them, or with None, rows have no prompt, no
            log-probs or entropies of the sampler, and temperature 1. They are numbered in order,
            valid and not truncated. An objective that reads a missing record reports it. Integers
            and bools become float32 in fields of floats, `reward` among them.
        Raises:
          ValueError: shapes that do not fit; values that are not arrays; integers beyond int32.
            Floats in place of integers. Mask values other than 0 and 1. Labels that cannot be
            compared. A prompt_logp without prompt_length.
        """
        mask = as_mask(mask)
        if mask.ndim != 2:
            raise ValueError(
                f"Rollouts.of_responses: mask must have the shape [B, T], got {mask.shape}"
            )
        group = numbered(group)
        records = {name: value for name, value in records.items() if value is not None}
        given = {"tokens": tokens, "mask": mask, "reward": reward, "group": group, **records}
        given = {name: as_array(name, value) for name, value in given.items()}
        sizes = dict(zip("BT", mask.shape, strict=True))
        for name in given:
            kind, axes = kind_and_axes(name)
            array, wanted = given[name], tuple(sizes.get(axis, axis) for axis in axes)
            if not fits(array.shape, axes, sizes):
                raise ValueError(
                    f"Rollouts.of_responses: {name} must have the shape {wanted} as mask"
                    f" {mask.shape}, got {array.shape}"
                )
            if kind == "Float" and not jnp.issubdtype(array.dtype, jnp.floating):
                given[name] = array.astype(jnp.float32)
            if kind == "Int" and jnp.issubdtype(array.dtype, jnp.floating) and array.size:
                raise ValueError(
                    f"Rollouts.of_responses: {name} must be integers, got {array.dtype}"
                    f"{list(array.shape)}"
                )
        if "prompt_logp" in given and "prompt_length" not in given:
            raise ValueError(
                "Rollouts.of_responses: prompt_length must be given with prompt_logp, got None"
            )
        rows, width = mask.shape
        reward = given["reward"]
        none = jnp.full((rows,), -1, jnp.int32)
        position = jnp.arange(1, width + 1, dtype=jnp.int32)
        known = {
            "prompt_tokens": jnp.zeros((rows, 0), jnp.int32),
            "prompt_length": jnp.zeros((rows,), jnp.int32),
            "length": jnp.max(jnp.where(mask, position[None], 0), axis=1, initial=0),
            "rollout_id": jnp.arange(rows, dtype=jnp.int32),
            "parent": none,
            "branch_position": none,
            "truncated": jnp.zeros((rows,), bool),
            "behaviour_logp": None,
            "entropy": None,
            "temperature": jnp.ones((rows, width), reward.dtype),
            "outcome": reward,
            "valid": jnp.ones((rows,), bool),
            "weight_version": jnp.zeros((rows,), jnp.int32),
        }
        ids = {name: given[name].astype(jnp.int32) for name in ("tokens", "group")}
        return cls.of_arrays(known | given | ids)


_AXES = axes_of(Rollouts)


def known_names() -> set[str]:
    """All fields and declared records, and the old statistics."""
    return {*_AXES, *RECORDS, *(f"old_{name}" for name in STATISTICS)}


def kind_and_axes(name: str) -> tuple[str, tuple[str, ...]]:
    """Kind ("Float", "Int" or "Bool") and axes of a field or record of `Rollouts`.

    Raises:
      ValueError: neither a field nor a declared record.
    """
    if name in _AXES:
        return _AXES[name]
    record = record_of(name)
    return record.kind, record.axes


def missing_number(name: str) -> int:
    """The number of rows and tokens for which a field or record is unknown: 0, or -1 for ids."""
    if name in _AXES:
        return -1 if name in ("parent", "branch_position") else 0
    return record_of(name).missing


def is_correct(outcome: Any) -> Any:
    """Whether outcomes in [0, 1] count as correct: more than one half; False if ungraded (NaN)."""
    return outcome > 0.5
