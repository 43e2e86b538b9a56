"""Responses that a Monte Carlo tree search finds, with the values of its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.draws.trees.nodes import (
    Nodes,
    back_up_bounded,
    children,
    path_to,
    roots,
    upper_confidence,
    with_nodes,
)
from rlvr_jax.experience.draws.trees.pieces import Pieces
from rlvr_jax.experience.parts import Actor, Draw
from rlvr_jax.objectives.arguments import check_at_least
from rlvr_jax.types.hyperparameters import Count, NonNegativeInt, Positive
from rlvr_jax.types.parts import part

__all__ = ["frontier_score", "overlong_term", "search_tree", "token_rewards"]


def overlong_term(length: np.ndarray, budget: int, buffer: int) -> np.ndarray:
    """min(-(n - (budget - buffer)) / buffer, 0): the last `buffer` tokens cost up to 1.

    Args:
      length: n, int [R].
    """
    return np.minimum(-(np.asarray(length) - (budget - buffer)) / buffer, 0.0)


def token_rewards(value: np.ndarray, last: np.ndarray, extra: np.ndarray) -> np.ndarray:
    """tanh(v) of the token's node, v itself where that is the last of its path; plus a term of the
    row.

    Args:
      value: v, [R, T].
      last: bool [R, T], tokens of the last node.
      extra: [R].
    """
    return np.where(last, value, np.tanh(value)) + np.asarray(extra)[:, None]


def frontier_score(
    nodes: Nodes, candidates: np.ndarray, levels: int, value_weight: float, depth_weight: float
) -> np.ndarray:
    """w_v tanh(Q_parent) + w_d sqrt(depth / levels) of nodes that may be expanded next, [K].

    Args:
      candidates: int [K], nodes with a parent.
      levels: of the deepest node there can be.
    """
    parent = nodes.parent[candidates]
    quality = nodes.value[parent] / np.maximum(nodes.visits[parent], 1)
    depth = np.sqrt(nodes.depth[candidates] / levels)
    return value_weight * np.tanh(quality) + depth_weight * depth


@part
def search_tree(
    tokens: Count = 256,
    width: Count = 8,
    exploration: float = 2.0,
    least: Positive = 0.1,
    value_weight: float = 0.4,
    depth_weight: float = 0.01,
    overlong: NonNegativeInt = 0,
    most_expansions: Count = 256,
) -> Draw:
    """Searches each prompt's responses as a tree of pieces, for as many as the ask has samples.

    1. An expansion draws the `width` children of a node: so many next pieces of `tokens` tokens. A
       child is terminal if it ends or uses up the budget; terminals are graded.
    2. Of the terminals of an expansion exactly one is backed up (`back_up_bounded`, +1 if it is
       right and -1 if not) and becomes a row: of the right ones, else of all, the one whose own
       tokens had the least mean -logp. The other children are visited once.
    3. Without a terminal the child of highest `upper_confidence` is expanded next, else the node of
       highest `frontier_score` among all that have not been.

    When the tree is done each token is rewarded by its node (`token_rewards`), which is
    `process_reward`. A search whose nodes are all expanded, or that has made `most_expansions`, is
    done with the rows that it has. Rows are chosen by their outcomes: they are no samples of the
    policy, and nothing corrects for that. Their ratios are exact.

    Args:
      tokens: of a node.
      width: children of a node.
      exploration: c of `upper_confidence`.
      least: γ at least, of the back-up.
      value_weight, depth_weight: of `frontier_score`.
      overlong: last tokens of the budget, over which `overlong_term` falls to -1; 0: off.
      most_expansions: of a prompt's tree, at least the levels that a response has.
    Metrics: expansions, nodes, solved_rows.
    Raises:
      ValueError: a number that is no count or negative; when a run begins, too few expansions.
    Source: DeepSearch draws so (the link stands in the method's card).
    """
    weights = {"value_weight": value_weight, "depth_weight": depth_weight}
    check_at_least(0, "search_tree", exploration=exploration, **weights)

    def init(setting):
        levels = -(-setting.response_tokens // tokens)
        if most_expansions < levels:
            raise ValueError(
                f"search_tree: most_expansions must be at least {levels}, the nodes of"
                f" {tokens} tokens in a response of {setting.response_tokens}, got"
                f" {most_expansions}"
            )
        return ()

    def apply(asks, actor, state, turn):
        budget = turn.setting.response_tokens
        levels = -(-budget // tokens)
        pieces = Pieces(actor, turn.key)
        nodes = roots(len(asks))
        # Of each node its piece; whether it was expanded or can never be.
        piece, closed = np.full(len(asks), -1), np.zeros(len(asks), bool)
        current = list(range(len(asks)))
        found: list[list[int]] = [[] for _ in asks]
        solved = expansions = 0
        score = (levels, value_weight, depth_weight)
        for _ in range(most_expansions):
            going = [node for node in current if node >= 0]
            if not going:
                break
            expansions += len(going)
            parents = np.repeat(going, width)
            first = len(nodes)
            before = piece[parents]
            drawn = pieces.draw(
                [asks[tree] for tree in nodes.tree[parents]],
                # Each node has random numbers of its own.
                np.arange(first, first + len(parents)),
                before,
                nodes.stop[parents],
                tokens,
            )
            rollouts = pieces.batch.rollouts
            nodes = with_nodes(nodes, parents, rollouts.length[drawn])
            piece = np.concatenate([piece, drawn])
            terminal = ~pieces.goes_on(drawn)
            closed = np.concatenate([closed, terminal])
            closed[going] = True
            right, unsure = graded_ends(pieces, actor, drawn, terminal)
            for node in going:
                own = children(nodes, node)
                ends = own[terminal[own - first]]
                tree = int(nodes.tree[node])
                chosen = -1
                if len(ends):
                    solves = ends[right[ends - first]]
                    pool = solves if len(solves) else ends
                    chosen = int(pool[unsure[pool - first].argmin()])
                    reward = 1.0 if len(solves) else -1.0
                    nodes = back_up_bounded(nodes, path_to(nodes, chosen), reward, least)
                    found[tree].append(chosen)
                    solved += len(solves) > 0
                others = own[~terminal[own - first]]
                nodes = _visited(nodes, others)
                if len(found[tree]) == asks[tree].samples:
                    current[tree] = -1
                elif chosen < 0:
                    best = upper_confidence(
                        nodes.value[others], nodes.visits[others], nodes.visits[node], exploration
                    )
                    current[tree] = int(others[best.argmax()])
                else:
                    current[tree] = _next(nodes, tree, closed, score)
        answered = [replace(ask, samples=len(own)) for ask, own in zip(asks, found, strict=True)]
        leaves = np.array([node for own in found for node in own], int)
        batch = pieces.responses(piece[leaves], answered)
        batch = _rewarded(batch, pieces, nodes, piece, leaves, overlong)
        rows = [ask for ask, own in zip(asks, found, strict=True) for _ in own]
        told = {"expansions": expansions, "nodes": len(nodes), "solved_rows": solved}
        return replace(batch, asks=rows), state, {n: float(x) for n, x in told.items()}

    named = {"tokens": tokens, "width": width, "exploration": exploration, "least": least}
    named |= {**weights, "overlong": overlong, "most_expansions": most_expansions}
    return Draw(apply, init, writes=frozenset({"process_reward"}), fewer=True)


def _visited(nodes: Nodes, which: np.ndarray) -> Nodes:
    visits = nodes.visits.copy()
    visits[which] += 1
    return replace(nodes, visits=visits)


def _next(nodes: Nodes, tree: int, closed: np.ndarray, score: Sequence[float]) -> int:
    """The node of a tree to expand next, -1 if there is none."""
    open_ones = np.flatnonzero((nodes.tree == tree) & ~closed & (nodes.parent >= 0))
    if not len(open_ones):
        return -1
    return int(open_ones[frontier_score(nodes, open_ones, *score).argmax()])


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


def _rewarded(
    batch: Batch,
    pieces: Pieces,
    nodes: Nodes,
    piece: np.ndarray,
    leaves: np.ndarray,
    overlong: int,
) -> Batch:
    """The rows with a reward at each token that was drawn."""
    rollouts = batch.rollouts
    node_of = np.full(len(pieces), 0)
    made = np.flatnonzero(piece >= 0)
    node_of[piece[made]] = made
    node = node_of[pieces.source[piece[leaves]]]
    budget = rollouts.tokens.shape[1]
    extra = np.zeros(len(leaves))
    if overlong:
        extra = overlong_term(rollouts.length, budget, overlong)
    reward = token_rewards(nodes.value[node], node == leaves[:, None], extra)
    there = rollouts.mask & (np.arange(budget) < rollouts.length[:, None])
    dtype = rollouts.behaviour_logp.dtype
    return batch.with_rollouts(process_reward=np.where(there, reward, 0).astype(dtype))
