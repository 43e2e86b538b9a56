"""Search over whole answers; each is written to a prompt edited after the previous answer."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.arguments import check_each
from rlvr_jax.experience.draws.trees.nodes import (
    Nodes,
    back_up_mixed,
    path_to,
    roots,
    with_nodes,
)
from rlvr_jax.types.hyperparameters import NonNegativeInt, Unit


class Answers(NamedTuple):
    """A tree of answers.

    Fields:
      nodes: `value` is q.
      prompts, answers, rewards: of the nodes.
    """

    nodes: Nodes
    prompts: list[Any]
    answers: list[Any]
    rewards: list[float]


def compared_value(reward: float, other: float) -> float:
    """(r - r_compared + 1) / 2: by how much an answer is better than another one, in [0, 1].

    Args:
      reward, other: rewards of the two answers, in [0, 1].
    """
    return (reward - other + 1) / 2


def optimism(
    value: np.ndarray, visits: np.ndarray, parent_visits: np.ndarray, constant: float = 1.0
) -> np.ndarray:
    """q + c sqrt(ln(N_parent + 1) / (N + 1)), [...].

    Args:
      value: q, mean value of each node.
      visits: N of each node.
      parent_visits: N of its parent.
      constant: c, weight of exploration.
    """
    return value + constant * np.sqrt(np.log(parent_visits + 1) / (visits + 1))


def search_answers(
    prompt: Any,
    write: Callable[[Any], Any],
    edit: Callable[[Any, Any, Any], Any],
    reward: Callable[[Any], float],
    expansions: int,
    *,
    fraction: float = 0.5,
    constant: float = 1.0,
) -> Answers:
    """Expands the answer of highest `optimism`: edits its prompt and writes a new answer to it.

    The answer is compared with its parent's, at the root with itself; the edit sees both. The value
    of the child is `compared_value`, backed up by `back_up_mixed`. Ties go to the first node.

    Args:
      prompt: the prompt of the first answer.
      write: (prompt) -> an answer.
      edit: (prompt, the answer, the one it is compared with) -> another prompt.
      reward: (answer) -> in [0, 1], by a verifier; a judge without the gold answer would drift.
      expansions: number of answers after the first one.
      fraction: γ of the back-up.
      constant: c of `optimism`.
    Raises:
      ValueError: expansions is negative, or fraction is outside [0, 1].
    Source: Empirical-MCTS, from its abstract: a reconstruction but for the back-up.
    """
    check_each(NonNegativeInt, "search_answers", expansions=expansions)
    check_each(Unit, "search_answers", fraction=fraction)
    first = write(prompt)
    nodes, prompts, answers, rewards = roots(1), [prompt], [first], [float(reward(first))]
    for _ in range(expansions):
        above = np.maximum(nodes.parent, 0)
        node = int(optimism(nodes.value, nodes.visits, nodes.visits[above], constant).argmax())
        other = int(above[node])
        prompts.append(edit(prompts[node], answers[node], answers[other]))
        answers.append(write(prompts[-1]))
        rewards.append(float(reward(answers[-1])))
        nodes = with_nodes(nodes, np.array([node]))
        value = compared_value(rewards[-1], rewards[node])
        nodes = back_up_mixed(nodes, path_to(nodes, len(nodes) - 1), value, fraction)
    return Answers(nodes, prompts, answers, rewards)
