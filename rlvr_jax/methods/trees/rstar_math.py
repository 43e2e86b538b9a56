"""rStar-Math: search for right answers step by step, and imitate the best traces.

"rStar-Math: Small LLMs Can Master Math Reasoning with Self-Evolved Deep Thinking",
https://github.com/microsoft/rStar (branch rStar-math)

    a node is a step; child chosen by Q + c sqrt(ln N_parent / N), 0 where N = 0
    an end is backed up, ±1, by sum and count along its path
    trained: per problem the 2 right traces of highest mean Q,  loss = mean of -log π

A round of searches and fine-tuning is a step here, and the policy goes on from where it is; the
authors have four rounds over all problems, each from the base. Their steps are text and code, and
end with `<end_of_step>` or `<end_of_code>`: with `code` the Python since the last end of code is
run in the sandbox after each step, what it prints is read behind `<end_of_code>` and not imitated,
and a second error in a row ends a path. Without it steps are texts between empty lines: that is the
default here, as a policy that knows none of the marks writes no code.

From the second round on their search is guided by a process preference model, fine-tuned from the
policy on pairs of sibling steps of the last round. Here, with a `guide_rate`, it is a linear head
on the policy's own hidden state behind a step: after each step of the run it takes a step of Adam
on the loss of the pairs (`sibling_pairs`, `pair_loss`), and the next searches begin with its
values.
"""

from __future__ import annotations

import concurrent
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.experience import experience
from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.draws.asking import THREADS, Driver, Episode
from rlvr_jax.experience.draws.trees.heads import Head, fitted, new_head, states_behind
from rlvr_jax.experience.draws.trees.nodes import (
    Nodes,
    children,
    path_to,
    roots,
    upper_confidence,
    with_nodes,
)
from rlvr_jax.experience.draws.trees.pieces import Pieces
from rlvr_jax.experience.draws.trees.search import graded_ends
from rlvr_jax.experience.draws.trees.turn_pieces import (
    TurnRow,
    answer_turns,
    draw_turn,
    lone_environment,
)
from rlvr_jax.experience.draws.turns import turns
from rlvr_jax.experience.grades import unsaid
from rlvr_jax.experience.parts import Actor, Draw, Stage, Turn
from rlvr_jax.experience.stages.donors.imitate_right import first_of_right, to_imitate
from rlvr_jax.experience.stops import completes
from rlvr_jax.objectives import (
    imitate,
    own_words,
)
from rlvr_jax.objectives.arguments import check_at_least, check_count
from rlvr_jax.objectives.compositions import objective_of_terms
from rlvr_jax.tasks.base import Grade
from rlvr_jax.tools import code_steps
from rlvr_jax.tools.environment import Environment
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import Count, NonNegative, Positive, Temperature
from rlvr_jax.types.parts import part


def back_up_sum(nodes: Nodes, path: np.ndarray, reward: float) -> Nodes:
    """N ← N + 1, v ← v + r on a path: v / N is the mean reward of what went through a node.

    Args:
      path: int [K], each node at most once.
    """
    visits, value = nodes.visits.copy(), nodes.value.copy()
    visits[path] += 1
    value[path] += reward
    return replace(nodes, visits=visits, value=value)


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


StepPairs = Sequence[tuple[int, int, float]]
"""(better step, worse step, weight) each."""


def step_pairs(
    searched: Searched, top: int = 2, lonely: int = 4, margin: float = 0.5
) -> list[StepPairs]:
    """The pairs of each node that has some, as (better node, worse node, weight).

    Q of a step is the mean of what was backed up to it; a step that nothing was backed up to is in
    no pair. It is solved where something right was found behind it, and has failed elsewhere.

    Args:
      top, lonely, margin: as for `sibling_pairs`.
    """
    nodes = searched.nodes
    quality = nodes.value / np.maximum(nodes.visits, 1)
    solved = np.zeros(len(nodes), bool)
    for end in np.flatnonzero(searched.outcome > 0):
        solved[path_to(nodes, int(end))] = True
    found = []
    for node in np.unique(nodes.parent[nodes.parent >= 0]):
        below = children(nodes, int(node))
        below = below[nodes.visits[below] > 0]
        pairs = sibling_pairs(quality[below], solved[below], top, lonely, margin)
        if pairs:
            found.append([(int(below[a]), int(below[b]), weight) for a, b, weight in pairs])
    return found


