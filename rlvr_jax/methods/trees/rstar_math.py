"""rStar-Math: searches for correct responses step by step, and imitates the best traces.

"rStar-Math: Small LLMs Can Master Math Reasoning with Self-Evolved Deep Thinking",
https://github.com/microsoft/rStar (branch rStar-math)

    a node is a step; child chosen by Q + c sqrt(ln N_parent / N), 0 where N = 0
    an end is backed up, ±1, by sum and count along its path
    trained: per problem the 2 correct traces of highest mean Q,  loss = mean of -log π

Here a round of search and fine-tuning is one training step, and the policy continues from its
current weights. The authors have four rounds over all problems, each from the base model. Their
steps are text and code, and end with `<end_of_step>` or `<end_of_code>`. With `code`, the Python
since the last end of code runs in the sandbox after each step. Its output follows `<end_of_code>`
and is not imitated, and a second error in a row ends a path. By default, steps are texts between
empty lines, because an untrained policy does not write the marks.

From the second round on, a process preference model guides the authors' search. It is fine-tuned
from the policy on pairs of sibling steps of the last round. Here it is a linear head on the hidden
state of the policy after a step. After each training step, Adam (`guide_rate`) updates it on the
loss of the pairs, Σ weight · -log σ(s⁺ - s⁻) (`sibling_pairs`). It guides the next searches.

Left out: a separate preference model, and its search at test time; rounds from the base model.
Reports: MATH with search, in %: Qwen2.5-Math-7B 58.8 to 90.0, Phi3-mini 41.4 to 86.4. AIME24 53.3.
Traps: A node that fewer than about ten searches reach has a noisy value, and the choice of traces
is noise. Problems that are never solved do not train. The search costs many times plain sampling.
Steps require the separator.
"""

from __future__ import annotations

import concurrent
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float

from rlvr_jax.arguments import check_each
from rlvr_jax.experience import Actor, Draw, SampleRequest, Stage, StepContext, experience, turns
from rlvr_jax.experience.draws.asking import THREADS, Driver, Episode, environment_of
from rlvr_jax.experience.draws.trees.branching import advance
from rlvr_jax.experience.draws.trees.heads import Head, fitted, new_head, states_behind
from rlvr_jax.experience.draws.trees.nodes import (
    Nodes,
    children,
    graded_ends,
    path_to,
    roots,
    upper_confidence,
    with_nodes,
)
from rlvr_jax.experience.draws.trees.segments import Segments
from rlvr_jax.experience.draws.trees.turn_segments import TurnRow, answer_turns, draw_turn
from rlvr_jax.experience.grades import unsaid
from rlvr_jax.experience.stages.donors.imitate_correct import first_of_correct, to_imitate
from rlvr_jax.experience.stops import completes
from rlvr_jax.objectives import imitate, objective_of_terms, own_words
from rlvr_jax.tools import code_steps
from rlvr_jax.tools.environment import Environment
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import Count, NonNegative, ReplyTokens, Temperature
from rlvr_jax.types.parts import part
from rlvr_jax.verifiers.grade import Grade


class Searched(NamedTuple):
    """A tree of steps.

    Fields:
      nodes: `value` is the sum of the backed-up rewards.
      states: states of the nodes.
      outcome: outcomes of nodes that end a response, NaN elsewhere, [M].
      guided: choices of a child that are other ones without the model's values.
    """

    nodes: Nodes
    states: list[Any]
    outcome: np.ndarray
    guided: int


class Candidate(NamedTuple):
    """A next step.

    Fields:
      state: the state after it. None: its path is dropped.
      outcome: 1 or -1 where it ends the response, else None.
      value: value from a model, used until the step is visited. None: no model.
      failed: it ends without an answer, and is never expanded.
    """

    state: Any
    outcome: float | None = None
    value: float | None = None
    failed: bool = False


