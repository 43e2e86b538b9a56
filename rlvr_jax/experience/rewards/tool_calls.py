"""Rewards of turns with tool calls."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.arguments import check_each
from rlvr_jax.types import Rollouts
from rlvr_jax.types.hyperparameters import Finite, Unit

__all__ = ["call_reward", "replies_read", "trained_reward"]


def replies_read(rollouts: Rollouts) -> Float[Array, "B"]:
    """Number of replies of an environment in each row.

    It is half the number of the last turn: turns of the policy are 0, 2, …, replies are between.
    """
    turn = jnp.asarray(rollouts.records.get("turn"))
    places = jnp.arange(turn.shape[1], dtype=jnp.int32)[None]
    inside = places < jnp.asarray(rollouts.length)[:, None]
    last = jnp.max(jnp.where(inside, turn, 0), axis=1)
    return jnp.maximum(last, 0).astype(jnp.asarray(rollouts.outcome).dtype) / 2


Call = tuple[str, Mapping[str, Any]]
"""(name, {argument: value})."""


def argument_f1(arguments: Mapping[str, Any], reference: Mapping[str, Any]) -> float:
    """F1 over (argument, value) pairs; 1 if neither call has arguments."""
    if not (arguments or reference):
        return 1.0
    same = sum(name in reference and reference[name] == arguments[name] for name in arguments)
    return 2 * same / (len(arguments) + len(reference))


def call_reward(calls: Sequence[Call], reference: Sequence[Call], fraction: float = 0.5) -> float:
    """Reward of tool calls that are compared with reference calls.

    It is α · 1[the same functions are called] + (1 - α) · mean F1 of the matched calls' arguments.

    A call is matched with the first unused reference call of its name; unmatched calls only enter
    the first term. The mean is 0 without a match, and 1 if neither side has calls.

    Args:
      fraction: the fraction α.
    Source: Fission-GRPO, from notes: a reconstruction.
    """
    check_each(Unit, "call_reward", fraction=fraction)
    names, wanted = (Counter(name for name, _ in one) for one in (calls, reference))
    unused = list(reference)
    scores = []
    for name, arguments in calls:
        match = next((call for call in unused if call[0] == name), None)
        if match is not None:
            unused.remove(match)
            scores.append(argument_f1(arguments, match[1]))
    mean = sum(scores) / len(scores) if scores else float(not calls and not reference)
    return fraction * (names == wanted) + (1 - fraction) * mean


def trained_reward(form: float, correct: float, length: float, progress: float) -> float:
    """Reward of format, correctness and length, with weights that change during the run.

    R = (w_f R_format + w_c R_correct + R_length) / 3. w_f falls from 2 to 1, w_c rises from 1 to
    2.

    Args:
      form, correct, length: R_format, R_correct and R_length; 0 where ungraded.
      progress: completed fraction of the training, in [0, 1].
    Source: Fission-GRPO, from notes; the linear change of the weights is ours.
    """
    check_each(Finite, "trained_reward", form=form, correct=correct, length=length)
    check_each(Unit, "trained_reward", progress=progress)
    return ((2 - progress) * form + (1 + progress) * correct + length) / 3
