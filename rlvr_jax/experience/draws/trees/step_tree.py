"""Responses that a Monte Carlo search over reasoning steps finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience.draws.trees.pieces import Pieces
from rlvr_jax.experience.draws.trees.search import graded_ends
from rlvr_jax.experience.draws.trees.step_search import (
    Candidate,
    Searched,
    best_traces,
    search_steps,
)
from rlvr_jax.experience.parts import Draw
from rlvr_jax.objectives import describe
from rlvr_jax.objectives.arguments import check_at_least, check_count, check_positive

__all__ = ["step_tree"]


def step_tree(
    separator: str = "\n\n",
    candidates: int = 12,
    iterations: int = 48,
    depth: int = 16,
    constant: float = 2.0,
    traces: int = 2,
    tokens: int | None = None,
    temperature: float = 0.7,
) -> Draw:
    """Searches each prompt's responses step by step (`search_steps`) and gives the best right ones.

    A node is a step: what the policy writes up to a separator. What ends, or uses up the budget,
    is graded, +1 or -1. The rows of a prompt are its `best_traces`, at most as many as the ask has
    samples; where nothing right was found it is one response, an end of the tree if there is one.
    Rows are chosen by their outcomes: they are no samples of the policy.

    Args:
      separator: text that ends a step.
      candidates: children of a node.
      iterations: descents of a tree.
      depth: steps of a response at most.
      constant: c of `upper_confidence`.
      traces: rows of a prompt at most.
      tokens: of a step at most; None: what is left of the budget.
      temperature: of the sampler.
    Metrics: nodes, solved_prompts.
    Raises:
      ValueError: a number that is no count, a negative constant, a temperature that is not
        positive, no separator; when it draws, one that the tokenizer cannot write.
    Source: rStar-Math draws so (the link stands in the method's card), with code run in each step.
    """
    counts = {"candidates": candidates, "iterations": iterations, "depth": depth, "traces": traces}
    check_count(1, "step_tree", **counts, **({} if tokens is None else {"tokens": tokens}))
    check_at_least(0, "step_tree", constant=constant)
    check_positive("step_tree", temperature=temperature)
    if not separator:
        raise ValueError(f"step_tree: separator must be a text, got {separator!r}")

    def apply(asks, actor, state, turn):
        stop = tuple(actor.encode(separator))
        if not stop:
            raise ValueError(
                f"step_tree: separator must be a text of the tokenizer's, got {separator!r}"
            )
        how = {"stop_sequences": (stop,), "temperature": temperature}
        pieces, chosen, nodes, solved = Pieces(actor, turn.key, how), [], 0, 0
        for ask in asks:
            searched = _searched(
                pieces, actor, ask, tokens, candidates, iterations, depth, constant
            )
            right = best_traces(searched, min(traces, ask.samples))
            solved += bool(right)
            nodes += len(searched.nodes)
            leaves = [path[-1] for path in right] or [_any_end(searched)]
            chosen.append([searched.states[leaf] for leaf in leaves])
        answered = [replace(ask, samples=len(own)) for ask, own in zip(asks, chosen, strict=True)]
        batch = pieces.responses([piece for own in chosen for piece in own], answered)
        rows = [ask for ask, own in zip(asks, chosen, strict=True) for _ in own]
        told = {"nodes": float(nodes), "solved_prompts": float(solved)}
        return replace(batch, asks=rows), state, told

    named = {"separator": separator, **counts, "constant": float(constant), "tokens": tokens}
    return Draw(apply, describe("step_tree", **named, temperature=float(temperature)), fewer=True)


def _searched(
    pieces: Pieces, actor, ask, tokens, candidates, iterations, depth, constant
) -> Searched:
    """The tree of one prompt, whose states are pieces; that of the root is none (-1)."""
    drawn_steps = 0

    def expand(piece: int) -> list[Candidate]:
        nonlocal drawn_steps
        cut = 0 if piece < 0 else int(pieces.batch.rollouts.length[piece])
        # Each node has random numbers of its own.
        sample = ask.first_sample + drawn_steps + np.arange(candidates)
        drawn_steps += candidates
        drawn = pieces.draw(
            [ask] * candidates, sample, [piece] * candidates, [cut] * candidates, tokens
        )
        ends = ~pieces.goes_on(drawn)
        right, _ = graded_ends(pieces, actor, drawn, ends)
        return [
            Candidate(int(number), (1.0 if good else -1.0) if end else None)
            for number, end, good in zip(drawn, ends, right, strict=True)
        ]

    return search_steps(-1, expand, iterations, depth, constant)


def _any_end(searched: Searched) -> int:
    """A wrong end; without any the deepest node, the first of equal ones."""
    ends = np.flatnonzero(~np.isnan(searched.outcome))
    if len(ends):
        return int(ends[0])
    return int(searched.nodes.depth.argmax())