def pair_gradient(weights: np.ndarray, better: np.ndarray, worse: np.ndarray, share: np.ndarray):
    """Of Σ share · -log σ(s⁺ - s⁻) by w and b of s = w · h + b, [D + 1].

    Args:
      weights: w and b, [D + 1].
      better, worse: hidden states of the steps of each pair, [K, D].
      share: of each pair, [K].
    """
    apart = better - worse
    push = -share / (1 + np.exp(apart @ weights[:-1]))
    return np.append(push @ apart, 0.0)


class Guide:
    """The model at work in a step of a run: a head on the policy's state behind a step."""

    def __init__(self, head: Head, pieces: Pieces, actor: Actor):
        self._head, self._pieces, self._actor = head, pieces, actor
        self._hidden: dict[int, np.ndarray] = {}
        self._pairs: list[list[tuple[int, int, float]]] = []

    def scores(self, drawn: np.ndarray) -> np.ndarray:
        """s of the steps that some pieces are, [n]."""
        hidden = states_behind(self._pieces.batch.take(drawn), self._actor).astype(float)
        self._hidden.update(zip(drawn.tolist(), hidden, strict=True))
        weights = self._head["weights"].astype(float)
        return hidden @ weights[:-1] + weights[-1]

    def see(self, searched: Searched) -> None:
        """Takes the pairs of a tree, whose states say the pieces of their steps (`tip`)."""
        tips = [row.tip for row in searched.states]
        self._pairs += [
            [(tips[a], tips[b], weight) for a, b, weight in pairs] for pairs in step_pairs(searched)
        ]

    def learned(self, rate: float) -> tuple[Head, dict[str, float]]:
        """The head after a step of Adam on all pairs, each node a share of the same weight; with
        the pairs, and how many of them it had in order before."""
        share = 1 / max(len(self._pairs), 1)
        pairs = [pair for own in self._pairs for pair in own]
        told = {"step_pairs": float(len(pairs)), "ordered_pairs": 0.0}
        if not pairs:
            return self._head, told
        better, worse = (np.stack([self._hidden[pair[side]] for pair in pairs]) for side in (0, 1))
        weights = self._head["weights"].astype(float)
        told["ordered_pairs"] = float(np.sum((better - worse) @ weights[:-1] > 0))
        shares = np.array([share * weight for _, _, weight in pairs])
        return fitted(self._head, pair_gradient(weights, better, worse, shares), rate), told


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


