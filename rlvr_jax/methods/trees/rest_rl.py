"""ReST-RL: only prompts whose answers differ, and lines of their best answers to go on from.

"ReST-RL: Achieving Accurate Code Reasoning of LLMs with Optimized Self-Training and Decoding",
https://github.com/THUDM/ReST-RL

    5 answers to a prompt at T = 0.7; dropped if the standard deviation of outcomes is below 0.05
    if the best one has outcome ≥ 0.9: ⌈0.5 · lines⌉ beginnings of it, with chances ∝ 0.95^i
    R    = outcome + 0.001 where the answer has ended
    loss = GRPO's clip on the token mean, of the prompts and of what they begin with

The authors do so in cycles over all prompts; here some prompts are rated in every step, and what
they give waits in a queue. Their penalty of 1e-6 for each character behind the end cannot arise:
nothing stands behind the stop token. Their tree search is `search_lines`, by tests or by a value of
beginnings, and its `value_targets` are what their value model learns; that model, a second one with
a head of its own, and the decoding with it train no policy and are no part of a run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from rlvr_jax.experience import experience, shape
from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.curricula.batches import order_of
from rlvr_jax.experience.draws.trees.nodes import Nodes, children, path_to, roots, with_nodes
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.experience.stages.rewards.score_steps import scored_steps
from rlvr_jax.experience.store import Store, empty_store, oldest, pop_oldest, push, taken
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.arguments import check_at_least, check_count, check_positive
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.rewards.parts import Shaping, shaping
from rlvr_jax.tasks.base import Prompt, StepScore, Task
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Count,
    Epsilon,
    Finite,
    NonNegative,
    Positive,
    Share,
    Unit,
)
from rlvr_jax.types.parts import part


def varied(outcomes: np.ndarray, least: float) -> np.ndarray:
    """Groups whose outcomes have a standard deviation (with n) of at least `least`, bool [G]."""
    return deviation(outcomes) >= least


def deviation(outcomes: np.ndarray) -> np.ndarray:
    """Standard deviation (with n) of the outcomes of each group that have a verdict, [G]."""
    known = ~np.isnan(outcomes)
    number = np.maximum(known.sum(axis=1), 1)
    mean = np.nansum(outcomes, axis=1) / number
    return np.sqrt(np.nansum((outcomes - mean[:, None]) ** 2, axis=1) / number)


def best_rows(outcomes: np.ndarray) -> np.ndarray:
    """The place of each group's best answer, the first of equal ones; int [G]."""
    return np.argmax(np.where(np.isnan(outcomes), -np.inf, outcomes), axis=1)


def sub_samples(lines: int, ratio: float) -> int:
    """How many beginnings are drawn of an answer with so many lines: ⌈ratio · lines⌉."""
    return math.ceil(ratio * lines)


def prefix_chances(lines: int, decay: float) -> np.ndarray:
    """Chances of the beginnings of 1 … n lines, ∝ decay^i: early ones first; [n]."""
    weight = decay ** np.arange(lines)
    return weight / weight.sum()


@part
def start_from_prefixes(
    rated: Count,
    samples: Count,
    temperature: Positive,
    spread: NonNegative,
    accept: Unit,
    ratio: Positive,
    decay: Share,
    capacity: Count,
) -> Curriculum:
    """Asks prompts whose answers differ, and what begins as their best answers do.

    In every step some prompts are rated, answered apart and never trained. Of those whose outcomes
    spread far enough the prompt itself is put into a queue; if its best answer is good, beginnings
    of that are drawn, whole lines, early ones with higher chances, and put behind it. A step asks
    the oldest of the queue; while it is short the prompts of `shuffled_epochs` come first. Given
    lines are context and not learned from. Lines are the task's steps (`Task.score_steps`), or end
    with a line break; a beginning that leaves no room for an answer is left out.

    Args:
      rated: prompts of each step.
      samples, temperature: of their answers.
      spread: least standard deviation of the outcomes.
      accept: outcome of the best answer from which on it is cut.
      ratio: beginnings for each of its lines.
      decay: of the chance from one line to the next, in (0, 1].
      capacity: of the queue; of more the newest stay.
    Metrics: queue (starts that wait), kept_prompts (share of the rated), new_prefixes,
      asked_prefixes (asks of the step that begin with lines).
    """

    def init(setting):
        whole, tokens = ((), np.int32), ((setting.response_tokens,), np.int32)
        return empty_store(capacity, number=whole, tokens=tokens, length=whole)

    def asked(state: Store, setting) -> np.ndarray:
        return oldest(state, setting.prompts)

    def propose(asks, state, turn):
        del asks
        setting, train = turn.setting, turn.setting.task.train
        order = order_of(setting)
        if turn.round:
            numbers = order.indices(turn.step, turn.round, setting.rounds)
            return [_ask(train, n, turn, setting.drawn_samples) for n in numbers]
        starts = taken(state, asked(state, setting))
        found = [
            replace(_ask(train, number, turn, setting.drawn_samples), given=ids[:end].tolist())
            for number, ids, end in zip(*(starts[key] for key in _FIELDS), strict=True)
        ]
        plain = order.indices(turn.step, 0, setting.rounds)[: setting.prompts - len(found)]
        found += [_ask(train, number, turn, setting.drawn_samples) for number in plain]
        chosen = turn.random().permutation(len(train))[:rated]
        ratings = [
            replace(_ask(train, n, turn, samples), rating=True, temperature=temperature)
            for n in chosen
        ]
        return [*ratings, *found]

    def observe(state, turn, seen, learned):
        setting = turn.setting
        _, state = pop_oldest(state, len(asked(state, setting)))
        random, kept, groups, new = turn.random(), 0, 0, 0
        for batch in seen:
            if not batch.asks[0].rating:
                continue
            outcomes = batch.outcomes()
            keep, best = varied(outcomes, spread), best_rows(outcomes)
            groups += len(keep)
            for group in np.flatnonzero(keep):
                row = int(batch.groups[group][best[group]])
                begun = [[]]
                if outcomes[group, best[group]] >= accept:
                    begun += _beginnings(batch, row, setting, ratio, decay, random)
                kept, new = kept + 1, new + len(begun) - 1
                state = push(state, _rows(batch.asks[row].number, begun, setting), turn.step)
        given = [len(learned.asks[rows[0]].given) > 0 for rows in learned.groups]
        told = {
            "queue": float(state.held),
            "kept_prompts": kept / max(groups, 1),
            "new_prefixes": float(new),
            "asked_prefixes": float(sum(given)),
        }
        return state, told

    return Curriculum(propose, init, observe)