@part
def step_tree(
    separator: str = "\n\n",
    candidates: Count = 12,
    iterations: Count = 48,
    depth: Count = 16,
    exploration: NonNegative = 2.0,
    traces: Count = 2,
    step_tokens: Count | None = None,
    temperature: Temperature = 0.7,
    environment: Environment | None = None,
    reply_tokens: ReplyTokens = 512,
    guide_rate: NonNegative = 0.0,
) -> Draw:
    """Searches each prompt's responses step by step (`search_steps`), for the best correct ones.

    A node is a step: the policy's text up to a separator. Responses that end or use up the budget
    are graded, +1 or -1. The rows of a prompt are its `best_traces`, at most as many as the request
    has samples. Without a correct response the prompt has one row, an end of the tree if there is
    one. Rows are selected by their outcomes: they are not samples of the policy.

    With an environment, such as `code_steps`, a step also ends after its `stops`. The environment
    replies to the step as in `turns`, and the next steps continue after its reply, which is given.
    A step that ends the episode with an outcome of 0 has failed, and so has the response. A step
    whose reply is lost is removed from the tree, because its value is unknown; without any other
    step the prompt is ungraded. A reply that does not fit, and a step of `step_tokens` tokens
    that has not ended, truncate the response. Evaluations sample by `turns`.

    With a `guide_rate`, a head on the policy's hidden state after a step guides the search. Its
    score is the value of an unvisited step. After each training step the head takes one step of
    Adam on the `step_pairs` of its trees, without a gradient into the policy. The state is D + 1
    weights and their moments.

    Args:
      separator: text that ends a step.
      candidates: number of next steps that are sampled at a node.
      iterations: number of descents of a tree.
      depth: maximum number of steps of a response.
      exploration: weight of exploration in the choice among children (c).
      traces: maximum number of trained traces of a problem.
      step_tokens: maximum number of tokens of a step. None: the rest of the budget.
      environment: replies to steps; each response has its own episode. None: no replies.
      guide_rate: learning rate of the head that guides the search; 0: no guide.
    Writes: with an environment turn, origin, process_reward, as `turns`.
    Metrics: nodes (nodes of all trees), solved_prompts (prompts), failed_steps, lost_steps (steps
      that an environment ends incorrect or ungraded), tool_tokens (tokens of replies), cut_replies
      (replies that do not fit), step_pairs, ordered_pairs (with a guide: pairs of steps, and pairs
      that the head had in order before its step), guided_choices (with a guide: choices of a child
      that are other ones without it); those of the environment.
    Raises:
      ValueError: no separator; when a run begins, a game of several players, or a guide and an
        unknown model width; when it samples, a separator that the tokenizer cannot write.
    """
    if not separator:
        raise ValueError(f"step_tree: separator must be a text, got {separator!r}")

    def init(setting):
        if environment is not None:
            environment_of("step_tree", environment, setting.task, alone=True)
        if not guide_rate:
            return ()
        if setting.width < 1:
            raise ValueError(f"step_tree: RunInfo.width must be known, got {setting.width}")
        return new_head(setting.width)

    def apply(requests, actor, state, turn):
        if not actor.encode(separator):
            raise ValueError(
                f"step_tree: separator must be a text of the tokenizer's, got {separator!r}"
            )
        how = {"stops": (separator,), "temperature": temperature}
        chosen, counts = [], Counter[str]()
        with concurrent.futures.ThreadPoolExecutor(THREADS) as threads:
            driver = None
            if environment is not None:
                driver = Driver(actor, environment, turn, depth, reply_tokens, how, threads)
                how["stops"] = tuple(dict.fromkeys((separator, *driver.stops)))
                counts = driver.counts
            segments = Segments(actor, turn.key, how)
            guide = Guide(state, segments, actor) if guide_rate else None
            for place, request in enumerate(requests):
                tree = _Tree(
                    segments,
                    actor,
                    requests,
                    place,
                    separator,
                    step_tokens,
                    candidates,
                    driver,
                    guide,
                )
                searched = search_steps(tree.root, tree.expand, iterations, depth, exploration)
                if guide is not None:
                    guide.see(searched)
                    counts.update(guided_choices=searched.guided)
                correct = best_traces(searched, min(traces, request.samples))
                counts.update(solved_prompts=bool(correct), nodes=len(searched.nodes))
                # Without a correct end an incorrect one, without any the deepest node.
                ends = np.flatnonzero(~np.isnan(searched.outcome))
                other = ends[0] if len(ends) else searched.nodes.depth.argmax()
                leaves = [path[-1] for path in correct] or [other]
                own = [searched.states[leaf] for leaf in leaves]
                # If all steps were lost only the root is left.
                chosen.append([tree.first if row.tip < 0 else row for row in own])
        answered = [
            replace(request, samples=len(own))
            for request, own in zip(requests, chosen, strict=True)
        ]
        rows = [row for own in chosen for row in own]
        batch = segments.responses([row.tip for row in rows], answered)
        batch = replace(
            batch, requests=[requests[row.group] for row in rows], brought=_brought(rows, turn)
        )
        if guide is not None:
            state, seen = guide.learned(guide_rate)
            counts.update(seen)
        return batch, state, {name: float(value) for name, value in counts.items()}

    if environment is None:
        return Draw(apply, init, fewer=True)
    whole = turns(environment, depth, reply_tokens)
    return replace(
        whole,
        apply=apply,
        init=init,
        evaluation=whole,
        fewer=True,
        writes=whole.writes | {"origin"},
    )


