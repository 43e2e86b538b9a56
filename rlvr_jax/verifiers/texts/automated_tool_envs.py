"""Turns with tool calls: the calls that solve an open question, and turns without calls.

Source: FTRL, https://github.com/bytedance/FTRL.
"""

from collections.abc import Callable, Mapping, Sequence

TAGS = ("<tool_call>", "</tool_call>")


def counted_calls(
    calls: Sequence[str],
    results: Sequence[str],
    unsolved: Mapping[str, Sequence[str]],
    equal: Callable[[str, str], bool] = str.__eq__,
) -> tuple[int, int]:
    """The number of calls, and the number of calls that solve an open answer.

    In order, each call solves the first open answer of its tool that equals its result. Each answer
    is solved once.

    Args:
      calls: tool of each call.
      results: reply of each tool.
      unsolved: open answers, by tool.
      equal: (result, answer) -> whether they are equal.
    """
    left = {tool: list(answers) for tool, answers in unsolved.items()}
    solved = 0
    for tool, result in zip(calls, results, strict=True):
        hit = next((one for one in left.get(tool, ()) if equal(result, one)), None)
        if hit is not None:
            left[tool].remove(hit)
            solved += 1
    return len(calls), solved


def without_calls(text: str, answer: str, num_open: int, tags: Sequence[str] = TAGS) -> float:
    """The reward of a turn without calls, by the first case that applies.

      - it is empty: -0.5
      - it has a tag of a call, which could not be read: -0.3
      - it contains the final answer, in any case and without commas: 1 / (1 + u)
      - no question is open: 0.5
      - else: 0

    Args:
      text: the turn.
      answer: final answer.
      num_open: u, the number of open questions.
      tags: texts that begin or end a call.
    """
    if not text.strip():
        return -0.5
    if any(tag in text for tag in tags):
        return -0.3
    if answer.replace(",", "").lower() in text.replace(",", "").lower():
        return 1 / (1 + num_open)
    return 0.0 if num_open else 0.5
