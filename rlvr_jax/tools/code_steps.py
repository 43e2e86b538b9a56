"""Reasoning in steps with code, which is run after each step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlvr_jax.sandbox import Limits
from rlvr_jax.tools.base import Lost, ToolError, as_text
from rlvr_jax.tools.environment import Reply
from rlvr_jax.tools.python import LIMITS, run_calls


@dataclass(frozen=True)
class CodeSteps:
    """An environment that runs the code of steps; see `code_steps`. Its state is the text since the
    last end of code, and the number of consecutive errors.

    Fields:
      run: (code) -> its output, and whether it failed. Raises `ToolError`, `Lost`.
    """

    step: str
    begin: str
    end: str
    output: tuple[str, str]
    errors: int
    characters: int
    label: str
    run: Callable[[str], tuple[str, bool]] = field(repr=False, compare=False)
    judges: bool = False

    @property
    def stops(self) -> tuple[str, ...]:
        return self.step, self.end

    def start(self, prompt: Any) -> tuple[Any, Sequence[Mapping[str, Any]]]:
        """An empty text, without additional messages."""
        return ("", 0), []

    def reply(self, state: Any, text: str) -> Reply:
        """The output of the code, after the end of code; after another step the empty text. A text
        that is not a whole step gets no reply."""
        if not any(stop in text for stop in self.stops):
            return Reply(state)
        written, errors = state
        whole, ended, rest = text.rpartition(self.end)
        # A token that completes the end may continue after it, where the next text begins.
        written += whole if ended else text
        code, output = written.partition(self.begin)[2], ""
        for mark in (self.begin, self.step, self.end):
            code = code.replace(mark, "")
        counts = {"calls": 0.0, "tool_errors": 0.0}
        failed = False
        if code.strip():
            counts["calls"] = 1.0
            try:
                output, failed = self.run(code)
            except ToolError as error:
                output, failed = f"Error: {error}", True
            except Lost:
                return Reply(state, lost=True, done=True, info=counts)
        errors = errors + 1 if failed else 0
        counts["tool_errors"] = float(failed)
        if errors >= self.errors:
            return Reply(("", errors), done=True, outcome=0.0, info=counts)
        if not ended:
            return Reply((written, errors), "", info=counts)
        message = (
            "".join((self.output[0], self._shown(output), self.output[1])) if code.strip() else ""
        )
        return Reply((rest, errors), message, info=counts)

    def _shown(self, printed: str) -> str:
        """The output without marks, because it is not a step of the policy."""
        text = as_text(printed, self.characters)
        for mark in (self.begin, *self.stops, *self.output):
            mark = mark.strip()
            text = text.replace(mark, f"{mark[:1]} {mark[1:]}")
        return text


def code_steps(
    step: str = "<end_of_step>",
    begin: str = "<code>",
    end: str = "<end_of_code>",
    output: tuple[str, str] = ("\n<output>", "<end_of_output>\n"),
    *,
    errors: int = 2,
    limits: Limits = LIMITS,
    characters: int = 2000,
) -> CodeSteps:
    """An environment in which steps may contain Python, in the form of rStar-Math:

        <code>
        a = 6 * 7<end_of_step>
        print(a)<end_of_code>
        <output>42<end_of_output>

    After each step, the code since the last end of code is run as a whole, in a fresh sandbox. Its
    output is shown only after the end of code. An episode ends with the outcome 0 when `errors`
    consecutive steps have failed: raised, or exceeded a limit. A step without code does not fail.

    Args:
      step, end: texts that end a step, and code.
      begin: text before the code.
      output: marks before and after the output.
      errors: number of consecutive errors that end an episode.
      limits: limits of a run.
      characters: largest size of the output; a longer one is truncated with a note.
    Raises:
      ValueError: a mark is empty, or a number is below 1.
    Source: https://github.com/microsoft/rStar (branch rStar-math).

    Metrics: calls (steps with code), tool_errors (steps whose code fails).
    """
    for name, number in {"errors": errors, "characters": characters}.items():
        if not number >= 1:
            raise ValueError(f"code_steps: {name} must be at least 1, got {number}")
    for name, mark in {"step": step, "begin": begin, "end": end}.items():
        if not mark.strip():
            raise ValueError(f"code_steps: {name} must be a text, got {mark!r}")
    label = f"code_steps({step!r}, {begin!r}, {end!r}, {output!r}, errors={errors})"

    def run(code: str) -> tuple[str, bool]:
        ran = run_calls((), code, limits)
        return ran.text, ran.failed

    return CodeSteps(step, begin, end, output, errors, characters, label, run)
