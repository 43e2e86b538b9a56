"""Geometry programs: a construction with coordinates, executed, and its number compared.

    ```geo
    A = point(0, 0)
    c = circle(A, 5)
    l = line(point(0, 3), point(1, 3))      # a comment
    answer = distance(A, intersect(c, l, 2))
    ```

All `geo` fences after the last </think> are one program, one `name = value` a line, each name once
and `answer` in the last line. Values are numbers, pi, names, + - * / ^ and brackets, sqrt, and

    point(x, y)  line(P, Q)  circle(P, r)  midpoint(P, Q)  foot(P, l)  reflect(P, l)
    intersect(u, v)      where two curves meet, if that is once
    intersect(u, v, k)   the k-th such point by x, then y
    distance(P, Q or l)  angle(P, Q, R) at Q in degrees  area(P, Q, R, …)

The answer must be a number that depends on a construction. Degenerate, undefined or unknown values
are errors. The language is ours: GF-Reasoner ("Bridging Formal Language with Chain-of-Thought
Reasoning to Geometry Problem Solving") has published neither its language nor its code.
"""

import math
import re
from typing import Any

from rlvr_jax.verifiers.fences import behind_thinking, fences
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.programs.expressions import OPERATIONS, Unreadable, postfix
from rlvr_jax.verifiers.programs.plane import CONSTRUCTIONS, Degenerate

_TOLERANCE = 1e-3  # relative; absolute for a gold of 0
_MAX_LINES, _MAX_LINE = 200, 1000  # characters
_LINE = re.compile(r"\s*([A-Za-z_][A-Za-z_0-9]*)\s*=(?!=)(.*)", re.DOTALL)
_RESERVED = {"pi", "sqrt", *CONSTRUCTIONS}


def extract(response: str) -> str | None:
    """The program of a response: its `geo` fences, one after the other; None without one."""
    answer = behind_thinking(response)
    pieces = fences(answer, "geo") if answer is not None else []
    return "\n".join(pieces) if pieces else None


def check(program: str, gold: Any) -> Grade:
    """1 if the program's number is the gold within 1e-3, else 0; its stage marks an error. If the
    gold is not a number, the answer is ungraded.

    Metrics: program_error (1 for a program without a value).
    """
    if isinstance(gold, bool) or not isinstance(gold, int | float) or not math.isfinite(gold):
        return Grade(None, stage="gold")
    try:
        value = evaluate(program)
    except (Unreadable, Degenerate, ArithmeticError, ValueError):
        return Grade(0.0, stage="error", info={"program_error": 1.0})
    right = abs(value - gold) <= _TOLERANCE * (abs(gold) or 1.0)
    return Grade(float(right), answer=f"{value:.6g}", stage="value", info={"program_error": 0.0})


def evaluate(program: str) -> float:
    """The number that a program constructs.

    Raises:
      Unreadable: a line is not a definition, a name occurs twice, the answer is missing or not in
        the last line, or the answer is not a number that comes from a construction.
      Degenerate, ArithmeticError: a construction or an operation has no result.
    """
    lines = [line.partition("#")[0].strip() for line in program.splitlines()]
    lines = [line for line in lines if line]
    if not lines or len(lines) > _MAX_LINES or max(map(len, lines)) > _MAX_LINE:
        raise Unreadable(f"program: 1..{_MAX_LINES} lines of at most {_MAX_LINE} characters needed")
    known: dict[str, _Value] = {"pi": _Value(math.pi, False)}
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        name = match[1] if match else ""
        if not match or name in known or name in _RESERVED:
            raise Unreadable(f"program: a line must define a new name, got {line!r}")
        if (name == "answer") != (number == len(lines)):
            raise Unreadable("program: the last line, and no other, must be the answer")
        known[name] = _value(match[2], known)
    found = known["answer"]
    if not isinstance(found.value, float) or not found.constructed:
        raise Unreadable("program: the answer must be a number that comes from a construction")
    return found.value


class _Value:
    """A number or an object, and whether it comes from a construction."""

    def __init__(self, value: Any, constructed: bool):
        if isinstance(value, complex) or not _finite(value):
            raise Degenerate("program: values must be finite")
        self.value = value
        self.constructed = constructed


def _finite(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_finite, value))
    return math.isfinite(value)


def _value(text: str, known: dict[str, _Value]) -> _Value:
    stack: list[_Value] = []
    for kind, value, count in postfix(text):
        if kind == "number":
            stack.append(_Value(value, False))
        elif kind == "name":
            if value not in known:
                raise Unreadable(f"program: names must be known, got {value!r}")
            stack.append(known[value])
        elif kind == "call":
            arguments = stack[-count:]
            del stack[-count:]
            stack.append(_call(value, arguments))
        elif kind == "negative":
            (number,) = _numbers(stack[-1:])
            stack[-1] = _Value(-number, stack[-1].constructed)
        else:
            right, left = stack.pop(), stack.pop()
            result = OPERATIONS[kind](*_numbers([left, right]))
            stack.append(_Value(result, left.constructed or right.constructed))
    return stack[0]


def _call(name: str, arguments: list[_Value]) -> _Value:
    if name == "sqrt":
        if len(arguments) != 1:
            raise Unreadable("sqrt: one argument required")
        return _Value(math.sqrt(*_numbers(arguments)), arguments[0].constructed)
    if name not in CONSTRUCTIONS:
        raise Unreadable(f"program: functions must be known, got {name!r}")
    return _Value(CONSTRUCTIONS[name]([argument.value for argument in arguments]), True)


def _numbers(values: list[_Value]) -> list[float]:
    if not all(isinstance(value.value, float) for value in values):
        raise Unreadable("program: arithmetic requires numbers")
    return [value.value for value in values]
