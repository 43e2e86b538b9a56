"""The arithmetic of this process: complex numbers of double precision."""

import cmath
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, ClassVar

from rlvr_jax.verifiers.maths.formulas.elementary import TooLarge


class Floats:
    """Complex numbers of double precision."""

    noise = -26  # half of the bits
    constants: ClassVar[Mapping[str, complex]] = {"pi": cmath.pi, "e": cmath.e, "i": 1j}
    functions: ClassVar[Mapping[str, Callable[..., Any]]] = {
        "sin": cmath.sin,
        "cos": cmath.cos,
        "tan": cmath.tan,
        "arcsin": cmath.asin,
        "arccos": cmath.acos,
        "arctan": cmath.atan,
        "sinh": cmath.sinh,
        "cosh": cmath.cosh,
        "tanh": cmath.tanh,
        **dict.fromkeys(("arsinh", "arcsinh"), cmath.asinh),
        **dict.fromkeys(("arcosh", "arccosh"), cmath.acosh),
        **dict.fromkeys(("artanh", "arctanh"), cmath.atanh),
        "ln": cmath.log,
        "exp": cmath.exp,
    }

    def number(self, value: Fraction) -> complex:
        try:
            return complex(value.numerator / value.denominator)
        except OverflowError as error:
            raise TooLarge from error

    def power(self, base: complex, exponent: complex) -> complex:
        return base**exponent

    def gamma(self, value: float) -> float:
        return math.gamma(value)

    def real(self, value: complex) -> float:
        return complex(value).real

    def imaginary(self, value: complex) -> float:
        return complex(value).imag

    def whole(self, value: float) -> int:
        """The largest integer that is not above; an integer up to rounding counts as one."""
        return math.floor(value + 1e-9)

    def size(self, value: complex) -> int:
        """Binary logarithm of the absolute value."""
        size = abs(value)
        if not math.isfinite(size):
            raise TooLarge
        return math.frexp(size)[1]
