"""Symbolic regression: fits the constants of an equation; the grade is its error on held-out data.

    reward = clip(−(1/3) · log10(s), 0, 1),   s = mean |(ŷ − y) / y| on the test part

so an error of 100 % has the reward 0, 10 % a third, 0.1 % or less 1. An equation has at most 500
characters: numbers, inputs x1, x2 … (or x_1), constants c1 … c10, + − × ÷, sin cos exp log sqrt,
brackets, and powers with a number of at most 10 in absolute value. Any other text has the reward 0,
and nothing is executed; the paper runs Python functions that the model writes.

Least squares fits the constants to the training part, from three starts (all 1, all 0.1, and
1 −2 3 …) with 200 evaluations each. The lowest cost counts. Test points with y = 0 are left out.

Source: SR-Scientist, https://github.com/GAIR-NLP/SR-Scientist (reward); the grammar is ours.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlvr_jax.verifiers.answers import in_tag
from rlvr_jax.verifiers.fences import behind_thinking
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.programs.expressions import OPERATIONS, Instruction, Unreadable, postfix

_MAX_CHARACTERS = 500
_MAX_CONSTANTS = 10
_MAX_EXPONENT = 10
_EVALUATIONS = 200
_EXACT = 1e-8  # an error that is float noise
_LARGEST = 1e12  # predictions are clipped to it before the error
_INPUT = re.compile(r"x_?([1-9][0-9]{0,3})")
_CONSTANT = re.compile(r"c([1-9][0-9]?)")
_FUNCTIONS = ("sin", "cos", "exp", "log", "sqrt")


def extract(response: str) -> str | None:
    """The content of the last <answer>…</answer> after the thinking."""
    answer = behind_thinking(response)
    return None if answer is None else in_tag(answer)


def check(equation: str, gold: Mapping[str, Any]) -> Grade:
    """The reward of an equation.

    Args:
      equation: a text of the grammar above.
      gold: "x_train", "x_test" (rows of inputs), "y_train", "y_test". The answer is ungraded if the
        data do not fit together or no test point has y ≠ 0.

    Metrics: unreadable (1 for an equation outside of the grammar).
    """
    data = _data(gold)
    if data is None:
        return Grade(None, stage="gold")
    try:
        error = held_out_error(equation, *data)
    except Unreadable:
        return Grade(0.0, stage="grammar", info={"unreadable": 1.0})
    return Grade(
        reward_of_error(error), answer=equation.strip(), stage="fit", info={"unreadable": 0.0}
    )


def reward_of_error(error: float | None) -> float:
    """clip(−(1/3) · log10(error), 0, 1); 0 for None (no equation) and for NaN."""
    if error is None or math.isnan(error):
        return 0.0
    if error < _EXACT:
        return 1.0
    return min(max(-math.log10(error) / 3, 0.0), 1.0)


def held_out_error(equation: str, x_train: Any, y_train: Any, x_test: Any, y_test: Any) -> float:
    """Mean absolute relative error on the test part, constants fitted to the training part.

    Args:
      equation: a text; raises `Unreadable` outside of the grammar over these inputs.
      x_train, x_test: arrays [N, inputs].
      y_train, y_test: arrays [N].
    Returns:
      NaN if a prediction is not finite.
    """
    program, names = _program(equation, x_train.shape[1])
    constants = _fitted(program, names, x_train, y_train)
    nonzero = y_test != 0
    predicted = _predict(program, names, constants, x_test)[nonzero]
    if not np.isfinite(predicted).all():
        return math.nan
    predicted = np.clip(predicted, -_LARGEST, _LARGEST)
    return float(np.mean(np.abs((predicted - y_test[nonzero]) / y_test[nonzero])))


def _data(gold: Any) -> tuple[Any, Any, Any, Any] | None:
    try:
        arrays = [
            np.asarray(gold[part], float) for part in ("x_train", "y_train", "x_test", "y_test")
        ]
    except (KeyError, TypeError, ValueError):
        return None
    x_train, y_train, x_test, y_test = arrays
    fits = x_train.ndim == x_test.ndim == 2 and x_train.shape[1] == x_test.shape[1]
    fits = fits and y_train.shape == x_train.shape[:1] and y_test.shape == x_test.shape[:1]
    usable = fits and y_train.size and y_test.any() and all(map(np.all, map(np.isfinite, arrays)))
    return (x_train, y_train, x_test, y_test) if usable else None


def _program(equation: str, num_inputs: int) -> tuple[list[Instruction], list[str]]:
    """The postfix form and the names of its constants; raises `Unreadable` outside of the
    grammar."""
    if len(equation) > _MAX_CHARACTERS:
        raise Unreadable(f"equation: at most {_MAX_CHARACTERS} characters required")
    program = postfix(equation)
    names = []
    for place, (kind, value, count) in enumerate(program):
        if kind == "name":
            column, constant = _INPUT.fullmatch(value), _CONSTANT.fullmatch(value)
            known = (column and int(column[1]) <= num_inputs) or (
                constant and int(constant[1]) <= _MAX_CONSTANTS
            )
            if not known:
                raise Unreadable(f"equation: names must be inputs or constants, got {value!r}")
            names += [value] if constant else []
        elif kind == "call" and (value not in _FUNCTIONS or count != 1):
            raise Unreadable(f"equation: functions must be of {_FUNCTIONS}, got {value!r}")
        elif kind == "^":
            before = program[place - 1]
            before = program[place - 2] if before.kind == "negative" else before
            if before.kind != "number" or before.value > _MAX_EXPONENT:
                raise Unreadable(f"equation: exponents must be numbers up to {_MAX_EXPONENT}")
    return program, sorted(set(names), key=lambda name: int(name[1:]))


def _predict(program: Sequence[Instruction], names: Sequence[str], constants: Any, x: Any) -> Any:
    """Predictions [N] for inputs [N, inputs]; NaN where they are undefined."""
    given = dict(zip(names, constants, strict=True))
    stack: list[Any] = []
    with np.errstate(all="ignore"):
        for kind, value, _ in program:
            if kind == "number":
                stack.append(np.float64(value))
            elif kind == "name":
                column = _INPUT.fullmatch(value)
                stack.append(x[:, int(column[1]) - 1] if column else np.float64(given[value]))
            elif kind == "call":
                stack.append(getattr(np, value)(stack.pop()))
            elif kind == "negative":
                stack.append(-stack.pop())
            else:
                right, left = stack.pop(), stack.pop()
                stack.append(OPERATIONS[kind](left, right))
    return np.broadcast_to(stack[0], len(x))


def _fitted(program: Sequence[Instruction], names: Sequence[str], x: Any, y: Any) -> Any:
    """The constants of the lowest squared error on the training part."""
    if not names:
        return np.zeros(0)
    from scipy.optimize import least_squares

    def residuals(constants: Any) -> Any:
        predicted = np.nan_to_num(_predict(program, names, constants, x), nan=_LARGEST)
        return np.clip(predicted, -_LARGEST, _LARGEST) - y

    places = np.arange(1, len(names) + 1)
    starts = (np.ones(len(names)), np.full(len(names), 0.1), places * (-1.0) ** (places + 1))
    fits = [least_squares(residuals, start, max_nfev=_EVALUATIONS) for start in starts]
    return min(fits, key=lambda fit: fit.cost).x
