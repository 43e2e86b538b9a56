"""Instruction following without a judge: named checks of the text after the thinking.

    hard = mean of the graded checks,     reward = hard · soft

`check` grades only the hard part; `followed` is one check: 1, 0 or None. A judge grades the soft
part. A check is ungraded (None) if it is unknown, such as the language of a text (there is no
detector), or if its arguments do not fit. It is also ungraded for a text of more than 20,000
characters. An empty text satisfies nothing, so an empty response gets no reward for "no commas".

Source: VerIF, https://github.com/THU-KEG/VerIF (which runs generated Python in the trainer; here is
a fixed registry); open-instruct, https://github.com/allenai/open-instruct (`IFEvalVerifier`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_jax.verifiers.fences import behind_thinking
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.texts import ifbench_checks, instruction_checks

_MAX_CHARACTERS = 20_000
KNOWN = {**instruction_checks.CHECKS, **ifbench_checks.CHECKS}
_BAD_ARGUMENTS = (TypeError, ValueError, AttributeError, KeyError, IndexError, ArithmeticError)


def extract(response: str) -> str | None:
    """The text after the thinking; None if it is empty or the thinking does not end."""
    answer = behind_thinking(response)
    return answer if answer is not None and answer.strip() else None


def check(text: str, gold: Sequence[Mapping[str, Any]], *, every: bool = False) -> Grade:
    """The fraction of the graded instructions that a text follows.

    Args:
      text: the text after the thinking.
      gold: instructions, each {"check": name, "arguments": list, or mapping of names}.
      every: grade 1 only if all graded checks are followed, else 0, instead of the mean.
    Returns:
      Info: `all_followed`, and `unjudged`, the number of ungraded checks.

    Metrics: all_followed (1 if all graded checks are followed), unjudged (ungraded checks).
    """
    if not isinstance(gold, Sequence) or isinstance(gold, str):
        return Grade(None, stage="gold")
    verdicts = [followed(one.get("check"), one.get("arguments", ()), text) for one in gold]
    mean = hard(verdicts)
    info = {"unjudged": float(verdicts.count(None))}
    if mean is None:
        return Grade(None, answer=text, stage="no check", info=info)
    info["all_followed"] = float(mean == 1)
    return Grade(info["all_followed"] if every else mean, answer=text, stage="checks", info=info)


def followed(name: Any, arguments: Sequence[Any] | Mapping[str, Any], text: str) -> int | None:
    """Whether a text follows one instruction: 1 or 0; None is ungraded."""
    function = KNOWN.get(name) if isinstance(name, str) else None
    if function is None or len(text) > _MAX_CHARACTERS:
        return None
    if not text.strip():
        return 0
    try:
        named = isinstance(arguments, Mapping)
        return int(function(text, **arguments) if named else function(text, *arguments))
    except _BAD_ARGUMENTS:
        return None


def hard(verdicts: Sequence[int | None]) -> float | None:
    """The mean over the graded checks; None if none is graded; 1 without instructions."""
    known = [verdict for verdict in verdicts if verdict is not None]
    if not verdicts:
        return 1.0
    return sum(known) / len(known) if known else None
