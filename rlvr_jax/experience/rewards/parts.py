"""What a reward may be besides a function of rollouts: one with a state, a step, a name for curves.

A plain `Reward`, (rollouts) -> [B], is enough for most. A `Shaping` declares what it reads, keeps a
state between steps, knows the step and has a key, and tells numbers of its parts. Who composes
rewards takes either. A reward of NaN is none: the row leaves its group and the loss, as one without
a verdict does. Rows without a verdict come in groups of their own, without tokens: what compares
rows of the batch counts those of `judged_rows`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.experience.rewards.outcomes import Reward
from rlvr_jax.objectives.statistics.groups import group_has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import Rollouts
from rlvr_jax.types.parts import Part, part

__all__ = ["Moment", "Shaping", "as_shaping", "judged_mean", "judged_rows", "shaping"]

Metrics = Mapping[str, Any]


class Moment(NamedTuple):
    """When rewards are made, and of what.

    Fields:
      step: of the run, from 0.
      key: of jax.random, of this part and step, to be used once.
      prompt: int [B], the number of each row's prompt in its task; one that a run made itself has
        a number behind those.
    """

    step: int
    key: Any
    prompt: Any


def _no_state(prompts: int) -> tuple[()]:
    del prompts
    return ()


@dataclass(frozen=True, eq=False, repr=False)
class Shaping(Part):
    """A reward that says what it reads.

    Fields:
      apply: (rollouts, state, moment) -> (reward [B], state, metrics); NaN is no reward.
      init: (number of the task's prompts) -> state, a pytree of numpy arrays whose shapes and
        dtypes never change.
      reads: optional records of the rollouts that it reads, such as "answer".
      columns: how many of `component_rewards` there must be at least; 0: it reads none.
    """

    apply: Callable[[Rollouts, Any, Moment], tuple[Array, Any, Metrics]]
    init: Callable[[int], Any] = _no_state
    reads: frozenset[str] = frozenset()
    columns: int = 0

    def __call__(self, rollouts: Rollouts) -> Float[Array, "B"]:
        """The reward of a shaping that knows neither a state nor when it is."""
        return self.apply(rollouts, (), None)[0]


@part
def shaping(reward: Reward, reads: Iterable[str] = (), columns: int = 0) -> Shaping:
    """The shaping of a plain reward.

    Args:
      reward: (rollouts) -> [B].
      reads, columns: as in `Shaping`.
    """

    def apply(rollouts, state, moment):
        del moment
        return reward(rollouts), state, {}

    reads = {*reads, *(("component_rewards",) if columns else ())}
    return Shaping(apply, reads=frozenset(reads), columns=columns)


def as_shaping(reward: Reward | Shaping) -> Shaping:
    """A reward as it is, or the shaping of a plain one."""
    return reward if isinstance(reward, Shaping) else shaping(reward)


def judged_rows(rollouts: Rollouts) -> Bool[Array, "B"]:
    """Rows that count in statistics of the batch: those of groups with tokens."""
    return group_has_tokens(rollouts.mask, rollouts.group)


def judged_mean(values: Float[Array, "B"], rollouts: Rollouts) -> Float[Array, ""]:
    """The mean over `judged_rows`, for curves; what is NaN does not count."""
    return masked_mean(values, judged_rows(rollouts) & ~jnp.isnan(values))
