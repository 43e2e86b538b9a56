"""Monte Carlo search over reasoning steps, for traces and pairs of steps to learn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.experience.draws.trees.nodes import (
    Nodes,
    back_up_sum,
    children,
    path_to,
    roots,
    upper_confidence,
    with_nodes,
)
from rlvr_jax.objectives.arguments import check_at_least, check_count

__all__ = ["Candidate", "Searched", "best_traces", "search_steps"]


class Candidate(NamedTuple):
    """A next step.

    Fields:
      state: what it leads to; its path is dropped where that is None.
      outcome: 1 or -1 where it ends the answer, else None.
      value: what a model gives for it, until it is visited; None: nothing.
      failed: it ends without an answer, and nothing goes on from it.
    """

    state: Any
    outcome: float | None = None
    value: float | None = None
    failed: bool = False


class Searched(NamedTuple):
    """A tree of steps.

    Fields:
      nodes: `value` is the sum of what was backed up.
      states: of the nodes.
      outcome: [M], of nodes that end an answer, NaN elsewhere.
    """

    nodes: Nodes
    states: list[Any]
    outcome: np.ndarray


def search_steps(
    root: Any,
    expand: Callable[[Any], Sequence[Candidate]],
    iterations: int,
    depth: int,
    constant: float = 2.0,
    value_of_end: bool = False,
) -> Searched:
    """Goes down by `upper_confidence`, ties to the first child, expands the leaf, and backs up.

    New nodes that end an answer are backed up by their outcomes (`back_up_sum`), each once. What
    ends without an answer (it has failed, is at the greatest depth, or has no next step) is worth
    -1 itself, and nothing of it is backed up. No descent comes to an end again; one that finds
    nothing but ends below a node is over, and takes the node for one. Unvisited nodes count as the
    value that a model gave for them, and 0 without one.

    Args:
      expand: (state) -> candidates of the next step.
      iterations: descents.
      depth: steps of an answer at most; what is deeper is not expanded.
      constant: c.
      value_of_end: a model's value of an end is backed up in the place of its outcome (at test
        time, where nobody knows the outcome).
    Raises:
      ValueError: a count below 1, or a negative constant.
    Source: rStar-Math, https://github.com/microsoft/rStar (`rstar_deepthink/agents/mcts.py`).
    """
    check_count(1, "search_steps", iterations=iterations, depth=depth)
    check_at_least(0, "search_steps", constant=constant)
    nodes, states = roots(1), [root]
    outcome, told = [np.nan], [0.0]
    ends = [False]

    def down() -> int | None:
        node = 0
        while len(below := children(nodes, node)):
            open_ones = below[~np.array(ends)[below]]
            if not len(open_ones):
                ends[node] = True
                return None
            score = upper_confidence(
                nodes.value[open_ones], nodes.visits[open_ones], nodes.visits[node], constant
            )
            score = np.where(nodes.visits[open_ones] > 0, score, np.array(told)[open_ones])
            node = int(open_ones[score.argmax()])
        return node

    for _ in range(iterations):
        if ends[0]:
            break
        leaf = down()
        if leaf is None:
            continue
        found = [one for one in expand(states[leaf]) if one.state is not None]
        if not found:
            nodes, ends[leaf] = back_up_sum(nodes, np.array([leaf]), -1.0), True
            continue
        first = len(nodes)
        nodes = with_nodes(nodes, np.full(len(found), leaf))
        states += [one.state for one in found]
        outcome += [np.nan if one.outcome is None else one.outcome for one in found]
        told += [0.0 if one.value is None else one.value for one in found]
        for node, one in enumerate(found, first):
            answered = one.outcome is not None
            ends.append(answered or one.failed or nodes.depth[node] >= depth)
            if answered:
                reward = told[node] if value_of_end else outcome[node]
                nodes = back_up_sum(nodes, path_to(nodes, node), reward)
            elif ends[node]:
                nodes = back_up_sum(nodes, np.array([node]), -1.0)
    return Searched(nodes, states, np.array(outcome))


def best_traces(searched: Searched, number: int = 2) -> list[np.ndarray]:
    """The paths to right ends with the highest mean value v / N of their nodes, best first.

    Args:
      number: of paths at most; of equal ones the earlier end.
    """
    nodes = searched.nodes
    quality = nodes.value / np.maximum(nodes.visits, 1)
    ends = np.flatnonzero(searched.outcome > 0)
    paths = [path_to(nodes, int(end)) for end in ends]
    means = np.array([quality[path[1:]].mean() for path in paths])
    return [paths[place] for place in np.argsort(-means, kind="stable")[:number]]
