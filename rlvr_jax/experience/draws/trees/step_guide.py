"""A model of which step is better, which guides a search and learns from its trees."""

from __future__ import annotations

import numpy as np

from rlvr_jax.experience.draws.trees.heads import Head, fitted, states_behind
from rlvr_jax.experience.draws.trees.nodes import children, path_to
from rlvr_jax.experience.draws.trees.pieces import Pieces
from rlvr_jax.experience.draws.trees.step_search import Searched
from rlvr_jax.experience.parts import Actor
from rlvr_jax.objectives import StepPairs, sibling_pairs

__all__ = ["Guide", "pair_gradient", "step_pairs"]


def step_pairs(
    searched: Searched, top: int = 2, lonely: int = 4, margin: float = 0.5
) -> list[StepPairs]:
    """The pairs of each node that has some, as (better node, worse node, weight).

    Q of a step is the mean of what was backed up to it; a step that nothing was backed up to is in
    no pair. It is solved where something right was found behind it, and has failed elsewhere.

    Args:
      top, lonely, margin: as for `sibling_pairs`.
    """
    nodes = searched.nodes
    quality = nodes.value / np.maximum(nodes.visits, 1)
    solved = np.zeros(len(nodes), bool)
    for end in np.flatnonzero(searched.outcome > 0):
        solved[path_to(nodes, int(end))] = True
    found = []
    for node in np.unique(nodes.parent[nodes.parent >= 0]):
        below = children(nodes, int(node))
        below = below[nodes.visits[below] > 0]
        pairs = sibling_pairs(quality[below], solved[below], top, lonely, margin)
        if pairs:
            found.append([(int(below[a]), int(below[b]), weight) for a, b, weight in pairs])
    return found


def pair_gradient(weights: np.ndarray, better: np.ndarray, worse: np.ndarray, share: np.ndarray):
    """Of Σ share · -log σ(s⁺ - s⁻) by w and b of s = w · h + b, [D + 1].

    Args:
      weights: w and b, [D + 1].
      better, worse: hidden states of the steps of each pair, [K, D].
      share: of each pair, [K].
    """
    apart = better - worse
    push = -share / (1 + np.exp(apart @ weights[:-1]))
    return np.append(push @ apart, 0.0)


class Guide:
    """The model at work in a step of a run: a head on the policy's state behind a step."""

    def __init__(self, head: Head, pieces: Pieces, actor: Actor):
        self._head, self._pieces, self._actor = head, pieces, actor
        self._hidden: dict[int, np.ndarray] = {}
        self._pairs: list[list[tuple[int, int, float]]] = []

    def scores(self, drawn: np.ndarray) -> np.ndarray:
        """s of the steps that some pieces are, [n]."""
        hidden = states_behind(self._pieces.batch.take(drawn), self._actor).astype(float)
        self._hidden.update(zip(drawn.tolist(), hidden, strict=True))
        weights = self._head["weights"].astype(float)
        return hidden @ weights[:-1] + weights[-1]

    def see(self, searched: Searched) -> None:
        """Takes the pairs of a tree, whose states say the pieces of their steps (`tip`)."""
        tips = [row.tip for row in searched.states]
        self._pairs += [
            [(tips[a], tips[b], weight) for a, b, weight in pairs] for pairs in step_pairs(searched)
        ]

    def learned(self, rate: float) -> tuple[Head, dict[str, float]]:
        """The head after a step of Adam on all pairs, each node a share of the same weight; with
        the pairs, and how many of them it had in order before."""
        share = 1 / max(len(self._pairs), 1)
        pairs = [pair for own in self._pairs for pair in own]
        told = {"step_pairs": float(len(pairs)), "ordered_pairs": 0.0}
        if not pairs:
            return self._head, told
        better, worse = (np.stack([self._hidden[pair[side]] for pair in pairs]) for side in (0, 1))
        weights = self._head["weights"].astype(float)
        told["ordered_pairs"] = float(np.sum((better - worse) @ weights[:-1] > 0))
        shares = np.array([share * weight for _, _, weight in pairs])
        return fitted(self._head, pair_gradient(weights, better, worse, shares), rate), told
