"""Responses that a Monte Carlo search over reasoning steps finds."""

from __future__ import annotations

import concurrent.futures
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.draws.asking import THREADS, Driver, Episode
from rlvr_jax.experience.draws.trees.heads import new_head
from rlvr_jax.experience.draws.trees.pieces import Pieces
from rlvr_jax.experience.draws.trees.search import graded_ends
from rlvr_jax.experience.draws.trees.step_guide import Guide
from rlvr_jax.experience.draws.trees.step_search import (
    Candidate,
    Searched,
    best_traces,
    search_steps,
)
from rlvr_jax.experience.draws.trees.turn_pieces import (
    TurnRow,
    answer_turns,
    draw_turn,
    lone_environment,
)
from rlvr_jax.experience.draws.turns import turns
from rlvr_jax.experience.grades import unsaid
from rlvr_jax.experience.parts import Actor, Draw, Turn
from rlvr_jax.experience.stops import completes
from rlvr_jax.objectives import describe
from rlvr_jax.objectives.arguments import check_at_least, check_count, check_positive
from rlvr_jax.tasks import Grade
from rlvr_jax.tools import Environment

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
    environment: Environment | None = None,
    reply_tokens: int = 512,
    guide_rate: float = 0.0,
) -> Draw:
    """Searches each prompt's responses step by step (`search_steps`) and gives the best right ones.

    A node is a step: what the policy writes up to a separator. What ends, or uses up the budget,
    is graded, +1 or -1. The rows of a prompt are its `best_traces`, at most as many as the ask has
    samples; where nothing right was found it is one response, an end of the tree if there is one.
    Rows are chosen by their outcomes: they are no samples of the policy.

    With an environment, such as `code_steps`, a step ends behind its `stops`, too. It is asked
    about the step there, as by `turns`, and the next steps go on behind its reply, which is given.
    A step with which it ends the episode with an outcome of 0 has failed, and so has the response;
    one whose reply is lost is taken out of the tree, as nobody knows what it is worth, and without
    any other the prompt has no verdict. A reply without room, and a step of so many tokens that has
    not ended, end the response, cut. Evaluations are drawn by `turns`.

    With a `guide_rate` a head on the policy's hidden state behind a step guides the search: until
    something is backed up to a step it counts as the head's score. The head learns once a step of
    the run from the `step_pairs` of its trees, by one step of Adam, and no gradient goes into the
    policy. The state is D + 1 weights and their moments.

    Args:
      separator: text that ends a step.
      candidates: children of a node.
      iterations: descents of a tree.
      depth: steps of a response at most.
      constant: c of `upper_confidence`.
      traces: rows of a prompt at most.
      tokens: of a step at most; None: what is left of the budget.
      temperature: of the sampler.
      environment: that answers steps, in which each response is alone; None: nobody does.
      reply_tokens: of a reply at most; what is longer loses its middle.
      guide_rate: of Adam; 0: nobody guides.
    Writes: with an environment turn, origin, process_reward, as `turns`.
    Metrics: nodes, solved_prompts; with an environment failed_steps, lost_steps, tool_tokens,
      cut_replies, and the sums of what it counts; with a guide step_pairs, and ordered_pairs,
      those that the head had in order before it learned from them.
    Raises:
      ValueError: a number that is no count, a negative constant, a temperature that is not
        positive, no separator; when a run begins, a game of several players, or a guide where the
        model's width is not known; when it draws, a separator that the tokenizer cannot write.
    Source: rStar-Math draws so (the link stands in the method's card); its guide is a model of its
      own, and its pairs are of texts that differ by 20 edits at least.
    """
    counts = {"candidates": candidates, "iterations": iterations, "depth": depth, "traces": traces}
    check_count(1, "step_tree", **counts, **({} if tokens is None else {"tokens": tokens}))
    check_count(1, "step_tree", reply_tokens=reply_tokens)
    check_at_least(0, "step_tree", constant=constant, guide_rate=guide_rate)
    check_positive("step_tree", temperature=temperature)
    if not separator:
        raise ValueError(f"step_tree: separator must be a text, got {separator!r}")

    def init(setting):
        if environment is not None:
            lone_environment("step_tree", environment, setting.task)
        if not guide_rate:
            return ()
        if setting.width < 1:
            raise ValueError(f"step_tree: Setting.width must be known, got {setting.width}")
        return new_head(setting.width)

    def apply(asks, actor, state, turn):
        if not actor.encode(separator):
            raise ValueError(
                f"step_tree: separator must be a text of the tokenizer's, got {separator!r}"
            )
        how = {"stops": (separator,), "temperature": temperature}
        chosen, told = [], Counter[str]()
        with concurrent.futures.ThreadPoolExecutor(THREADS) as threads:
            driver = None
            if environment is not None:
                driver = Driver(actor, environment, turn, depth, reply_tokens, how, threads)
                how["stops"] = tuple(dict.fromkeys((separator, *driver.stops)))
            pieces = Pieces(actor, turn.key, how)
            guide = Guide(state, pieces, actor) if guide_rate else None
            for place, ask in enumerate(asks):
                tree = _Tree(
                    pieces,
                    actor,
                    asks,
                    place,
                    separator,
                    tokens,
                    candidates,
                    driver,
                    guide,
                    told,
                )
                searched = search_steps(tree.root, tree.expand, iterations, depth, constant)
                if guide is not None:
                    guide.see(searched)
                right = best_traces(searched, min(traces, ask.samples))
                told.update(solved_prompts=bool(right), nodes=len(searched.nodes))
                leaves = [path[-1] for path in right] or [_any_end(searched)]
                own = [searched.states[leaf] for leaf in leaves]
                # Where all steps were lost nothing but the root is left.
                chosen.append([tree.first if row.tip < 0 else row for row in own])
        answered = [replace(ask, samples=len(own)) for ask, own in zip(asks, chosen, strict=True)]
        rows = [row for own in chosen for row in own]
        batch = pieces.responses([row.tip for row in rows], answered)
        batch = replace(batch, asks=[asks[row.group] for row in rows], brought=_brought(rows, turn))
        if guide is not None:
            state, seen = guide.learned(guide_rate)
            told.update(seen)
        return batch, state, {name: float(value) for name, value in told.items()}

    named = {"separator": separator, **counts, "constant": float(constant), "tokens": tokens}
    named |= {"temperature": float(temperature)}
    if guide_rate:
        named["guide_rate"] = guide_rate
    if environment is None:
        return Draw(apply, describe("step_tree", **named), init, fewer=True)
    named |= {"environment": environment.label, "reply_tokens": reply_tokens}
    whole = turns(environment, depth, reply_tokens)
    return replace(
        whole,
        apply=apply,
        label=describe("step_tree", **named),
        init=init,
        evaluation=whole,
        fewer=True,
        gives=whole.gives | {"origin"},
    )


