"""Rollouts with the prompts they answer and the grades they got."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience.prompts import responses
from rlvr_jax.tasks import Grade, Prompt, Response
from rlvr_jax.types import Rollouts, replace

__all__ = ["Graded", "concatenate", "decided"]


def decided(grades: Sequence[Grade]) -> np.ndarray:
    """Which grades are a verdict, bool [B]."""
    return np.array([grade.outcome is not None for grade in grades], bool)


@dataclass(frozen=True)
class Graded:
    """Rollouts as numpy arrays with their prompts and grades, row by row; on every process all.

    `sample_seconds` and `verify_seconds` are wall times.
    """

    rollouts: Rollouts
    prompts: Sequence[Prompt]
    grades: Sequence[Grade]
    tokenizer: Any
    sample_seconds: float
    verify_seconds: float

    @property
    def responses(self) -> list[Response]:
        """All responses as text, decoded when asked for: a process reads its own rows only."""
        return responses(self.tokenizer, self.rollouts)

    @property
    def decided(self) -> np.ndarray:
        """Which rows have a verdict, bool [B]; the outcome and reward of the others are 0."""
        return decided(self.grades)


def concatenate(parts: Sequence[Graded]) -> Graded:
    """One batch of several; rows and groups are numbered anew, in order."""
    if len(parts) == 1:
        return parts[0]
    rollouts = jax.tree.map(lambda *leaves: np.concatenate(leaves), *(p.rollouts for p in parts))
    offsets, start = [], 0
    for part in parts:
        offsets.append(np.full(len(part.prompts), start, np.int32))
        start += int(part.rollouts.group.max()) + 1
    rollouts = replace(
        rollouts,
        group=rollouts.group + np.concatenate(offsets),
        rollout_id=np.arange(len(rollouts.group), dtype=np.int32),
    )
    return Graded(
        rollouts,
        [p for part in parts for p in part.prompts],
        [g for part in parts for g in part.grades],
        parts[0].tokenizer,
        sum(part.sample_seconds for part in parts),
        sum(part.verify_seconds for part in parts),
    )
