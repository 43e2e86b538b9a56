"""Edit distance of ordered, labelled trees: insert, delete and relabel cost 1 each.

The algorithm is Zhang and Shasha's (1989, SIAM J. Comput. 18): distances of all pairs of subtrees,
from the leaves up. A closed form covers a leaf and a tree, which are most pairs of a table.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple


class Tree(NamedTuple):
    """A node with its children in order."""

    label: Hashable
    children: Sequence[Tree] = ()

    def size(self) -> int:
        """Nodes of the tree."""
        return 1 + sum(child.size() for child in self.children)


class _Postorder:
    """Nodes in postorder: labels, the leftmost leaf below each; the roots to start from, and
    for each of them the nodes with the same leftmost leaf."""

    def __init__(self, tree: Tree):
        self.labels: list[Hashable] = []
        self.leftmost: list[int] = []
        self._add(tree)
        last = {first: node for node, first in enumerate(self.leftmost)}
        self.keyroots = sorted(last.values())
        self.paths: dict[int, list[int]] = {root: [] for root in self.keyroots}
        for node, first in enumerate(self.leftmost):
            self.paths[last[first]].append(node)

    def _add(self, tree: Tree) -> int:
        firsts = [self._add(child) for child in tree.children]
        first = firsts[0] if firsts else len(self.labels)
        self.labels.append(tree.label)
        self.leftmost.append(first)
        return first

    def below(self, node: int) -> list[Hashable]:
        return self.labels[self.leftmost[node] : node + 1]


def tree_distance(a: Tree, b: Tree) -> int:
    """The smallest number of insertions, deletions and relabellings from one tree to another.

    Time and memory grow with the product of the sizes; the depth must be small (it recurses).
    """
    x, y = _Postorder(a), _Postorder(b)
    distance = [[0] * len(y.labels) for _ in x.labels]
    for i in x.keyroots:
        for j in y.keyroots:
            if (
                x.leftmost[i] == i
                and y.leftmost[j] == j
                and len(x.paths[i]) == len(y.paths[j]) == 1
            ):
                distance[i][j] = int(x.labels[i] != y.labels[j])
            elif x.leftmost[i] == i or y.leftmost[j] == j:
                for p in x.paths[i]:
                    for q in y.paths[j]:
                        distance[p][q] = _leaf_distance(x.below(p), y.below(q))
            else:
                _forest_distances(x, y, i, j, distance)
    return distance[-1][-1]


def _leaf_distance(a: list[Hashable], b: list[Hashable]) -> int:
    """The distance if one tree is a single node, which stays if its label is in the other tree."""
    return max(len(a), len(b)) - (a[0] in b if len(a) == 1 else b[0] in a)


def _forest_distances(
    x: _Postorder, y: _Postorder, i: int, j: int, distance: list[list[int]]
) -> None:
    """Fills in the distances of the subtrees on the leftmost paths of i and j."""
    first, other = x.leftmost[i], y.leftmost[j]
    width = j - other + 2
    rows = [list(range(width))]
    for p in range(first, i + 1):
        above, row = rows[-1], [p - first + 1]
        whole = x.leftmost[p] == first
        start = rows[x.leftmost[p] - first]  # the forest without the subtree of p
        known, label = distance[p], x.labels[p]
        for q in range(other, j + 1):
            column = q - other + 1
            best = min(above[column], row[-1]) + 1
            if whole and y.leftmost[q] == other:
                best = min(best, above[column - 1] + (label != y.labels[q]))
                known[q] = best
            else:
                best = min(best, start[y.leftmost[q] - other] + known[q])
            row.append(best)
        rows.append(row)