def _brought(rows: Sequence[TurnRow], turn: StepContext) -> Sequence[Grade | None]:
    """Grades of rows that are known before the verifier, see `Batch.brought`."""
    episodes = [row.episode for row in rows]
    if not any(one.lost or one.outcome == 0 for one in episodes):
        return ()
    failed = Grade(0.0, 0.0, info=unsaid(turn.setting.task))
    return [Grade(None) if one.lost else failed if one.outcome == 0 else None for one in episodes]


@dataclass
class _Tree:
    """Expands the steps of one prompt; a state is the response up to there."""

    segments: Segments
    actor: Actor
    requests: Sequence[SampleRequest]
    place: int
    separator: str
    tokens: int | None
    candidates: int
    driver: Driver | None
    guide: Guide | None

    def __post_init__(self) -> None:
        request = self.requests[self.place]
        self.root = TurnRow(self.place, request.first_sample, episode=Episode(request.prompt))
        self.first, self.sampled = self.root, 0

    def expand(self, row: TurnRow) -> list[Candidate]:
        """The next steps of a response."""
        # Each node has separate random numbers.
        first = self.root.sample + self.sampled
        self.sampled += self.candidates
        rows = [row.fork(first + number) for number in range(self.candidates)]
        self.first = rows[0] if row is self.root else self.first
        write = advance if self.driver is None else draw_turn
        expanded = write(self.segments, self.requests, rows, self.tokens)
        values = [None] * len(rows) if self.guide is None else self.guide.scores(expanded).tolist()
        over = np.zeros(len(rows), bool)
        if self.driver is not None:
            answer_turns(self.driver, self.segments, self.requests, rows)
            over = np.array([not (one.active or self._goes_on(one)) for one in rows])
        failed = np.array([one.episode.outcome == 0 for one in rows])
        lost = np.array([one.episode.lost for one in rows])
        if self.driver is not None:
            self.driver.counts.update(lost_steps=lost.sum(), failed_steps=failed.sum())
        ends = (over | ~self.segments.goes_on(expanded)) & ~failed & ~lost
        correct, _ = graded_ends(self.segments, self.actor, expanded, ends)
        return [
            Candidate(
                state=None if lost[number] else one,
                outcome=(1.0 if correct[number] else -1.0) if ends[number] else None,
                value=values[number],
                failed=bool(failed[number]),
            )
            for number, one in enumerate(rows)
        ]

    def _goes_on(self, row: TurnRow) -> bool:
        """True if a step has ended at a separator without an environment call."""
        batch = self.segments.batch
        tokens = batch.rollouts.tokens[row.tip, : row.cut].tolist()
        return self.separator not in self.driver.stops and completes(
            batch.tokenizer, tokens, (self.separator,)
        )


def search_steps(
    root: Any,
    expand: Callable[[Any], Sequence[Candidate]],
    iterations: int,
    depth: int,
    constant: float = 2.0,
    value_of_end: bool = False,
) -> Searched:
    """Descends by `upper_confidence`, ties to the first child, expands the leaf, and backs up.

    New nodes that end a response are backed up by their outcomes (`back_up_sum`), each once. A node
    may end without an answer: it failed, is at the greatest depth, or has no next step. It then
    gets -1 itself, and nothing is backed up. No descent visits an end again. A descent that finds
    only ends below a node stops, and marks the node as an end. Unvisited nodes have the value of
    the model, or 0 without one.

    Args:
      root: state before the first step.
      expand: (state) -> candidates of the next step.
      iterations: number of descents.
      depth: maximum number of steps of a response; deeper nodes are not expanded.
      constant: weight of exploration in the choice among children, at least 0 (c).
      value_of_end: ends are backed up by the model's value instead of the outcome (at test time,
        where the outcome is unknown).
    Raises:
      ValueError: a count below 1, or a negative constant.
    """
    check_each(Count, "search_steps", iterations=iterations, depth=depth)
    check_each(NonNegative, "search_steps", constant=constant)
    nodes, states = roots(1), [root]
    outcome, values = [np.nan], [0.0]
    ends, guided = [False], 0

    def down() -> int | None:
        nonlocal guided
        node = 0
        while len(below := children(nodes, node)):
            open_ones = below[~np.array(ends)[below]]
            if not len(open_ones):
                ends[node] = True
                return None
            score = upper_confidence(
                nodes.value[open_ones], nodes.visits[open_ones], nodes.visits[node], constant
            )
            fresh = nodes.visits[open_ones] == 0
            best = np.where(fresh, np.array(values)[open_ones], score).argmax()
            guided += best != np.where(fresh, 0, score).argmax()
            node = int(open_ones[best])
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
        values += [0.0 if one.value is None else one.value for one in found]
        for node, one in enumerate(found, first):
            answered = one.outcome is not None
            ends.append(answered or one.failed or nodes.depth[node] >= depth)
            if answered:
                reward = values[node] if value_of_end else outcome[node]
                nodes = back_up_sum(nodes, path_to(nodes, node), reward)
            elif ends[node]:
                nodes = back_up_sum(nodes, np.array([node]), -1.0)
    return Searched(nodes, states, np.array(outcome), int(guided))


