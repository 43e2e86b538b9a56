"""How well calls of functions match those of a reference."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_jax.objectives.arguments import check_finite, check_within

__all__ = ["argument_f1", "call_reward", "trained_reward"]

Call = tuple[str, Mapping[str, Any]]
"""(name, {argument: value})."""


def argument_f1(arguments: Mapping[str, Any], reference: Mapping[str, Any]) -> float:
    """F1 over (argument, value) pairs; 1 if neither call has any."""
    if not (arguments or reference):
        return 1.0
    same = sum(name in reference and reference[name] == arguments[name] for name in arguments)
    return 2 * same / (len(arguments) + len(reference))


def call_reward(calls: Sequence[Call], reference: Sequence[Call], share: float = 0.5) -> float:
    """α · 1[the same functions are called] + (1 - α) · mean F1 of the matched calls' arguments.

    A call takes the first unused one of its name in the reference; one without a match is in the
    first term alone. Where none has a match the mean is 0, and 1 where none is made nor wanted.

    Args:
      calls: that were made.
      reference: that were to be made.
      share: α.
    Source: Fission-GRPO, from notes: a reconstruction.
    """
    check_within(0, 1, "call_reward", share=share)
    names, wanted = (Counter(name for name, _ in one) for one in (calls, reference))
    unused = list(reference)
    scores = []
    for name, arguments in calls:
        match = next((call for call in unused if call[0] == name), None)
        if match is not None:
            unused.remove(match)
            scores.append(argument_f1(arguments, match[1]))
    mean = sum(scores) / len(scores) if scores else float(not calls and not reference)
    return share * (names == wanted) + (1 - share) * mean


def trained_reward(form: float, right: float, length: float, progress: float) -> float:
    """(w_f R_format + w_c R_right + R_length) / 3, w_f from 2 down to 1 and w_c from 1 up to 2.

    Args:
      form, right, length: R_format, R_right and R_length; 0 for what is not graded.
      progress: share of the training that is done, in [0, 1].
    Source: Fission-GRPO, from notes; that the weights move linearly is ours.
    """
    check_finite("trained_reward", form=form, right=right, length=length)
    check_within(0, 1, "trained_reward", progress=progress)
    return ((2 - progress) * form + (1 + progress) * right + length) / 3
