"""Responses that a Monte Carlo tree search finds, with the values of its nodes."""

from __future__ import annotations

import numpy as np

from rlvr_jax.experience.draws.trees.pieces import Pieces
from rlvr_jax.experience.parts import Actor

__all__ = []


def graded_ends(
    pieces: Pieces, actor: Actor, drawn: np.ndarray, terminal: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of each piece whether it ends a right response, and the mean -logp of its own tokens."""
    right = np.zeros(len(drawn), bool)
    if terminal.any():
        graded = actor.grade(pieces.batch.take(drawn[terminal]).renumbered())
        right[terminal] = [(grade.outcome or 0.0) > 0.5 for grade in graded.grades]
    own = pieces.new_tokens(drawn)
    logp = np.where(own, pieces.batch.rollouts.behaviour_logp[drawn], 0)
    return right, -logp.sum(axis=1) / np.maximum(own.sum(axis=1), 1)