_FIELDS = ("number", "tokens", "length")


def _ask(train: Sequence[Prompt], number: int, turn, samples: int) -> Ask:
    return Ask(train[number], int(number), samples, round=turn.round)


def _rows(number: int, begun: Sequence[Sequence[int]], setting) -> dict[str, np.ndarray]:
    tokens = np.zeros((len(begun), setting.response_tokens), np.int32)
    for row, ids in zip(tokens, begun, strict=True):
        row[: len(ids)] = ids
    lengths = np.array(list(map(len, begun)), np.int32)
    return {"number": np.full(len(begun), number, np.int32), "tokens": tokens, "length": lengths}


def _lines(prompt: Prompt, text: str) -> list[StepScore]:
    """Every line of a text as a step; blank ones count."""
    del prompt
    ends = [place + 1 for place, letter in enumerate(text) if letter == "\n"]
    if not ends or ends[-1] < len(text):
        ends.append(len(text))
    return [StepScore(end, 0.0) for end in ends if end > 0]


def _beginnings(
    batch: Batch, row: int, setting, ratio: float, decay: float, random: np.random.Generator
) -> list[list[int]]:
    """Tokens of some beginnings of an answer."""
    task: Task = setting.task
    if task.score_steps is None:
        task = replace(task, score_steps=_lines)
    step, _, lines = scored_steps(batch.take(np.array([row])), task)
    if not lines:
        return []
    ends = [int(np.flatnonzero(step[0] == line).max(initial=-1)) + 1 for line in range(lines)]
    drawn = random.choice(lines, sub_samples(lines, ratio), p=prefix_chances(lines, decay))
    tokens = batch.rollouts.tokens[row]
    room = setting.response_tokens
    return [tokens[: ends[line]].tolist() for line in drawn if 0 < ends[line] < room]


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


@part
def ended_bonus(bonus: Finite) -> Shaping:
    """The outcome, and a bonus for responses that the budget did not cut off.

    Args:
      bonus: small beside 1.
    Reads: outcome, truncated.
    """

    def reward(rollouts):
        ended = jnp.where(rollouts.truncated, 0, bonus)
        return rollouts.outcome + ended.astype(rollouts.outcome.dtype)

    return shaping(reward)


def upper_confidence(
    value: Float[Array, "..."],
    visits: Float[Array, "..."],
    parent_visits: Float[Array, "..."],
    weight: float,
    epsilon: float,
) -> Float[Array, "..."]:
    """V + c √((1 + ln N_parent) / (ε + N)).

    Args:
      value, visits: V and N, of nodes.
      parent_visits: N_parent, at least 1.
      weight, epsilon: c and ε.
    """
    return value + weight * jnp.sqrt((1 + jnp.log(parent_visits)) / (epsilon + visits))


def mean_value(value: Float[Array, "... K"], visits: Float[Array, "... K"]) -> Float[Array, "..."]:
    """Σ N V / Σ N over the children: what their parent is worth."""
    return jnp.sum(visits * value, axis=-1) / jnp.sum(visits, axis=-1)


def visible_children(value: Float[Array, "... K"], number: int) -> Bool[Array, "... K"]:
    """The children of highest value, of equal ones the first."""
    order = jnp.argsort(-value, axis=-1, stable=True)
    return jnp.argsort(order, axis=-1) < number


def rest_rl(
    rated: int = 64,
    rating_samples: int = 5,
    rating_temperature: float = 0.7,
    spread: float = 0.05,
    accept: float = 0.9,
    ratio: float = 0.5,
    decay: float = 0.95,
    capacity: int = 4096,
    bonus: float = 1e-3,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on prompts whose answers differ and on beginnings of their best answers.

    Args:
      rated: prompts that are rated in each step; ours, where the paper rates all in a cycle.
      rating_samples, rating_temperature: of their answers.
      spread: least standard deviation of their outcomes.
      accept: outcome from which on the best answer is cut into beginnings.
      ratio: beginnings for each line.
      decay: of the chance of a beginning from one line to the next.
      capacity: starts that wait at most.
      bonus: reward of an answer that has ended.
    """
    starts = start_from_prefixes(
        rated, rating_samples, rating_temperature, spread, accept, ratio, decay, capacity
    )
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=group_normalized(epsilon)
        ),
        experience=experience(starts, stages=[shape(ended_bonus(bonus))]),
    )


METHOD = Method(
    rest_rl,
    "ReST-RL: Achieving Accurate Code Reasoning of LLMs with Optimized Self-Training and Decoding",
    "https://github.com/THUDM/ReST-RL",
    changes="curriculum, sampling, reward",
    left_out="the value model, and with it the decoding; the search is a function, no draw",
    reports="APPS, BigCodeBench, HumanEval: ahead of GRPO and ReST-DPO in training",
    traps=(
        "prompts that are always or never solved are dropped before they are cut; a beginning may "
        "repeat or be the whole answer; answers of one line give no others"
    ),
)
