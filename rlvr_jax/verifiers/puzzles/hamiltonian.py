"""Hamiltonian paths and cycles: instance {"task", "nodes", "edges", "solvable", "cycle"}.

Edges have no direction. Every path counts; "no path" is correct if there is none, which the
generator proves by dynamic programming over sets of nodes.
"""

import itertools
from collections.abc import Sequence
from random import Random
from typing import Any

from rlvr_jax.verifiers.puzzles.board import Puzzle, puzzle
from rlvr_jax.verifiers.puzzles.notation import is_word, read_numbers

# The smallest and the largest number of nodes.
LEVELS = ((5, 6), (7, 8), (9, 10))
NO_PATH = "no path"
# Puzzles without a solution, and the fraction of possible edges with one and without.
_UNSOLVABLE = 0.25
_EDGES = (0.5, 0.35)


def check(answer: str, gold: dict[str, Any]) -> bool:
    """Whether the path has each node once along edges; a cycle returns to its start."""
    if is_word(answer, NO_PATH):
        return not gold["solvable"]
    path, nodes = read_numbers(answer, (",", "->")), gold["nodes"]
    if path is None:
        return False
    visited = path
    if gold.get("cycle"):
        *visited, last = path
        if nodes < 3 or last != path[0]:
            return False
    edges = {frozenset(edge) for edge in gold["edges"]}
    steps = itertools.pairwise(path)
    return sorted(visited) == list(range(nodes)) and all({*step} in edges for step in steps)


def generate(random: Random, level: int) -> Puzzle:
    """A puzzle of a level from 1 on: a path or a cycle, a quarter of them without a solution."""
    nodes = random.randint(*LEVELS[level - 1])
    cycle = random.random() < 0.5
    solvable = random.random() >= _UNSOLVABLE
    pairs = list(itertools.combinations(range(nodes), 2))
    number = round(_EDGES[not solvable] * len(pairs))
    path = None
    while True:
        edges = sorted(random.sample(pairs, number))
        path = find(nodes, edges, cycle)
        if (path is not None) == solvable:
            break
    kind = (
        "a cycle that visits every node once and comes back to" if cycle else "a path that visits"
    )
    rules = (
        f"In the graph with the nodes 0 to {nodes - 1} and these edges, which can be used in both"
        f" directions, find {kind} " + ("its first node." if cycle else "every node once.")
    )
    form = "the nodes in the order of the visits" + (
        ", the first again at the end" if cycle else ""
    )
    return puzzle(
        "hamiltonian",
        rules,
        "\n".join(f"{a} - {b}" for a, b in edges),
        f"{form}, with blanks between, or the words {NO_PATH} if there is none",
        NO_PATH if path is None else " ".join(map(str, path)),
        nodes=nodes,
        edges=[list(edge) for edge in edges],
        solvable=solvable,
        cycle=cycle,
    )


def find(nodes: int, edges: Sequence[Sequence[int]], cycle: bool) -> list[int] | None:
    """A Hamiltonian path or cycle; None proves that there is none. O(2^nodes · nodes).

    `ends[s]` holds, as bits, the nodes at which a path over the set s of nodes can end.
    """
    near = [0] * nodes
    for a, b in edges:
        near[a] |= 1 << b
        near[b] |= 1 << a
    ends = [0] * (1 << nodes)
    for start in range(1 if cycle else nodes):
        ends[1 << start] = 1 << start
    for visited in range(1, 1 << nodes):
        if visited & (visited - 1):
            for node in range(nodes):
                bit = 1 << node
                if visited & bit and ends[visited ^ bit] & near[node]:
                    ends[visited] |= bit
    visited = (1 << nodes) - 1
    last = ends[visited] & (near[0] if cycle else visited)
    path = [0] if cycle else []
    while last:
        node = last.bit_length() - 1
        path.append(node)
        visited ^= 1 << node
        last = ends[visited] & near[node]
    return path[::-1] if visited == 0 else None
