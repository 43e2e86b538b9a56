"""Tests of a Python program, run in the sandbox.

A test is a dictionary. Its kind determines how it runs:

  io      the whole program, which reads `in` and prints `out`;
  call    `function` called with `args`; its value returns as JSON text and is compared here with
          `value`;
  assert  `code` that runs in a separate process (`judge`) and calls the program's functions in
          another one. Further keys: `setup`, definitions of the prompt; `function`, the one of
          these names that the program has to define.

All tests of the last two kinds are in one run of the sandbox, each with fresh processes. A test
that exceeds its wall limit is run once more, because the machine may have been busy. After two
tests in a row that used all their time, no other test is run, and the remaining ones do not pass.
So a program that loops does not cost the time of every test.
"""

import binascii
import functools
import json
import marshal
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlvr_jax.sandbox import Limits, Outcome, Sandbox
from rlvr_jax.verifiers.programs.python import candidate, crossing, judge, library, remote, session
from rlvr_jax.verifiers.programs.python.outputs import same_output, same_value

PASSED, LATE = "passed", "time"
_OURS = 4  # our processes in addition to the program's: judge, judge of a test, the forking one
_MARGIN = 2.0  # seconds for the start and the end of a run
_OPEN_FILES = 128
_MOST_PROGRAM = 2**20  # characters
_BOOT = """\
import binascii, marshal, sys, types
for name, code in marshal.loads(binascii.a2b_base64({packed!r})):
    sys.modules[name] = types.ModuleType(name)
    exec(code, sys.modules[name].__dict__)
sys.modules[name].main()
"""


class NoVerdict(Exception):
    """Nothing could be run; the message has the reason."""


def run_tests(
    sandbox: Sandbox,
    program: str,
    tests: Sequence[Mapping[str, Any]],
    limits: Limits,
    total_seconds: float = 20.0,
) -> list[str]:
    """A word for each test: "passed", or the reason why not.

    Args:
      sandbox: an open sandbox.
      program: source of the program.
      tests: inputs and expected values, as JSON.
      limits: limits of one test.
      total_seconds: time for all tests (seconds); tests that are not reached have not passed.
    Raises:
      NoVerdict: this machine has no sandbox, or the sandbox was lost.
    """
    if len(program) > _MOST_PROGRAM or not is_utf8(program):
        return ["program"] * len(tests)
    trial = _Trial(sandbox, program, tests, limits, time.monotonic() + total_seconds)
    words: dict[int, str] = {}
    todo = list(range(len(tests)))
    for _ in range(2):
        calls = [number for number in todo if tests[number]["kind"] != "io"]
        words |= trial.together(calls)
        silent = 0
        for number in sorted({*todo} - {*calls}):
            if trial.left() > 0 and silent < session.MOST_SILENT:
                words[number] = trial.alone(tests[number])
                silent = silent + 1 if words[number] in (LATE, "cpu") else 0
        todo = [number for number in todo if words.get(number) == LATE]
    return [words.get(number, LATE) for number in range(len(tests))]


def is_utf8(text: str) -> bool:
    """Whether a text can be encoded: it has no unpaired surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeError:
        return False
    return True


@dataclass(frozen=True)
class _Trial:
    """A program and its tests, until a deadline of the monotonic clock."""

    sandbox: Sandbox
    program: str
    tests: Sequence[Mapping[str, Any]]
    limits: Limits
    deadline: float

    def left(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.monotonic()

    def alone(self, test: Mapping[str, Any]) -> str:
        """The word for a test of the program as a whole."""
        outcome = self._run(self.program, test["in"], (), {}, self.limits)
        if outcome.reason:
            return LATE if outcome.reason == "wall" else outcome.reason
        if outcome.status:
            return "status"
        same = same_output(outcome.stdout, test["out"], test.get("tolerance"))
        return PASSED if same else "output"

    def together(self, todo: Sequence[int]) -> dict[int, str]:
        """The words for tests that call the program. If a run ended early, a new run starts after
        the test that exceeded a limit of the whole run, or that ended a run as its first test."""
        words: dict[int, str] = {}
        while (left := self.left()) > 0 and todo:
            outcome, lines = self._judged([self.tests[n] for n in todo], left)
            for number, (word, text) in zip(todo, lines, strict=False):
                words[number] = word
                if word == "value":
                    test = self.tests[number]
                    same = same_value(text, test["value"], test.get("tolerance"))
                    words[number] = PASSED if same else word
            todo = todo[len(lines) :]
            if outcome.status == 0:
                break  # the judge has done all it had time for
            if todo and (outcome.reason or not lines):
                words[todo[0]] = LATE if outcome.reason == "wall" else outcome.reason or "ended"
                todo = todo[1:]
        return words

    def _judged(
        self, tests: Sequence[Mapping[str, Any]], seconds: float
    ) -> tuple[Outcome, list[tuple[str, str]]]:
        """The judge's words and texts for the tests that it reached."""
        count, one = len(tests), self.limits
        cpu = -(-one.cpu_seconds // 1)
        limits = replace(
            one,
            wall_seconds=min(seconds, count * one.wall_seconds) + _MARGIN,
            cpu_seconds=2 * count * cpu + _MARGIN,
            processes=one.processes + _OURS,
            open_files=_OPEN_FILES,
            output_bytes=count * (judge.MOST_TEXT + 100),
        )
        nonce = secrets.token_hex(16)
        job = {
            "nonce": nonce,
            "tests": [_judge_test(test) for test in tests],
            "wall_seconds": one.wall_seconds,
            "cpu_seconds": one.cpu_seconds,
            "total_seconds": seconds,
        }
        files = {session.PROGRAM: self.program}
        argv = [str(count), str(int(cpu))]
        outcome = self._run(_harness(), json.dumps(job), argv, files, limits)
        first, *reported = outcome.stdout.split("\n")
        if first != nonce:
            raise NoVerdict(f"the judge did not start: {outcome.reason or outcome.stderr}")
        lines: list[tuple[str, str]] = []
        for line in reported:
            start, *rest = line.split(" ", 3)
            if start == nonce and len(rest) == 3 and rest[0] == str(len(lines)):
                lines.append((rest[1], rest[2]))
        return outcome, lines

    def _run(self, *arguments: Any) -> Outcome:
        """`Sandbox.run`, for outcomes that the program caused."""
        try:
            outcome = self.sandbox.run(*arguments)
        except (RuntimeError, OSError) as error:  # it refuses, or nothing can be started here
            raise NoVerdict(str(error)) from error
        if outcome.reason == "lost":
            raise NoVerdict(f"the sandbox was lost: {outcome.stderr}")
        return outcome


def _judge_test(test: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a test that the judge receives."""
    received = {key: test[key] for key in ("kind", "code", "setup", "function") if key in test}
    return received | ({"args": encoded(test["args"])} if "args" in test else {})


def encoded(value: Any) -> Any:
    """A JSON value with integers that have no bound."""
    return crossing.Values(_no_handle).encode(value)


def _no_handle(kind: str, number: int) -> Any:
    raise TypeError(f"a test must be a JSON value, got a handle on {kind} {number}")


@functools.cache
def _harness() -> str:
    """The program of the judge: our files in compiled form, as the sandbox does not have them."""
    modules = (library, crossing, candidate, remote, judge, session)
    code = [
        (module.__name__, compile(Path(module.__file__).read_text(), module.__name__, "exec"))
        for module in modules
    ]
    return _BOOT.format(packed=binascii.b2a_base64(marshal.dumps(code), newline=False).decode())
