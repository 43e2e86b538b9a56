"""Best-first search for a proof, step by step, and what it gives to learn from.

A state is anything hashable; a step proposes tactics and an environment takes them. Nothing here
knows a model: `propose` and `step` are any two callables.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.experience.draws.trees.nodes import Nodes, roots, with_nodes
from rlvr_jax.objectives.arguments import check_at_least, check_count, check_within

__all__ = ["ERROR", "PROVED", "Found", "SubgoalCache", "prove", "tactic_filter"]

PROVED, ERROR = "proved", "error"
OPEN, FAILED = "open", "failed"

Propose = Callable[[Hashable, int], Sequence[tuple[str, float, int]]]
"""(state, n) -> up to n of (tactic, Σ logp of its tokens, their number)."""

Step = Callable[[Hashable, str], Any]
"""(state, tactic) -> another state, `PROVED` or `ERROR`."""


class Found(NamedTuple):
    """What a search has found.

    Fields:
      proof: (state, tactic) from the root to the goal, the shortest one; None without any.
      status: of the root: "proved", "failed" (all that was tried failed) or "open".
      errors: (state, tactic of the proof, tactic that gave an error there): pairs to learn from.
      nodes: `value` is the sum of the steps' mean log-probs.
      states: of the nodes.
      expansions: states that were expanded.
    """

    proof: list[tuple[Hashable, str]] | None
    status: str
    errors: list[tuple[Hashable, str, str]]
    nodes: Nodes
    states: list[Hashable]
    expansions: int


@dataclass
class _Edges:
    """Of a node: its tactics, where each leads (a node, `PROVED` or `ERROR`), who leads here."""

    tactics: list[tuple[str, Any]] = field(default_factory=list)
    parents: set[int] = field(default_factory=set)
    expanded: bool = False


def prove(
    root: Hashable,
    propose: Propose,
    step: Step,
    number: int,
    alpha: float,
    expansions: int,
    banned: Sequence[str] = (),
) -> Found:
    """Searches for a proof, always from the open state with the smallest -S / d^α.

    S is the sum over the path of the tactics' mean log-probs and d its length; α = 0 takes the sum,
    1 the mean, more prefers depth. Tactics are tried in order: repeated ones once, those with a
    banned word not at all; after a proof the others of the state are not. A state that is known is
    not queued again, and keeps S and d of its first path. A state fails when all its tactics do,
    and is proved when one is; both go up along all edges. The search ends when the root is decided,
    when nothing is open, or with the expansions. What `propose` or `step` raise goes through:
    a failure of an engine is no failed tactic.

    Args:
      number: tactics of a state (n).
      alpha: α, at least 0.
      expansions: at most.
      banned: words.
    Raises:
      ValueError: a count below 1, or a negative alpha.
    Source: BFS-Prover-V2, https://github.com/zeyu-zheng/BFS-Prover-V2 (`src/search/proof_tree.py`).
    """
    check_count(1, "prove", number=number, expansions=expansions)
    check_at_least(0, "prove", alpha=alpha)
    nodes, states, place = roots(1), [root], {root: 0}
    edges, status = [_Edges()], [OPEN]
    queue, done = [(0.0, 0)], 0
    while queue and done < expansions and status[0] == OPEN:
        _, node = heapq.heappop(queue)
        if status[node] != OPEN:
            continue
        done += 1
        edges[node].expanded = True
        tried: set[str] = set()
        for tactic, logp, tokens in propose(states[node], number):
            if tactic in tried or any(word in tactic for word in banned):
                continue
            tried.add(tactic)
            after = step(states[node], tactic)
            if after not in (PROVED, ERROR):
                if after not in place:
                    place[after] = len(states)
                    nodes = with_nodes(nodes, np.array([node]))
                    value = nodes.value.copy()
                    value[-1] = value[node] + logp / max(tokens, 1)
                    nodes = replace(nodes, value=value)
                    states.append(after)
                    edges.append(_Edges())
                    status.append(OPEN)
                    key = -value[-1] / nodes.depth[-1] ** alpha
                    heapq.heappush(queue, (float(key), place[after]))
                edges[place[after]].parents.add(node)
                after = place[after]
            edges[node].tactics.append((tactic, after))
            if after == PROVED:
                break
        _pass_up(node, edges, status)
    return _found(nodes, states, edges, status, done)


def _state_of(edge: _Edges, status: Sequence[str]) -> str:
    after = [to if isinstance(to, str) else status[to] for _, to in edge.tactics]
    if PROVED in after:
        return PROVED
    failed = all(one in (ERROR, FAILED) for one in after)
    return FAILED if edge.expanded and failed else OPEN


def _pass_up(node: int, edges: list[_Edges], status: list[str]) -> None:
    """Decides a state and those that lead to it, as far as they are."""
    todo = [node]
    while todo:
        one = todo.pop()
        found = _state_of(edges[one], status)
        if found != status[one]:
            status[one] = found
            todo += sorted(edges[one].parents)


def _found(nodes, states, edges, status, done) -> Found:
    if status[0] != PROVED:
        return Found(None, status[0], [], nodes, states, done)
    # Distances from the goal, shorter ones first; a cycle is never the shortest way.
    distance = {}
    while 0 not in distance:
        reached = {
            node: 1 + min(known)
            for node, edge in enumerate(edges)
            if node not in distance
            and (
                known := [
                    0 if to == PROVED else distance[to]
                    for _, to in edge.tactics
                    if to == PROVED or to in distance
                ]
            )
        }
        distance |= reached
    proof, errors, node = [], [], 0
    while True:
        ways = [
            (0 if to == PROVED else distance[to], order, tactic, to)
            for order, (tactic, to) in enumerate(edges[node].tactics)
            if to == PROVED or to in distance
        ]
        _, _, tactic, to = min(ways, key=lambda way: way[:2])
        proof.append((states[node], tactic))
        wrong = [other for other, after in edges[node].tactics if after == ERROR]
        errors += [(states[node], tactic, other) for other in wrong]
        if to == PROVED:
            return Found(proof, status[0], errors, nodes, states, done)
        node = to


def tactic_filter(surprise: np.ndarray, low: float = 0.1, high: float = 0.9) -> np.ndarray:
    """Which steps of a round are trained: those between two quantiles of x = -mean logp, bool [M].

    Steps that the policy is certain of teach nothing, very surprising ones are noisy; quantiles
    interpolate linearly. Remove duplicates first. The quantiles are ours.

    Args:
      surprise: x, [M].
      low, high: shares, 0 ≤ low ≤ high ≤ 1.
    """
    check_within(0, 1, "tactic_filter", low=low, high=high)
    if low > high:
        raise ValueError(f"tactic_filter: low must be at most high {high}, got {low}")
    surprise = np.asarray(surprise, float)
    if not len(surprise):
        return np.zeros(0, bool)
    below, above = np.quantile(surprise, [low, high])
    return (surprise >= below) & (surprise <= above)


class SubgoalCache:
    """What several provers of one statement have proved of its K subgoals, in order.

    Fields:
      subgoals: K.
      pieces: proofs of the first ones.
    """

    def __init__(self, subgoals: int):
        check_count(0, "SubgoalCache", subgoals=subgoals)
        self.subgoals: int = subgoals
        self.pieces: list[Any] = []

    @property
    def progress(self) -> int:
        """Subgoals that are proved; the next prover begins here."""
        return len(self.pieces)

    def put(self, subgoal: int, piece: Any) -> bool:
        """Takes the proof of a subgoal if it is the next one; whether it did."""
        accepted = subgoal == self.progress < self.subgoals
        if accepted:
            self.pieces.append(piece)
        return accepted

    def replanned(self, plan: Sequence[str], before: Sequence[str]) -> bool:
        """Takes a new plan if it keeps the proved subgoals as they were; whether it did.

        Args:
          plan: all subgoals of the new plan.
          before: those of the old one.
        """
        kept = list(plan[: self.progress]) == list(before[: self.progress])
        accepted = kept and len(plan) >= self.progress
        if accepted:
            self.subgoals = len(plan)
        return accepted

    def clear(self) -> None:
        """Forgets all pieces: the whole proof did not hold."""
        self.pieces = []
