"""Labels of inputs by agreement of independent programs: mutual verification."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple


class Agreement(NamedTuple):
    """What programs agree on.

    Fields:
      accepted: whether the labels are to be used.
      share: of the programs that are in the largest class.
      labels: outputs of that class on the inputs; none if not accepted.
      members: the programs of that class; none if not accepted.
      reason: why it was not accepted: "share", "tie", "constant", "examples", or "".
    """

    accepted: bool
    share: float
    labels: list[Any]
    members: list[int]
    reason: str = ""


def votes_needed(programs: int, share: float) -> int:
    """⌈θ N⌉, whatever rounding does: 10 of 16 at 0.6."""
    return math.ceil(share * programs - 1e-9)


def mutual_verify(
    outputs: Sequence[Sequence[Any]],
    theta: float,
    examples: Mapping[int, Any] | None = None,
    constant_examples: bool = False,
) -> Agreement:
    """Labels inputs by the largest class of programs whose outputs are all equal.

    An output of None (an error, a time-out, one too long, or two runs that differ) equals nothing:
    its program is in no class, and counts all the same. Labels are accepted from `votes_needed`
    programs on; not where two classes are the largest, where all labels are equal though the
    statement's examples are not, nor where they contradict an example.

    Args:
      outputs: of each program on each input, hashable.
      theta: share of all programs, in (0, 1].
      examples: outputs that the statement gives, by the number of the input.
      constant_examples: the statement's examples all have one output.
    Raises:
      ValueError: no programs or inputs, rows of other lengths, theta outside (0, 1].
    Source: rStar-Coder; what is done with ties, constants and examples is ours.
    """
    if not outputs or not outputs[0] or len({len(row) for row in outputs}) != 1:
        raise ValueError(
            "mutual_verify: outputs must be rows of one length, at least one, got lengths"
            f" {[len(row) for row in outputs]}"
        )
    if not 0 < theta <= 1:
        raise ValueError(f"mutual_verify: theta must be in (0, 1], got {theta}")
    classes = Counter(tuple(row) for row in outputs if None not in row)
    if not classes:
        return Agreement(False, 0.0, [], [], "share")
    (labels, size), *others = classes.most_common(2)
    share = size / len(outputs)
    reason = ""
    if size < votes_needed(len(outputs), theta):
        reason = "share"
    elif others and others[0][1] == size:
        reason = "tie"
    elif len(set(labels)) == 1 and len(labels) > 1 and not constant_examples:
        reason = "constant"
    elif any(labels[place] != wanted for place, wanted in (examples or {}).items()):
        reason = "examples"
    if reason:
        return Agreement(False, share, [], [], reason)
    members = [place for place, row in enumerate(outputs) if tuple(row) == labels]
    return Agreement(True, share, list(labels), members)


def told_apart(
    labels: Sequence[Any], mutants: Sequence[Callable[[Any], Any]], inputs: Sequence[Any]
) -> bool:
    """Whether some input tells every mutant of a member from the labels: else inputs are too weak.

    Args:
      mutants: the program with an error planted (off by one, a branch left out).
    """
    return all(
        any(mutant(value) != label for value, label in zip(inputs, labels, strict=True))
        for mutant in mutants
    )


def wrong_label_chance(programs: int, theta: float, error: float) -> float:
    """P[Bin(N, e) ≥ ⌈θ N⌉]: how often a wrong class is accepted.

    Args:
      error: e, chance of a program to fall into the commonest wrong class.
    """
    least = votes_needed(programs, theta)
    return sum(
        math.comb(programs, k) * error**k * (1 - error) ** (programs - k)
        for k in range(least, programs + 1)
    )