def _brought(rows: Sequence[TurnRow], turn: Turn) -> Sequence[Grade | None]:
    """What is known of rows before the verifier has read them, see `Batch.brought`."""
    if not any(row.lost or row.outcome == 0 for row in rows):
        return ()
    failed = Grade(0.0, 0.0, info=unsaid(turn.setting.task))
    return [Grade(None) if row.lost else failed if row.outcome == 0 else None for row in rows]


class _Tree:
    """What steps of one prompt are made with; a state is the response up to there."""

    def __init__(
        self,
        pieces: Pieces,
        actor: Actor,
        asks: Sequence[Ask],
        place: int,
        separator: str,
        tokens: int | None,
        candidates: int,
        driver: Driver | None,
        guide: Guide | None,
        counts: Counter[str],
    ):
        self.pieces, self.actor, self.asks = pieces, actor, asks
        self.separator, self.tokens, self.candidates = separator, tokens, candidates
        self.driver, self.guide, self.counts = driver, guide, counts
        self.root = TurnRow(place, asks[place].first_sample, episode=Episode(asks[place].prompt))
        self.first = self.root
        self.drawn = 0

    def expand(self, row: TurnRow) -> list[Candidate]:
        """The next steps of a response."""
        # Each node has random numbers of its own.
        first = self.root.sample + self.drawn
        self.drawn += self.candidates
        rows = [row.fork(first + number) for number in range(self.candidates)]
        self.first = rows[0] if row is self.root else self.first
        if self.driver is None:
            drawn = self._written(rows)
        else:
            drawn = draw_turn(self.pieces, self.asks, rows, self.tokens)
        values = [None] * len(rows) if self.guide is None else self.guide.scores(drawn).tolist()
        over = np.zeros(len(rows), bool)
        if self.driver is not None:
            over = self._answered(self.driver, rows)
        failed = np.array([one.outcome == 0 for one in rows])
        lost = np.array([one.lost for one in rows])
        ends = (over | ~self.pieces.goes_on(drawn)) & ~failed & ~lost
        right, _ = graded_ends(self.pieces, self.actor, drawn, ends)
        return [
            Candidate(
                state=None if lost[number] else one,
                outcome=(1.0 if right[number] else -1.0) if ends[number] else None,
                value=values[number],
                failed=bool(failed[number]),
            )
            for number, one in enumerate(rows)
        ]

    def _written(self, rows: Sequence[TurnRow]) -> np.ndarray:
        """The steps as they are, answered by nobody."""
        asks = [self.asks[row.group] for row in rows]
        drawn = self.pieces.draw(
            asks,
            [row.sample for row in rows],
            [row.tip for row in rows],
            [row.cut for row in rows],
            self.tokens,
        )
        length = self.pieces.batch.rollouts.length[drawn]
        for row, piece, cut in zip(rows, drawn, length, strict=True):
            row.tip, row.cut = int(piece), int(cut)
        return drawn

    def _answered(self, driver: Driver, rows: Sequence[TurnRow]) -> np.ndarray:
        """Tells rows what the environment says; gives which are over, bool [n]."""
        answer_turns(driver, self.pieces, self.asks, rows, self.counts)
        self.counts["lost_steps"] += sum(row.lost for row in rows)
        self.counts["failed_steps"] += sum(row.outcome == 0 for row in rows)
        return np.array([not (row.active or self._goes_on(driver, row)) for row in rows])

    def _goes_on(self, driver: Driver, row: TurnRow) -> bool:
        """Whether a step has ended where the environment is not asked."""
        batch = self.pieces.batch
        tokens = batch.rollouts.tokens[row.tip, : row.cut].tolist()
        return self.separator not in driver.stops and completes(
            batch.tokenizer, tokens, (self.separator,)
        )


def _any_end(searched: Searched) -> int:
    """A wrong end; without any the deepest node, the first of equal ones."""
    ends = np.flatnonzero(~np.isnan(searched.outcome))
    if len(ends):
        return int(ends[0])
    return int(searched.nodes.depth.argmax())
