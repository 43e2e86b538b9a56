"""Python programs against tests of printed texts, returned values, and assertions.

The program is the last block fenced as Python after the thinking. If no block has a label, it is
the last fenced block. `trial` defines the tests and runs them in the sandbox. Expected values never
enter the process of the program, so a cheating program cannot read, patch or print them. A
`WorkerPool` is not needed (its workers may not start processes): the sandbox sets the limits.

Sources: the practice of https://github.com/PRIME-RL/PRIME (prime_code),
https://github.com/allenai/open-instruct (code_utils) and
https://github.com/LeapLabTHU/Absolute-Zero-Reasoner, each of which runs tests and program in one
process; this reading separates them.
"""

import json
import random
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_jax.sandbox import Limits, shared
from rlvr_jax.verifiers.answers import after_thinking
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.programs.python.trial import PASSED, NoVerdict, encoded, is_utf8, run_tests

_SCORES = ("strict", "fraction")
# All patterns match only whole runs of marks, or a response of marks would take quadratic time.
_FENCE = r"(?:(?<!`)(?P<tick>`{3,}+)|(?<!~)~{3,}+)[ \t]*+"
_OPEN = re.compile(rf"{_FENCE}(?:python|py)[23]?(?:\.\d+)?(?:[ \t][^`\n]*)?\r?\n", re.IGNORECASE)
_ANY = re.compile(rf"^[ \t]*+{_FENCE}(?P<label>[^`\n]*)\r?\n", re.MULTILINE)
# At the end of a line: a program may hold the fence in a text.
_CLOSES = [re.compile(rf"(?<!{mark}){mark}{{3,}}+[ \t\r]*+(?:\n|\Z)") for mark in "~`"]
_FIELDS = {
    "io": {"in": str, "out": str},
    "call": {"function": str, "args": list, "value": object},
    "assert": {"code": str},
}
_OPTIONAL = {"setup": str, "function": str, "tolerance": int | float}


def extract(response: str) -> str | None:
    """Returns the last closed block after the thinking that is fenced as Python. Without one it
    returns the last closed block without a label, else None.

    Fences are ticks or tildes, labels python, py, python3 and similar. There is no program if the
    thinking does not end or the block is white space.
    """
    text = after_thinking(response)
    if "<think>" in text:
        return None
    lasts = [max((c.start() for c in closes.finditer(text)), default=-1) for closes in _CLOSES]
    openings = [o for o in _OPEN.finditer(text) if o.end() <= lasts[bool(o["tick"])]]
    opening = openings[-1] if openings else _unlabelled(text, lasts)
    if opening is None:
        return None
    start = opening.end()
    program = text[start : _CLOSES[bool(opening["tick"])].search(text, start).start()]
    line = text[text.rfind("\n", 0, start - 1) + 1 : start]
    if line[0].isspace() and line.lstrip()[0] in "`~":
        program = textwrap.dedent(program)  # the block of an item of a list
    return program if program.strip() else None


def _unlabelled(text: str, lasts: Sequence[int]) -> re.Match[str] | None:
    """The beginning of the last closed block without a label, of blocks that follow one another."""
    found, position = None, 0
    while opening := _ANY.search(text, position):
        ticks = bool(opening["tick"])
        position = opening.end()
        if position <= lasts[ticks]:
            found = opening if not opening["label"].strip() else found
            position = _CLOSES[ticks].search(text, position).end()
    return found


def check(
    answer: str,
    gold: Sequence[Mapping[str, Any]],
    *,
    score: str = "strict",
    most_tests: int = 20,
    wall_seconds: float = 4.0,
    cpu_seconds: float = 3.0,
    total_seconds: float = 20.0,
    memory_mb: int = 512,
    packages: Sequence[str] = (),
) -> Grade:
    """Runs tests of a program; ungraded on a machine without a sandbox.

    Args:
      answer: the program.
      gold: the tests (`trial`). Their fields are checked; if one is invalid, the grade is ungraded.
      score: "strict": 1 if all tests pass, else 0. "fraction": the fraction of passed tests, which
        rewards special cases. `info` has both.
      most_tests: largest number of tests that are run, the same ones each time.
      wall_seconds, cpu_seconds, memory_mb: limits of a test.
      total_seconds: time for all tests (seconds); tests that are not reached have not passed.
      packages: installed packages that a program may import in addition to the standard library.
    Metrics: strict (1 if all tests are passed), fraction (fraction of passed tests).
    Raises:
      ValueError: score is unknown, a limit is out of range, or a package is not installed.
    """
    if score not in _SCORES:
        raise ValueError(f"code: score must be one of {', '.join(_SCORES)}, got {score!r}")
    if most_tests < 1:
        raise ValueError(f"code: most_tests must be at least 1, got {most_tests}")
    if not total_seconds > 0:
        raise ValueError(f"code: total_seconds must be more than 0, got {total_seconds}")
    limits = Limits(wall_seconds, cpu_seconds, memory_mb, packages=tuple(packages))
    if wrong := _wrong(gold):
        return Grade(None, answer=answer, stage=wrong)
    tests = gold
    if len(gold) > most_tests:
        sampled = random.Random(json.dumps(encoded(gold))).sample(range(len(gold)), most_tests)
        tests = [gold[number] for number in sorted(sampled)]
    try:
        words = run_tests(shared(), answer, tests, limits, total_seconds)
    except NoVerdict as reason:
        return Grade(None, answer=answer, stage=str(reason))
    fraction = words.count(PASSED) / len(words)
    info = {"strict": float(fraction == 1), "fraction": fraction}
    failed = [word for word in words if word != PASSED]
    return Grade(info[score], answer=answer, stage=failed[0] if failed else PASSED, info=info)


def _wrong(gold: Any) -> str:
    """Why these are not valid tests; "" if they are."""
    if not isinstance(gold, list | tuple) or not gold:
        return "no tests"
    for test in gold:
        kind = test.get("kind") if isinstance(test, Mapping) else None
        if not isinstance(kind, str) or kind not in _FIELDS:
            return "a test of no known kind"
        fields = _FIELDS[kind]
        if not fields.keys() <= test.keys():
            return f"a test without {min(fields.keys() - test.keys())}"
        for name, wanted in (_OPTIONAL | fields).items():
            if name in test and not isinstance(test[name], wanted):
                return f"a test whose {name} is a {type(test[name]).__name__}"
        if not is_utf8(test.get("in", "")):
            return "a test whose in is not a text"
    return ""