@part
def step_tree(
    separator: str = "\n\n",
    candidates: int = 12,
    iterations: int = 48,
    depth: int = 16,
    constant: NonNegative = 2.0,
    traces: int = 2,
    tokens: int | None = None,
    temperature: Positive = 0.7,
    environment: Environment | None = None,
    reply_tokens: Count = 512,
    guide_rate: NonNegative = 0.0,
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
    """
    counts = {"candidates": candidates, "iterations": iterations, "depth": depth, "traces": traces}
    check_count(1, "step_tree", **counts, **({} if tokens is None else {"tokens": tokens}))
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
                    pieces, actor, asks, place, separator, tokens, candidates, driver, guide, told
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
        return Draw(apply, init, fewer=True)
    named |= {"environment": environment.label, "reply_tokens": reply_tokens}
    whole = turns(environment, depth, reply_tokens)
    return replace(
        whole,
        apply=apply,
        init=init,
        evaluation=whole,
        fewer=True,
        writes=whole.writes | {"origin"},
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


@part(by_row=True)
def rejection_sampling() -> Stage:
    """Imitates the right answers of the step, each once, and learns nothing else.

    They are imitated at temperature 1, whatever they were drawn with.

    Reads: outcome. Writes: mask (nothing is on it), supervised, temperature.
    Metrics: imitated_answers (rows).
    """

    def apply(batch, actor, state, turn):
        del actor, turn
        kept = first_of_right(batch)
        heat = np.ones_like(batch.rollouts.temperature)
        return (
            to_imitate(batch.with_rollouts(temperature=heat), kept),
            state,
            {"imitated_answers": float(kept.sum())},
        )

    gives = frozenset({"supervised"})
    return Stage(apply, writes=gives)


def sibling_pairs(
    quality: Float[Array, "N"],
    solved: Bool[Array, "N"],
    top: int = 2,
    lonely: int = 4,
    margin: float = 0.5,
) -> list[tuple[int, int, float]]:
    """Pairs among the children of one node: its best solved steps against its worst failed ones.

    Of the steps through which something was solved the `top` of highest Q are taken, of those
    through which something failed the `top` of lowest Q, `lonely` where the other side has only
    one. A pair is kept if Q differs by at least the margin; its weight is 1 / (n⁺ n⁻) with the
    numbers that were taken, before the margin. So a node counts as one, however many pairs it has.

    Args:
      quality: Q of the steps.
      solved: the step has a solved path; the others have failed.
      top, lonely: as above.
      margin: 0 keeps all pairs of different Q.
    """
    quality = np.asarray(quality, float)
    right, wrong = np.flatnonzero(solved), np.flatnonzero(~np.asarray(solved, bool))
    if not (len(right) and len(wrong)):
        return []
    best = right[np.argsort(-quality[right], kind="stable")]
    worst = wrong[np.argsort(quality[wrong], kind="stable")]
    best = best[: lonely if len(wrong) == 1 else top]
    worst = worst[: lonely if len(right) == 1 else top]
    weight = 1 / (len(best) * len(worst))
    return [
        (int(one), int(other), weight)
        for one in best
        for other in worst
        if quality[one] != quality[other] and quality[one] - quality[other] >= margin
    ]


def pair_loss(
    score: Float[Array, "N"],
    better: Int[Array, "K"],
    worse: Int[Array, "K"],
    weight: Float[Array, "K"],
) -> Float[Array, ""]:
    """Σ weight · -log σ(s⁺ - s⁻).

    Args:
      score: s of each step.
      better, worse: the steps of each pair.
    """
    return jnp.sum(weight * -jax.nn.log_sigmoid(score[better] - score[worse]))


def rstar_math(
    separator: str | None = None,
    candidates: int = 12,
    iterations: int = 48,
    depth: int = 16,
    exploration: float = 2.0,
    traces: int = 2,
    step_tokens: int | None = None,
    temperature: Temperature = 0.7,
    weight: float = 1.0,
    code: bool = False,
    errors: int = 2,
    reply_tokens: int = 512,
    guide_rate: float = 0.0,
) -> Recipe:
    """Imitation of the best right traces of a search over steps.

    Args:
      separator: text that ends a step; None: an empty line, and with code "<end_of_step>".
      candidates: next steps that are drawn in a node.
      iterations: descents of a tree.
      depth: steps of a response at most.
      exploration: of the choice among children (c).
      traces: that are trained of a problem at most.
      step_tokens: of a step at most; None: what is left of the budget.
      weight: of the imitation.
      code: steps may have Python in them, which is run (`code_steps`).
      errors: of code in a row that end a path.
      reply_tokens: of what code prints at most.
      guide_rate: learning rate of the head that guides the search; 0: none does.
    """
    if separator is None:
        separator = "<end_of_step>" if code else "\n\n"
    search = step_tree(
        separator,
        candidates,
        iterations,
        depth,
        exploration,
        traces,
        step_tokens,
        temperature,
        code_steps(separator, errors=errors) if code else None,
        reply_tokens,
        guide_rate,
    )
    learned = imitate(weight, own_words, ("supervised", "origin")) if code else imitate(weight)
    return Recipe(
        objective=objective_of_terms([learned]),
        experience=experience(draw=search, stages=[rejection_sampling()]),
    )


METHOD = Method(
    rstar_math,
    "rStar-Math: Small LLMs Can Master Math Reasoning with Self-Evolved Deep Thinking",
    "https://github.com/microsoft/rStar",
    changes="sampling, selection, surrogate",
    ratio="other",
    left_out="a preference model with weights of its own (here: a head on the policy's states), and"
    " its search at test time; rounds that begin with the base",
    reports=(
        "with search, MATH: Qwen2.5-Math-7B 58.8 to 90.0, Phi3-mini 41.4 to 86.4; AIME24 53.3 %"
    ),
    traps=(
        "values rest on few visits: below some ten the choice of traces is noise; a problem that "
        "is never solved trains nothing; the search costs many times a plain draw; steps need the "
        "separator"
    ),
)
