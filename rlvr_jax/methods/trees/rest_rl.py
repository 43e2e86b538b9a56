"""ReST-RL: trains on prompts of varied outcomes and on continuations of their best responses.

"ReST-RL: Achieving Accurate Code Reasoning of LLMs with Optimized Self-Training and Decoding",
https://github.com/THUDM/ReST-RL

    5 responses to a prompt at T = 0.7; dropped if the standard deviation of outcomes is below 0.05
    if the best one has outcome ≥ 0.9: ⌈0.5 · lines⌉ of its prefixes, with chances ∝ 0.95^i
    R    = outcome + 0.001 where the response has ended
    loss = GRPO's clip on the token mean, of the prompts and of the prefixes

The authors do this in cycles over all prompts; here some prompts are rated in every step, and the
results wait in a queue. Their penalty of 1e-6 for each character after the end cannot occur here.
Their tree search is `search_lines`, by tests or by a value of prefixes, and `value_targets` are the
targets of their value model. That model, a second one with a head of its own, and the decoding with
it train no policy and are not part of a run.
"""

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
from rlvr_jax.experience.rewards.parts import Shaping, shaping
from rlvr_jax.experience.stages.rewards.score_steps import scored_steps
from rlvr_jax.experience.store import Store, empty_store, oldest, pop_oldest, push, taken
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.compositions import clipped_objective
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
    Temperature,
    Unit,
)
from rlvr_jax.types.parts import check_each, part


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
    """Picks prompts of varied outcomes, and prefixes of their best responses.

    In every step some prompts are rated: answered separately and never trained. If the outcomes of
    a prompt vary enough the prompt enters a queue. If its best response is good enough, some of its
    prefixes enter as well: whole lines, short prefixes with higher chances. A step takes the oldest
    entries of the queue. While it is short, prompts of `shuffled_epochs` fill the step. Given lines
    are context and not trained. Lines are the task's steps (`Task.score_steps`), or end with a line
    break. A prefix that leaves no room for a response is left out.

    Args:
      rated: prompts of each step.
      samples, temperature: of their responses.
      spread: smallest standard deviation of the outcomes.
      accept: outcome of the best response from which on it has prefixes.
      ratio: prefixes per line.
      decay: of the chance from one line to the next.
      capacity: of the queue, the newest entries.
    Metrics: queue (entries), kept_prompts (fraction of the rated), new_prefixes, asked_prefixes
      (requests of the step that begin with lines).
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


def varied(outcomes: np.ndarray, least: float) -> np.ndarray:
    """Groups whose outcomes have a standard deviation (with n) of at least `least`, bool [G]."""
    return deviation(outcomes) >= least


def deviation(outcomes: np.ndarray) -> np.ndarray:
    """Standard deviation (with n) of the graded outcomes of each group, [G]."""
    known = ~np.isnan(outcomes)
    number = np.maximum(known.sum(axis=1), 1)
    mean = np.nansum(outcomes, axis=1) / number
    return np.sqrt(np.nansum((outcomes - mean[:, None]) ** 2, axis=1) / number)


def best_rows(outcomes: np.ndarray) -> np.ndarray:
    """The position of each group's best response, the first of equal ones; int [G]."""
    return np.argmax(np.where(np.isnan(outcomes), -np.inf, outcomes), axis=1)


def sub_samples(lines: int, ratio: float) -> int:
    """Number of prefixes that are sampled from a response: ⌈ratio · lines⌉."""
    return math.ceil(ratio * lines)


def prefix_chances(lines: int, decay: float) -> np.ndarray:
    """Chances of the prefixes of 1 … n lines, ∝ decay^i; [n]."""
    weight = decay ** np.arange(lines)
    return weight / weight.sum()


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
    """Tokens of some prefixes of a response."""
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


@part
def ended_bonus(bonus: Finite) -> Shaping:
    """The outcome, plus a bonus for responses that were not truncated.

    Args:
      bonus: small relative to 1.
    Reads: outcome, truncated.
    """

    def reward(rollouts):
        ended = jnp.where(rollouts.truncated, 0, bonus)
        return rollouts.outcome + ended.astype(rollouts.outcome.dtype)

    return shaping(reward)


