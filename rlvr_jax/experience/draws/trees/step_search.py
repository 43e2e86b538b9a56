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
    """

    state: Any
    outcome: float | None = None
    value: float | None = None


class Searched(NamedTuple):
    """A tree of steps.

    Fields:
      nodes: `value` is the sum of what was backed up.
      states: of the nodes.
      outcome: [M], of terminal nodes, NaN elsewhere.
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

    A leaf that ends an answer is backed up by its outcome (`back_up_sum`) each time it is reached;
    one that does not is expanded, and the first of its new nodes that ends an answer is backed up,
    or nothing is if none does. Unvisited nodes count as the value that a model gave for them, and 0
    without one.

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
    expanded = {0: False}

    def reward(node):
        return told[node] if value_of_end else outcome[node]

    def down(node):
        while True:
            below = children(nodes, node)
            if not len(below):
                return node
            score = upper_confidence(
                nodes.value[below], nodes.visits[below], nodes.visits[node], constant
            )
            score = np.where(nodes.visits[below] > 0, score, np.array(told)[below])
            node = int(below[score.argmax()])

    for _ in range(iterations):
        leaf = down(0)
        if not np.isnan(outcome[leaf]):
            nodes = back_up_sum(nodes, path_to(nodes, leaf), reward(leaf))
            continue
        if expanded.get(leaf) or nodes.depth[leaf] >= depth:
            # A dead end: it counts as a failure, so that the search turns away from it.
            nodes = back_up_sum(nodes, path_to(nodes, leaf), -1.0)
            continue
        expanded[leaf] = True
        found = [one for one in expand(states[leaf]) if one.state is not None]
        if not found:
            nodes = back_up_sum(nodes, path_to(nodes, leaf), -1.0)
            continue
        first = len(nodes)
        nodes = with_nodes(nodes, np.full(len(found), leaf))
        states += [one.state for one in found]
        outcome += [np.nan if one.outcome is None else one.outcome for one in found]
        told += [0.0 if one.value is None else one.value for one in found]
        ends = np.flatnonzero(~np.isnan(outcome[first:]))
        if len(ends):
            end = first + int(ends[0])
            nodes = back_up_sum(nodes, path_to(nodes, end), reward(end))
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
