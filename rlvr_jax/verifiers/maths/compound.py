"""Quantities in two units or three: 12° 30' 15'', 2 hours 30 minutes, as one number.

The units go from large to small, and of a smaller one there is less than one of the larger: 75
minutes behind hours are no part of them. A comma or "and" joins times and angles only: "5 m, 30 cm"
are two lengths.
"""

import re
from fractions import Fraction

from rlvr_jax.verifiers.maths.units import factor, unit_name

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(°|''?|\"|[A-Za-z]+\.?)(?:\s*,)?(?:\s+and\b)?\s*")
_ARC = {"°": Fraction(1), "'": Fraction(1, 60), "''": Fraction(1, 3600), '"': Fraction(1, 3600)}
_JOINED = frozenset(["°", "min", "h", "day", "week", "month", "year"])
_ARC |= {"min": _ARC["'"], "s": _ARC["''"]}


def read_compound(text: str) -> tuple[Fraction, str] | None:
    """The value in the largest unit, and that unit; None for anything else."""
    amounts = _AMOUNT.findall(text) if _AMOUNT.sub("", text) == "" else []
    if not 2 <= len(amounts) <= 4 or any("." in number for number, _ in amounts[:-1]):
        return None
    units = [name if name in _ARC else unit_name(name) for _, name in amounts]
    if re.search(r",|\band\b", text) and units[0] not in _JOINED:
        return None
    value, before = Fraction(0), Fraction(0)
    for (number, _), unit in zip(amounts, units, strict=True):
        worth = _ARC.get(unit) if units[0] == "°" else factor(units[0], unit)
        part = worth and Fraction(number) * worth
        if not worth or (before and not (worth < before and part < before)):
            return None
        value, before = value + part, worth
    return value, units[0]
