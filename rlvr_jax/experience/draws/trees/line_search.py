"""Monte Carlo search over the lines of an answer, by tests of whole ones or a model of values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.experience.draws.trees.nodes import Nodes, children, path_to, roots, with_nodes
from rlvr_jax.objectives import upper_confidence, visible_children
from rlvr_jax.objectives.arguments import check_at_least, check_count, check_positive

__all__ = ["Continued", "Lines", "best_whole", "search_lines", "value_targets"]


class Continued(NamedTuple):
    """An answer that was drawn behind some lines.

    Fields:
      line: its first line behind them; equal lines are one node.
      state: what the lines are with that one.
      whole: the whole answer.
      ends: nothing stands behind that line.
    """

    line: Hashable
    state: Any
    whole: Any
    ends: bool


class Lines(NamedTuple):
    """A tree of lines.

    Fields:
      nodes: `value` is the sum of what was backed up; V is value / visits.
      states: of the nodes.
      ends, expanded, visible: bool [M].
      scored: (whole answer, score) of all that were drawn, in order.
    """

    nodes: Nodes
    states: list[Any]
    ends: np.ndarray
    expanded: np.ndarray
    visible: np.ndarray
    scored: list[tuple[Any, float]]


def search_lines(
    root: Any,
    draw: Callable[[Any], Sequence[Continued]],
    score: Callable[[Sequence[Any]], Sequence[float]],
    iterations: int,
    constant: float = 0.2,
    epsilon: float = 0.1,
    decisions: int = 3,
    value: Callable[[Any], float] | None = None,
) -> Lines:
    """Goes down by V + c √((1 + ln N_parent) / (ε + N)), expands the leaf, and backs up.

    Expanding a leaf draws whole answers behind it; their first lines are its children, equal ones
    one child, of which the `decisions` of highest V are seen, of equal ones the first.

    Without `value` the scores of the drawn answers, such as shares of tests that pass, are what
    the leaf is visited with: a visit and a score for each. With it, a child is visited when it is
    made, once for each answer that begins with it, by its own value; the leaf is visited with all
    that its children have. Visits and scores go up to the root. A leaf that ends an answer is
    visited by its score when it is first reached, and by its V from then on.

    Args:
      root: the state of no line.
      draw: (state) -> answers, at least one; of a state without an end.
      score: (whole answers) -> of each what it is worth, by tests or, at test time, by a model.
      iterations: descents.
      constant, epsilon: c and ε.
      decisions: children of a node that are seen.
      value: (state) -> what a model says that it is worth; None: nobody says it.
    Raises:
      ValueError: a count below 1, a negative constant, an ε that is not positive; when called, a
        state behind which nothing was drawn.
    Source: ReST-RL, https://github.com/THUDM/ReST-RL (`algorithms/MCTS/mcts.py`), which breaks ties
      at random.
    """
    check_count(1, "search_lines", iterations=iterations, decisions=decisions)
    check_at_least(0, "search_lines", constant=constant)
    check_positive("search_lines", epsilon=epsilon)
    tree = Lines(roots(1), [root], np.zeros(1, bool), np.zeros(1, bool), np.ones(1, bool), [])
    for _ in range(iterations):
        leaf = _leaf(tree, constant, epsilon)
        if not tree.ends[leaf]:
            tree = _expanded(tree, leaf, draw, score, decisions, value)
            continue
        worth = _values(tree.nodes)[leaf]
        if not tree.nodes.visits[leaf]:
            worth = float(next(iter(score([tree.states[leaf]]))))
        tree = tree._replace(nodes=_backed_up(tree.nodes, leaf, 1, worth))
    return tree


def value_targets(found: Lines) -> list[tuple[Any, float]]:
    """(state, V) of what a model of values learns: nodes that were expanded, and ends that were
    reached."""
    known = found.expanded | (found.ends & (found.nodes.visits > 0))
    worth = _values(found.nodes)
    return [(found.states[node], float(worth[node])) for node in np.flatnonzero(known)]


def best_whole(found: Lines) -> Any:
    """The drawn answer of highest score, of equal ones the first."""
    return max(found.scored, key=lambda one: one[1])[0]


def _values(nodes: Nodes) -> np.ndarray:
    """V of all nodes, 0 where nobody was."""
    return nodes.value / np.maximum(nodes.visits, 1)


def _leaf(tree: Lines, constant: float, epsilon: float) -> int:
    nodes, worth, node = tree.nodes, _values(tree.nodes), 0
    while tree.expanded[node]:
        below = children(nodes, node)
        below = below[tree.visible[below]]
        bound = upper_confidence(
            worth[below], nodes.visits[below], nodes.visits[node], constant, epsilon
        )
        node = int(below[np.argmax(bound)])
    return node


def _expanded(tree: Lines, leaf: int, draw, score, decisions: int, value) -> Lines:
    drawn = list(draw(tree.states[leaf]))
    if not drawn:
        raise ValueError(f"search_lines: draw must give an answer, got none for state {leaf}")
    scores = [float(one) for one in score([one.whole for one in drawn])]
    first = len(tree.nodes)
    own: list[Continued] = []
    places: dict[Hashable, int] = {}
    for one in drawn:
        if one.line not in places:
            places[one.line] = len(own)
            own.append(one)
    nodes = with_nodes(tree.nodes, np.full(len(own), leaf))
    visits, total = len(drawn), sum(scores)
    if value is not None:
        worth = np.array([float(value(one.state)) for one in own])
        number = np.bincount([places[one.line] for one in drawn])
        counts, sums = nodes.visits.copy(), nodes.value.copy()
        counts[first:], sums[first:] = number, number * worth
        nodes = replace(nodes, visits=counts, value=sums)
        total = float(sums[first:].sum())
    expanded = np.concatenate([tree.expanded, np.zeros(len(own), bool)])
    expanded[leaf] = True
    seen = np.asarray(visible_children(_values(nodes)[first:], decisions))
    return Lines(
        _backed_up(nodes, leaf, visits, total),
        tree.states + [one.state for one in own],
        np.concatenate([tree.ends, [one.ends for one in own]]),
        expanded,
        np.concatenate([tree.visible, seen]),
        tree.scored + list(zip((one.whole for one in drawn), scores, strict=True)),
    )


def _backed_up(nodes: Nodes, node: int, visits: int, total: float) -> Nodes:
    """So many visits, and the sum of what they were worth, on the path to a node."""
    counts, sums, path = nodes.visits.copy(), nodes.value.copy(), path_to(nodes, node)
    counts[path] += visits
    sums[path] += total
    return replace(nodes, visits=counts, value=sums)
