"""Rewards that need more than a function of rollouts: a state, the step, metrics.

A plain `Reward`, (rollouts) -> [B], is enough for most papers. A `Shaping` declares its records,
stores a state between steps, knows the step and has a random key. Compositions take either. A NaN
means that there is no reward: the row is not valid, like an ungraded row. Rewards see each invalid
row as a separate group without tokens; `judged_rows` are the rows that count in batch statistics.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.experience.rewards.outcomes import Reward
from rlvr_jax.objectives import group_has_tokens, masked_mean
from rlvr_jax.types import Rollouts
from rlvr_jax.types.parts import Part, part

__all__ = ["Moment", "Shaping", "judged_mean", "judged_rows", "shaping"]

Metrics = Mapping[str, Any]


class Moment(NamedTuple):
    """The step and the prompts for which rewards are computed.

    Fields:
      step: step of the run, from 0.
      key: key of jax.random for this part and step, to be used once.
      prompt: int [B], the number of each row's prompt in its task. Prompts that a run makes have
        later numbers.
    """

    step: int
    key: Any
    prompt: Any


def _no_state(prompts: int) -> tuple[()]:
    return ()


@dataclass(frozen=True, eq=False, repr=False)
class Shaping(Part):
    """A reward that declares its records.

    Fields:
      apply: (rollouts, state, moment) -> (reward [B], state, metrics); NaN: without a reward.
      init: (number of the task's prompts) -> state, a pytree of numpy arrays whose shapes and
        dtypes never change.
      reads: optional records of the rollouts that it reads, such as "answer".
      columns: smallest number of `component_rewards` that it needs; 0: it reads none.
    """

    apply: Callable[[Rollouts, Any, Moment], tuple[Array, Any, Metrics]]
    init: Callable[[int], Any] = _no_state
    reads: frozenset[str] = frozenset()
    columns: int = 0

    def __call__(self, rollouts: Rollouts) -> Float[Array, "B"]:
        """The reward of a shaping that needs neither a state nor the step."""
        return self.apply(rollouts, (), None)[0]


@part
def shaping(reward: Reward, reads: Iterable[str] = (), columns: int = 0) -> Shaping:
    """Makes a `Shaping` of a reward function without state.

    Args:
      reward: (rollouts) -> [B], or -> ([B], a dict of values [B]). The dict's names are metrics,
        each the `judged_mean` of its values.
      reads, columns: as in `Shaping`; with columns, "component_rewards" need not be in `reads`.
    """

    def apply(rollouts, state, moment):
        value = reward(rollouts)
        value, parts = value if isinstance(value, tuple) else (value, {})
        metrics = {name: judged_mean(values, rollouts) for name, values in parts.items()}
        return value, state, metrics

    reads = {*reads, *(("component_rewards",) if columns else ())}
    return Shaping(apply, reads=frozenset(reads), columns=columns)


def as_shaping(reward: Reward | Shaping) -> Shaping:
    """A `Shaping` unchanged, or the shaping of a plain reward."""
    return reward if isinstance(reward, Shaping) else shaping(reward)


def judged_rows(rollouts: Rollouts) -> Bool[Array, "B"]:
    """Rows that count in statistics of the batch: those of groups with tokens."""
    return group_has_tokens(rollouts.mask, rollouts.group)


def judged_mean(values: Float[Array, "B"], rollouts: Rollouts) -> Float[Array, ""]:
    """The mean over `judged_rows`, ignoring NaN, for metrics."""
    return masked_mean(values, judged_rows(rollouts) & ~jnp.isnan(values))
