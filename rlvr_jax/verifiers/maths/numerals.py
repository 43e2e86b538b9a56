"""Numbers as people write them, read exactly: fractions, powers, repeating decimals, π, bases,
ordinals.

Takes a text of `notation.normalise`. A decimal stores the value of its last digit, which is its
precision. A number in another base stores its digits.
"""

import re
from dataclasses import replace
from fractions import Fraction

from rlvr_jax.verifiers.maths.units import MONEY, factor, money, split_unit, unit_name
from rlvr_jax.verifiers.maths.values import Number
from rlvr_jax.verifiers.maths.words import NUMBER_WORDS, SCALES

_MAX_EXPONENT = 10**4  # of a power that is computed here
_MAX_DIGITS = 10**4

_DECIMAL = r"(?:[1-9]\d{0,2}(?:(?:,\d{3})+|(?: \d{3})+)(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)"
_MONEY = "|".join(map(re.escape, sorted(MONEY, key=len, reverse=True)))
_SIGNED = re.compile(rf"([-+]?)\s*((?:{_MONEY})\.?\s*)?([-+]?)\s*(.*)", re.DOTALL)
_INTEGER = re.compile(rf"({_DECIMAL})$")
_REPEATING = re.compile(r"(\d*)\.(\d*)(?:\\(?:overline|bar|dot)\s*\{(\d+)\}|\((\d+)\))$")
_DOTTED = re.compile(r"(\d*)\.(\d*)\\dot\s*\{?(\d)\}?(\d*)\\dot\s*\{?(\d)\}?$")
_ENDLESS = re.compile(r"(\d*)\.(\d+?)??(?:(\d)\3\3+|(\d{2,12}?)\4+)\s*\\dots$")
_RATIO = re.compile(rf"({_DECIMAL})\s*/\s*({_DECIMAL})$")
_FRAC = re.compile(rf"\\frac\s*\{{\s*([-+]?{_DECIMAL})\s*\}}\s*\{{\s*([-+]?{_DECIMAL})\s*\}}$")
_MIXED = re.compile(r"(\d+)(?:\s*\\frac\s*\{\s*(\d+)\s*\}\s*\{\s*(\d+)\s*\}|\s+(\d+)/(\d+))$")
_POWER = re.compile(r"(\d{1,6})\^(?:(\d+)|\{([-+]?\d{1,5})\}|\(([-+]?\d{1,5})\))$")
_SCIENCE = re.compile(
    rf"(?:({_DECIMAL})\s*(?:\\times|\\cdot|\*|x)\s*)?"
    r"10\s*\^\s*(?:(-?\d+)|\{\s*([-+]?\d{1,5})\s*\}|\(([-+]?\d{1,5})\))$"
)
_EXPONENT = re.compile(rf"({_DECIMAL})[eE]([-+]?\d{{1,5}})$")
# A single letter is a name: a_{11} is an entry of a sequence.
_BASED = re.compile(
    r"\(?\s*(\d|[0-9A-Fa-f]{2,60})\s*\)?\s*(?:_\s*\{\s*(\d{1,2}|[a-z]+)\s*\}|_(\d\d)"
    r"|\(?\s*(?:in\s+)?base[\s-]*(\d{1,2}|[a-z]+)\s*\)?)$"
)
_BASES = {**NUMBER_WORDS, "sixteen": 16, "twenty": 20}
_PI = re.compile(
    rf"(?:(?P<a>{_DECIMAL})?\s*(?:\\cdot|\\times|\*)?\s*\\pi\s*(?:/\s*(?P<b>{_DECIMAL}))?"
    rf"|\\frac\{{\s*(?P<c>{_DECIMAL})?\s*\\pi\s*\}}\{{\s*(?P<d>{_DECIMAL})\s*\}}"
    rf"|\\frac\{{\s*(?P<e>{_DECIMAL})\s*\}}\{{\s*(?P<f>{_DECIMAL})\s*\}}\s*\\pi)$"
)
_MODULUS = re.compile(r"(.*\S)\s*\\mod\s*\{\s*(\d{1,20})\s*\}$", re.DOTALL)
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5}
_AND_PART = re.compile(rf"(\d+)\s+and\s+(?:an?|one)[\s-]+({'|'.join(_PARTS)})$")
_ORDINAL = re.compile(r"(\d+)\s*(?:\^\s*\{?\s*|-)?(st|nd|rd|th)\s*\}?$")
_COMPOUND = re.compile(r"\d\s*[A-Za-z°]\D*\d.*[A-Za-z'\"]\.?$")
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(°|''?|\"|[A-Za-z]+\.?)(?:\s*,)?(?:\s+and\b)?\s*")
_ARC = {"°": Fraction(1), "'": Fraction(1, 60), "''": Fraction(1, 3600), '"': Fraction(1, 3600)}
_ARC |= {"min": _ARC["'"], "s": _ARC["''"]}
_JOINED = frozenset(["°", "min", "h", "day", "week", "month", "year"])
_SCALED = re.compile(
    rf"(.*\S)\s*(?<![A-Za-z])({'|'.join(SCALES)})s?(?![A-Za-z])\s*(.*)$", re.DOTALL
)
_WORD = re.compile(rf"({'|'.join(NUMBER_WORDS)})(?![A-Za-z-])", re.IGNORECASE)


