"""Responses that branch where the policy is unsure between words that mean different things."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rlvr_jax.experience.draws.trees.pieces import Pieces, first_samples
from rlvr_jax.experience.parts import Draw
from rlvr_jax.types.hyperparameters import Count, Unit
from rlvr_jax.types.parts import part

__all__ = ["branch_at_best", "diversity", "similarity", "top_entropy"]

Metric = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(entropy [n, T], similarity [n, T]) of the likeliest tokens -> [n, T]: rows branch where
it is largest."""


def top_entropy(topk_logp: np.ndarray) -> np.ndarray:
    """H = -Σ p ln p over the recorded likeliest tokens, not renormalized.

    Args:
      topk_logp: [..., K].
    """
    return -np.sum(np.exp(topk_logp) * topk_logp, axis=-1)


def similarity(topk_logp: np.ndarray, topk_ids: np.ndarray, embeddings: np.ndarray) -> np.ndarray:
    """F = Σ_{i≠j} p_i p_j cos(e_i, e_j) over the likeliest tokens: how alike in meaning they are.

    Args:
      topk_logp, topk_ids: [n, T, K].
      embeddings: [V, D], of any length but 0.
    Returns:
      [n, T].
    """
    unit = embeddings / np.linalg.norm(embeddings, axis=-1, keepdims=True)
    p = np.exp(topk_logp)
    # Row by row: K embeddings of every token at once would not fit.
    sums = [np.einsum("tk,tkd->td", own, unit[ids]) for own, ids in zip(p, topk_ids, strict=True)]
    length = np.array([np.sum(one**2, axis=-1) for one in sums]).reshape(p.shape[:2])
    return length - np.sum(p**2, axis=-1)


def diversity(entropy: np.ndarray, likeness: np.ndarray) -> np.ndarray:
    """M = -F H: many likely tokens that mean different things.

    Where all embeddings point the same way F is positive everywhere, and the largest M is 0, at
    certain tokens: look at its sign before trusting it.
    """
    return -likeness * entropy


@part
def branch_at_best(fresh: Unit = 0.5, metric: Metric = diversity, top: Count = 20) -> Draw:
    """Draws the responses to a prompt one after the other, as branches of earlier ones.

    The first begins at the prompt, and so does each later one with probability `fresh`; else it
    keeps what stands before the place of the largest metric among all tokens that were drawn for
    the prompt, and the token there is drawn again. The same place may be chosen again. Tokens that
    several rows share are trained in each. A step takes as many draws as a prompt has samples.

    Args:
      fresh: probability of a beginning at the prompt (ε).
      metric: of the entropy and the similarity of the likeliest tokens.
      top: so many.
    Metrics: branched_rows, branch_position (mean over them; 0 without any).
    Raises:
      ValueError: a probability outside [0, 1], or top below 1.
    Source: ROSE draws so (the link stands in the method's card).
    """

    def apply(asks, actor, state, turn):
        pieces = Pieces(actor, turn.key, {"record_top": top})
        random, numbered, embeddings = turn.random(), first_samples(asks), actor.embeddings()
        rows: list[list[int]] = [[] for _ in asks]
        places = np.zeros((0, 0))
        cuts = []
        for sample in range(max(ask.samples for ask in asks)):
            begins = random.random(len(asks)) < fresh
            groups = [group for group, ask in enumerate(asks) if sample < ask.samples]
            parent, cut = np.full(len(asks), -1), np.zeros(len(asks), int)
            for group in groups:
                if rows[group] and not begins[group]:
                    own = places[rows[group]]
                    row, place = np.unravel_index(own.argmax(), own.shape)
                    # Before anything was drawn there is nothing to keep.
                    if np.isfinite(own[row, place]) and place > 0:
                        parent[group], cut[group] = rows[group][row], place
            drawn = pieces.draw(
                [asks[group] for group in groups],
                numbered[groups] + sample,
                parent[groups],
                cut[groups],
            )
            cuts += cut[groups][parent[groups] >= 0].tolist()
            places = _with_places(pieces, places, drawn, metric, embeddings)
            for group, piece in zip(groups, drawn, strict=True):
                rows[group].append(int(piece))
        told = {
            "branched_rows": float(len(cuts)),
            "branch_position": float(np.mean(cuts)) if cuts else 0.0,
        }
        return pieces.responses([piece for own in rows for piece in own], asks), state, told

    return Draw(apply)


def _with_places(pieces, places, drawn, metric, embeddings) -> np.ndarray:
    """The metric at every token of every piece's response; -inf where nothing was drawn."""
    rollouts = pieces.batch.rollouts
    logp, ids = rollouts.drawn_topk_logp[drawn], rollouts.drawn_topk_ids[drawn]
    own = metric(top_entropy(logp), similarity(logp, ids, embeddings))
    own = np.where(pieces.new_tokens(drawn), own, -np.inf)
    whole = np.concatenate([places.reshape(-1, own.shape[1]), own])
    # What a piece goes on from has the numbers of when it was drawn.
    source = pieces.source[drawn]
    whole[drawn] = whole[source, np.arange(own.shape[1])[None]]
    return whole
