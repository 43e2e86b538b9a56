"""The nodes of search trees as arrays: parents, numbers of visits, values.

A store holds the trees of all prompts of a step. Other arrays or lists, indexed by the node, hold
the content of nodes: tokens, a tactic, an answer. Back-ups handle one path at a time, because they
do not commute.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from rlvr_jax.experience.draws.trees.segments import Segments
from rlvr_jax.experience.parts import Actor
from rlvr_jax.types import is_correct


@dataclass(frozen=True)
class Nodes:
    """M nodes of some trees, parents before their children.

    Fields:
      tree: int [M], the tree, which is the position of its prompt.
      parent: int [M], a node; -1 for a root.
      depth: int [M], edges from the root.
      stop: int [M], end of the node's tokens in the response; they begin at the parent's end.
      visits: int [M], number of back-ups through the node.
      value: float64 [M], result of the back-ups.
    """

    tree: np.ndarray
    parent: np.ndarray
    depth: np.ndarray
    stop: np.ndarray
    visits: np.ndarray
    value: np.ndarray

    def __len__(self) -> int:
        return len(self.parent)


def roots(number: int) -> Nodes:
    """The roots of some trees, without tokens; visits and values are 0."""
    zero = np.zeros(number, int)
    tree = np.arange(number)
    return Nodes(tree, zero - 1, zero, zero, zero, np.zeros(number))


def with_nodes(nodes: Nodes, parent: np.ndarray, stop: np.ndarray | None = None) -> Nodes:
    """The store with further nodes at the end, in this order.

    Args:
      parent: int [K], nodes of the store.
      stop: int [K], the end of the tokens of each; None: they have none.
    Raises:
      ValueError: a parent is not a node, or a node ends before it begins.
    """
    parent = np.asarray(parent, int)
    if len(parent) and not (parent.min() >= 0 and parent.max() < len(nodes)):
        raise ValueError(
            f"with_nodes: parent must be among the {len(nodes)} nodes, got {parent.tolist()}"
        )
    start = nodes.stop[parent]
    stop = start if stop is None else np.asarray(stop, int)
    if np.any(stop < start):
        raise ValueError(
            f"with_nodes: stop must be at least {start.tolist()}, the stops of the parents, got"
            f" {stop.tolist()}"
        )
    zero = np.zeros(len(parent), int)
    depth = nodes.depth[parent] + 1
    more = Nodes(nodes.tree[parent], parent, depth, stop, zero, np.zeros(len(parent)))
    names = [field.name for field in fields(Nodes)]
    return Nodes(*(np.concatenate([getattr(nodes, n), getattr(more, n)]) for n in names))


def path_to(nodes: Nodes, node: int) -> np.ndarray:
    """The nodes from the root to a node, both included, int [depth + 1]."""
    path = np.empty(nodes.depth[node] + 1, int)
    for place in range(len(path) - 1, -1, -1):
        path[place] = node
        node = nodes.parent[node]
    return path


def children(nodes: Nodes, node: int) -> np.ndarray:
    """The children of a node, in order, int [K]."""
    return np.flatnonzero(nodes.parent == node)


def back_up_mixed(nodes: Nodes, path: np.ndarray, value: float, fraction: float = 0.5) -> Nodes:
    """Sets the leaf's value; upwards q ← (1 - γ) q + γ q_child, with the child's new value.

    Args:
      nodes: of the tree.
      path: int [L + 1], from `path_to`; `visits` of all its nodes increase by one.
      value: in [0, 1], of the leaf.
      fraction: weight of the child, in [0, 1] (γ).
    Source: LLaMA-Berry, as used by Empirical-MCTS.
    """
    visits, found = nodes.visits.copy(), nodes.value.copy()
    visits[path] += 1
    for node in path[::-1]:
        value = value if node == path[-1] else (1 - fraction) * found[node] + fraction * value
        found[node] = value
    return replace(nodes, visits=visits, value=found)


def upper_confidence(
    value: np.ndarray, visits: np.ndarray, parent_visits: np.ndarray | int, constant: float
) -> np.ndarray:
    """v / N + c sqrt(ln N_parent / N), and 0 where N = 0: such nodes get no bonus.

    Args:
      value: sums of rewards v, [...].
      visits, parent_visits: N and N_parent.
      constant: weight of exploration, at least 0 (c).
    """
    count = np.maximum(visits, 1)
    logarithm = np.log(np.maximum(parent_visits, 1))
    return np.where(visits > 0, value / count + constant * np.sqrt(logarithm / count), 0.0)


def graded_ends(
    segments: Segments, actor: Actor, sampled: np.ndarray, terminal: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Whether each segment ends a correct response, and the mean -logp of its sampled tokens.

    Args:
      segments: of the tree.
      actor: grades the responses.
      sampled: int [n], numbers of segments.
      terminal: bool [n], segments that end a response.
    """
    correct = np.zeros(len(sampled), bool)
    if terminal.any():
        graded = actor.grade(segments.batch.take(sampled[terminal]).renumbered())
        correct[terminal] = [is_correct(grade.outcome or 0.0) for grade in graded.grades]
    own = segments.new_tokens(sampled)
    logp = np.where(own, segments.batch.rollouts.behaviour_logp[sampled], 0)
    return correct, -logp.sum(axis=1) / np.maximum(own.sum(axis=1), 1)