def read_number(text: str) -> Number | None:
    """Reads a number with an optional sign, currency and unit; None if it is something else."""
    if match := _MODULUS.match(text):
        number = read_number(match[1])
        return number and replace(number, modulus=int(match[2]))
    if match := _WORD.match(text):
        text = f"{NUMBER_WORDS[match[1].lower()]}{text[match.end() :]}"
    if not re.search(r"\d|\\pi", text):
        return None
    scale = 1
    if (match := _SCALED.fullmatch(text)) and read_number(match[1]) is not None:
        scale, text = SCALES[match[2]], f"{match[1]} {match[3]}".strip()
    first, sign, second, text = _SIGNED.match(text).groups()
    if not text[-1:].isdigit() and _COMPOUND.search(text) and (found := _compound(text)):
        value, unit = found
        return None if sign else Number(-value if "-" in (first, second) else value, unit=unit)
    text, unit = split_unit(text)
    currency = money(sign)
    if second and (first or not currency):
        return None
    if currency and unit.startswith(("/", "~per ")):
        unit = currency + unit if unit[0] == "/" else f"~{currency} {unit[1:]}"
    elif currency and unit not in ("", currency):
        return None
    number = _unsigned(text.strip())
    if number is None:
        return None
    value = -number.value if "-" in (first, second) else number.value
    return replace(
        number,
        value=value * scale,
        last_digit=number.last_digit * scale,
        unit=unit or currency or number.unit,
    )


def _compound(text: str) -> tuple[Fraction, str] | None:
    """12° 30' 15'' or 2 hours 30 minutes in the largest unit, and that unit.

    The units go from large to small, and each smaller number is less than one larger unit: 75
    minutes are not added to hours. A comma or "and" connects only times and angles: "5 m, 30 cm"
    are two lengths.
    """
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


def _unsigned(text: str) -> Number | None:
    if not text or len(text) > _MAX_DIGITS:
        return None
    try:
        if match := _INTEGER.match(text):
            return _written(match[1])
        if match := _RATIO.match(text) or _FRAC.match(text):
            return Number(_exact(match[1]) / _exact(match[2]))
        if match := _MIXED.match(text):
            whole, top, bottom = [group for group in match.groups() if group]
            return Number(Fraction(int(whole)) + Fraction(int(top), int(bottom)))
        if match := _AND_PART.match(text):
            return Number(int(match[1]) + Fraction(1, _PARTS[match[2]]))
        if (match := _ORDINAL.match(text)) and match[2] == _ending(int(match[1])):
            return Number(Fraction(int(match[1])), unit="~th")  # the 5th is not 5 Ω
        if match := _SCIENCE.match(text) or _EXPONENT.match(text):
            exponent = int(next(group for group in match.groups()[1:] if group))
            if abs(exponent) > _MAX_EXPONENT:
                return None
            return _written(match[1] or "1", Fraction(10) ** exponent)
        if match := _POWER.match(text):
            exponent = int(next(group for group in match.groups()[1:] if group))
            if len(match[1]) * abs(exponent) > _MAX_DIGITS:
                return None
            return Number(Fraction(int(match[1])) ** exponent)
        if match := _BASED.match(text):
            digits, name = match[1], match[2] or match[3] or match[4]
            base = int(name) if name.isdigit() else _BASES.get(name, 0)
            if not 2 <= base <= 36:
                return None
            based = (digits.lower().lstrip("0") or "0", base)
            return Number(Fraction(int(digits, base)), based=based)
        if match := _PI.match(text):
            part = match.groupdict()
            top = part["a"] or part["c"] or part["e"] or "1"
            bottom = part["b"] or part["d"] or part["f"] or "1"
            return Number(_exact(top) / _exact(bottom), pi=True)
        return _endless(text)
    except (ValueError, ZeroDivisionError):
        return None


def _ending(number: int) -> str:
    """The ending of 1st, 2nd, 3rd, 4th, 11th."""
    if number % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _endless(text: str) -> Number | None:
    r"""0.1\overline{6}, 0.1(6), 0.1\dot{6}, 0.1666\dots."""
    match = _REPEATING.match(text) or _DOTTED.match(text) or _ENDLESS.match(text)
    if match is None:
        return None
    whole, once, *parts = (group or "" for group in match.groups())
    again = "".join(parts)
    repeated = Fraction(int(again), 10 ** len(again) - 1) / 10 ** len(once)
    return Number(Fraction(int(whole + once or "0"), 10 ** len(once)) + repeated)


def _written(digits: str, scale: Fraction = Fraction(1)) -> Number:
    """A number without a fraction bar; if it has a point, with the value of its last digit."""
    behind = digits.partition(".")[2]
    last = scale / 10 ** len(behind) if behind else Fraction(0)
    return Number(_exact(digits) * scale, last_digit=last)


def _exact(text: str) -> Fraction:
    return Fraction(re.sub("[, ]", "", text).rstrip(".") or "0")