class Continued(NamedTuple):
    """A response that was sampled after some lines.

    Fields:
      line: its first line; equal lines are one node.
      state: the lines with that one.
      whole: the whole response.
      ends: the response ends after that line.
    """

    line: Hashable
    state: Any
    whole: Any
    ends: bool


class Lines(NamedTuple):
    """A tree of lines.

    Fields:
      nodes: `value` is the sum of the backed-up scores; V is value / visits.
      states: of the nodes.
      ends, expanded, visible: bool [M].
      scored: (whole response, score) of all that were sampled, in order.
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
    """Descends by V + c √((1 + ln N_parent) / (ε + N)), expands the leaf, and backs up.

    Expanding a leaf samples whole responses after it. Their first lines are its children; equal
    lines are one child. The `decisions` children of highest V are visible, of equal ones the first.

    Without `value` the scores of the sampled responses, such as fractions of passed tests, are
    backed up from the leaf, one visit each. With `value` a child gets one visit of its own value
    for each response that begins with it, and the leaf gets all visits of its children. Visits and
    scores propagate to the root. A leaf that ends a response is backed up by its score the first
    time, and by its V later.

    Args:
      root: the state without lines.
      draw: (state) -> responses, at least one; of a state without an end.
      score: (whole responses) -> score of each, by tests or, at test time, by a model.
      iterations: descents.
      constant, epsilon: c and ε.
      decisions: visible children of a node.
      value: (state) -> value by a model. None: no model.
    Raises:
      ValueError: a count below 1, a negative constant, an ε that is not positive; when called, a
        state without a sampled response.
    """
    check_each(Count, "search_lines", iterations=iterations, decisions=decisions)
    check_each(NonNegative, "search_lines", constant=constant)
    check_each(Positive, "search_lines", epsilon=epsilon)
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
    """(state, V) for a model of values: expanded nodes, and ends that were visited."""
    known = found.expanded | (found.ends & (found.nodes.visits > 0))
    worth = _values(found.nodes)
    return [(found.states[node], float(worth[node])) for node in np.flatnonzero(known)]


def best_whole(found: Lines) -> Any:
    """The sampled response of highest score, of equal ones the first."""
    return max(found.scored, key=lambda one: one[1])[0]


def _values(nodes: Nodes) -> np.ndarray:
    """V of all nodes, 0 for unvisited ones."""
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


def visible_children(value: Float[Array, "... K"], number: int) -> Bool[Array, "... K"]:
    """The children of highest value, of equal ones the first."""
    order = jnp.argsort(-value, axis=-1, stable=True)
    return jnp.argsort(order, axis=-1) < number


def _backed_up(nodes: Nodes, node: int, visits: int, total: float) -> Nodes:
    """Adds visits, and the sum of their scores, on the path to a node."""
    counts, sums, path = nodes.visits.copy(), nodes.value.copy(), path_to(nodes, node)
    counts[path] += visits
    sums[path] += total
    return replace(nodes, visits=counts, value=sums)


def rest_rl(
    rated: Count = 64,
    rating_samples: Count = 5,
    rating_temperature: Temperature = 0.7,
    spread: NonNegative = 0.05,
    accept: Unit = 0.9,
    ratio: Positive = 0.5,
    decay: Share = 0.95,
    capacity: Count = 4096,
    bonus: Finite = 1e-3,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on prompts of varied outcomes and on prefixes of their best responses.

    Args:
      rated: prompts that are rated in each step; ours, the paper rates all in a cycle.
      rating_samples, rating_temperature: of their responses.
      spread: smallest standard deviation of their outcomes.
      accept: outcome from which on the best response has prefixes.
      ratio: prefixes per line.
      decay: of the chance of a prefix from one line to the next.
      capacity: entries of the queue.
      bonus: reward of a response that was not truncated.
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
        "prompts that are always or never solved are dropped before prefixes are made; a prefix "
        "may repeat or be the whole response; a response of one line has no other prefixes"
    ),
)