def back_up_sum(nodes: Nodes, path: np.ndarray, reward: float) -> Nodes:
    """N ← N + 1, v ← v + r on a path: v / N is the mean backed-up reward of a node.

    Args:
      path: int [K], each node at most once.
    """
    visits, value = nodes.visits.copy(), nodes.value.copy()
    visits[path] += 1
    value[path] += reward
    return replace(nodes, visits=visits, value=value)


def best_traces(searched: Searched, number: int = 2) -> list[np.ndarray]:
    """The paths to correct ends with the highest mean value v / N of their nodes, best first.

    Args:
      number: maximum number of paths; of equal ones the earlier end.
    """
    nodes = searched.nodes
    quality = nodes.value / np.maximum(nodes.visits, 1)
    ends = np.flatnonzero(searched.outcome > 0)
    paths = [path_to(nodes, int(end)) for end in ends]
    means = np.array([quality[path[1:]].mean() for path in paths])
    return [paths[place] for place in np.argsort(-means, kind="stable")[:number]]


class Guide:
    """A head on the policy's hidden state after a step, for the searches of one training step."""

    def __init__(self, head: Head, segments: Segments, actor: Actor):
        self._head, self._segments, self._actor = head, segments, actor
        self._hidden: dict[int, np.ndarray] = {}
        self._pairs: list[list[tuple[int, int, float]]] = []

    def scores(self, expanded: np.ndarray) -> np.ndarray:
        """s of the steps of some chunks, [n]."""
        hidden = states_behind(self._segments.batch.take(expanded), self._actor).astype(float)
        self._hidden.update(zip(expanded.tolist(), hidden, strict=True))
        weights = self._head["weights"].astype(float)
        return hidden @ weights[:-1] + weights[-1]

    def see(self, searched: Searched) -> None:
        """Adds the pairs of a tree, whose states name the chunks of their steps (`tip`)."""
        tips = [row.tip for row in searched.states]
        self._pairs += [
            [(tips[a], tips[b], weight) for a, b, weight in pairs] for pairs in step_pairs(searched)
        ]

    def learned(self, rate: float) -> tuple[Head, dict[str, float]]:
        """The head after a step of Adam on all pairs, and its metrics.

        Each node has the same weight. `ordered_pairs` counts pairs that were in order before the
        step.
        """
        fraction = 1 / max(len(self._pairs), 1)
        pairs = [pair for own in self._pairs for pair in own]
        metrics = {"step_pairs": float(len(pairs)), "ordered_pairs": 0.0}
        if not pairs:
            return self._head, metrics
        better, worse = (np.stack([self._hidden[pair[side]] for pair in pairs]) for side in (0, 1))
        weights = self._head["weights"].astype(float)
        metrics["ordered_pairs"] = float(np.sum((better - worse) @ weights[:-1] > 0))
        fractions = np.array([fraction * weight for _, _, weight in pairs])
        return fitted(self._head, pair_gradient(weights, better, worse, fractions), rate), metrics


def step_pairs(searched: Searched, margin: float = 0.5) -> list[list[tuple[int, int, float]]]:
    """The pairs of each node that has some, as (better node, worse node, weight).

    Q of a step is the mean of its backed-up rewards; unvisited steps are in no pair. A step is
    solved if a correct end follows it, and has failed otherwise.

    Args:
      margin: as for `sibling_pairs`.
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
        pairs = sibling_pairs(quality[below], solved[below], margin=margin)
        if pairs:
            found.append([(int(below[a]), int(below[b]), weight) for a, b, weight in pairs])
    return found


def sibling_pairs(
    quality: Float[Array, "N"],
    solved: Bool[Array, "N"],
    top: int = 2,
    lonely: int = 4,
    margin: float = 0.5,
) -> list[tuple[int, int, float]]:
    """Pairs among the children of one node: its best solved steps against its worst failed ones.

    It takes the `top` solved steps of highest Q and the `top` failed steps of lowest Q.
    If the other side has only one, `lonely` are taken. A pair requires a difference of Q of at
    least the margin. Its weight is 1 / (n⁺ n⁻) with the numbers before the margin, so every node
    has the same weight.

    Args:
      quality: Q of the steps.
      solved: the step has a solved path; the others have failed.
      top, lonely: see above.
      margin: 0: all pairs of different Q.
    """
    quality = np.asarray(quality, float)
    correct, incorrect = np.flatnonzero(solved), np.flatnonzero(~np.asarray(solved, bool))
    if not (len(correct) and len(incorrect)):
        return []
    best = correct[np.argsort(-quality[correct], kind="stable")]
    worst = incorrect[np.argsort(quality[incorrect], kind="stable")]
    best = best[: lonely if len(incorrect) == 1 else top]
    worst = worst[: lonely if len(correct) == 1 else top]
    weight = 1 / (len(best) * len(worst))
    return [
        (int(one), int(other), weight)
        for one in best
        for other in worst
        if quality[one] != quality[other] and quality[one] - quality[other] >= margin
    ]


def pair_gradient(
    weights: np.ndarray, better: np.ndarray, worse: np.ndarray, fraction: np.ndarray
) -> np.ndarray:
    """The gradient of Σ fraction · -log σ(s⁺ - s⁻) by w and b of s = w · h + b, [D + 1].

    Args:
      weights: w and b, [D + 1].
      better, worse: hidden states of the steps of each pair, [K, D].
      fraction: weight of each pair, [K].
    """
    apart = better - worse
    push = -fraction / (1 + np.exp(apart @ weights[:-1]))
    return np.append(push @ apart, 0.0)


@part(writes=frozenset({"supervised"}), by_row=True)
def rejection_sampling() -> Stage:
    """Imitates the correct responses of the step, each once; nothing else is trained.

    They are imitated at temperature 1, not at the sampling temperature.

    Reads: outcome. Writes: mask (cleared), supervised, temperature.
    Metrics: imitated_answers (rows).
    """

    def apply(batch, actor, state, turn):
        correct = first_of_correct(batch)
        ones = np.ones_like(batch.rollouts.temperature)
        batch = to_imitate(batch.with_rollouts(temperature=ones), correct)
        return batch, state, {"imitated_answers": float(correct.sum())}

    return apply


@arguments_of(
    step_tree,
    *("candidates", "iterations", "depth", "exploration", "traces", "step_tokens", "temperature"),
    "reply_tokens",
    guide_rate=0.01,
)
def rstar_math(
    separator: str | None = None,
    weight: NonNegative = 1.0,
    code: bool = False,
    errors: Count = 2,
    **tree: Any,
) -> Recipe:
    """Imitates the best correct traces of a search over steps.

    Args:
      separator: text that ends a step. None: an empty line, and with code "<end_of_step>".
      weight: weight of the imitation.
      code: steps may contain Python, which is run (`code_steps`).
      errors: consecutive errors of code that end a path.
    """
    if separator is None:
        separator = "<end_of_step>" if code else "\n\n"
    environment = code_steps(separator, errors=errors) if code else None
    search = step_tree(separator, environment=environment, **tree)
    learned = imitate(weight, own_words, ("supervised", "origin")) if code else imitate(weight)
    return Recipe(
        objective=objective_of_terms([learned]),
        experience=experience(draw=search, stages=[rejection_sampling()]),
    )


METHOD = Method(
    rstar_math,
    changes="sampling, selection, surrogate",
    ratio="other",
    shown=Shown(
        "brackets",
        "experience/guided_choices",
        without={"guide_rate": 0},
        hyperparameters={
            "separator": "=",
            "candidates": 4,
            "iterations": 8,
            "depth": 6,
        },
        settings={"prompts_per_step": 4},
        steps=300,
        within=2,
    ),
)
