"""Units after a number: the names of each, and the factor between two.

`split_unit` removes the unit or the counted things at the end of an answer. It knows names of the
table with powers and "square" or "cubic", products and quotients of them ("m s^{-2}", "miles per
hour"), currency signs, and other words (`words` has those that must stay). `factor` compares two
units. It only converts SI prefixes of one unit, units of time, and cents of a dollar.
"""

import functools
import re
from fractions import Fraction

from rlvr_jax.verifiers.maths.words import counted, singular

# One unit a line: its canonical name, then the others.
_TABLE = """
% percent pct percents percentage
° degree degrees deg degs
°C Celsius celsius centigrade
°F Fahrenheit fahrenheit
rad radian radians
in inch inches
ft foot feet
yd yds yard yards
mi mile miles
ha hectare hectares
oz ounce ounces
lb lbs
pound pounds
gal gallon gallons
qt quart quarts
pt pint pints
min mins minute minutes
h hr hrs hour hours
week weeks wk wks
year years yr yrs
$ dollar dollars USD usd bucks
¢ cent cents
€ euro euros EUR
£ GBP
¥ yen JPY
元 yuan RMB CNY 块
₹ rupee rupees INR Rs rs
mi/h mph
km/h kph kmph
cal calorie calories
atm atmosphere atmospheres
"""
# Units that take prefixes: symbol, then names; a single symbol may be a length or a mass.
_METRIC = """
m meter metre
g gram gm
s second sec
L liter litre
Hz hertz
J joule
W watt
N newton
V volt
Pa pascal
K kelvin
A ampere amp
Ω ohm Ohm
eV electronvolt
mol mole
T tesla
F farad
C coulomb
Wh watthour
"""
_PREFIXES = {
    "": ("", 0),
    "G": ("giga", 9),
    "M": ("mega", 6),
    "k": ("kilo", 3),
    "d": ("deci", -1),
    "c": ("centi", -2),
    "m": ("milli", -3),
    "μ": ("micro", -6),
    "n": ("nano", -9),
    "p": ("pico", -12),
}
_CANONICAL = {name: line.split()[0] for line in _TABLE.splitlines() for name in line.split()}
_CANONICAL |= {name: name for name in ("mmHg", "dB", "rpm", "amu")}
for _name in ("acre", "ton", "tonne", "cup", "day", "month", "unit", "erg", "bar", "bit", "byte"):
    _CANONICAL |= {_name: _name, _name + "s": _name}
# Canonical name -> the unit that it is converted to, and the amount of that unit.
_SCALE: dict[str, tuple[str, Fraction]] = {
    "min": ("s", Fraction(60)),
    "h": ("s", Fraction(3600)),
    "day": ("s", Fraction(86_400)),
    "week": ("s", Fraction(604_800)),
    "month": ("month", Fraction(1)),
    "year": ("month", Fraction(12)),
}
for _line in filter(None, _METRIC.splitlines()):
    _symbol, *_names = _line.split()
    for _short, (_long, _power) in _PREFIXES.items():
        _SCALE[_short + _symbol] = (_symbol, Fraction(10) ** _power)
        for _name in (_short + _symbol, *(_long + n for n in _names)):
            _CANONICAL.setdefault(_name, _short + _symbol)
            if len(_name) > 2:
                _CANONICAL.setdefault(_name + "s", _short + _symbol)
_CANONICAL |= {"l": "L", "ml": "mL", "cl": "cL", "dl": "dL", "kgs": "kg", "kms": "km", "cms": "cm"}
# Single letters that are not units: 5 A, 5 C, 5 F and 5 T are more often products.
_NOT_ALONE = frozenset(["A", "C", "F", "T"])

MONEY = ("US$", "USD", "$", "€", "£", "¥", "₹", "Rs", "EUR", "GBP", "RMB", "CNY", "元")


def money(sign: str | None) -> str:
    """The one name of a currency before a number, "" without."""
    sign = (sign or "").strip(" .")
    return _CANONICAL.get(sign, "$" if sign.endswith("$") else "")


def unit_name(word: str) -> str:
    """The one name of a unit of the table, "" for any other word."""
    word = word.strip(" .")
    return _CANONICAL.get(word) or (_CANONICAL.get(word.lower(), "") if len(word) > 3 else "")


_START = re.compile(
    r"(?:\\(?!Omega(?![A-Za-z])|mu(?![A-Za-z])|mod(?![A-Za-z]))[A-Za-z]+\s*"
    r"|[^A-Za-z\\ΩμÅ%°$€£¥₹¢元\u0400-\u04ff\u4e00-\u9fff])*"
)
_PIECE = re.compile(
    r"\s*(?:(?P<name>\\Omega|\\mu|[%°]C?F?|[$€£¥₹¢Ω元]|[^\W\d_]+(?:[-'][^\W\d_]+)*)\.?"
    r"(?:\^\s*\{?\s*(?P<power>-?\d)\s*\}?)?|(?P<sign>/|\\cdot|\*|[()]))"
)
_SQUARE = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}


@functools.lru_cache(maxsize=16384)
def split_unit(text: str) -> tuple[str, str]:
    """Splits an answer into its text and the unit's canonical name, which is "" without a unit.

    A unit directly after the number has two letters or more: 5cm is a length, 5t a product.
    """
    if text[-1:].isdigit():  # no unit ends with a digit, and most answers do
        return text, ""
    if text.endswith(")") and (bracket := re.search(r"[\d})]\s*\(([^()]*)\)$", text)):
        unit = _unit(bracket[1]) if re.search(r"[^\W\d_]{2}", bracket[1]) else ""
        if unit:
            return text[: bracket.start() + 1], unit
    start = _START.match(text).end()
    number, tail = text[:start], text[start:]
    rest = number.rstrip()
    if not tail or not rest or rest.count("{") != rest.count("}"):
        return text, ""
    if not re.search(r"[\d})\]!.]$|\\pi$|\\infty$|^$", rest) or rest.count("(") != rest.count(")"):
        return text, ""
    touching = rest == number and re.match(r"[A-Za-z](?![A-Za-z])", tail)
    unit = "" if touching else _unit(tail)
    return (rest, unit) if unit else (text, "")


def _unit(text: str) -> str:
    """The canonical name of a unit, or of the counted things; "" for anything else."""
    pieces, position = [], 0
    while position < len(text):
        match = _PIECE.match(text, position)
        if match is None or match.end() == position:
            return ""
        pieces.append(match)
        position = match.end()
    powers = _powers(pieces)
    if powers is None:
        if any(piece["sign"] in ("*", "\\cdot") or piece["power"] for piece in pieces):
            return ""
        return counted([piece["name"] or piece["sign"] for piece in pieces], _CANONICAL)
    top = "·".join(_power(name, n) for name, n in sorted(powers.items()) if n > 0)
    bottom = "·".join(_power(name, -n) for name, n in sorted(powers.items()) if n < 0)
    return f"{top}/{bottom}" if bottom else top


def _power(name: str, exponent: int) -> str:
    return name if exponent == 1 else f"{name}^{exponent}"


def _powers(pieces: list[re.Match]) -> dict[str, int] | None:
    """Exponents by unit, 1 for m and -1 for s of m/s; None if a name is not a unit."""
    powers: dict[str, int] = {}
    sign, square, prefix, degree = 1, 0, "", False
    for place, piece in enumerate(pieces):
        name = piece["name"]
        if name is None or name == "per":
            sign = -1 if name or piece["sign"] == "/" else sign
            continue
        if name in _SQUARE:
            square = _SQUARE[name]
            continue
        ohm = place + 1 < len(pieces) and pieces[place + 1]["name"] in ("\\Omega", "Ω")
        if name in ("\\mu", "μ") or (ohm and name in _PREFIXES):
            prefix = name.replace("\\mu", "μ")
            continue
        name = prefix + {"\\Omega": "Ω"}.get(name, name)
        known = unit_name(name)
        if not known or (known in _NOT_ALONE and len(name) == 1 and len(pieces) == 1):
            return None
        if known in ("°C", "°F") and degree:
            powers.pop("°", None)
        degree = known == "°"
        if place and known in ("%",) and powers:
            return None
        for part, inverse in zip(known.split("/"), (1, -1), strict=False):
            exponent = int(piece["power"] or 1) * (square or 1) * sign * inverse
            powers[part] = powers.get(part, 0) + exponent
        square, prefix = 0, ""
    return {name: n for name, n in powers.items() if n} if powers and not square else None


def factor(gold: str, answer: str) -> Fraction | None:
    """The factor from a number in the answer's unit to the gold's unit; None if they differ.

    One side may lack a unit, except for a percentage, which is a part of the number.
    """
    if gold == answer:
        return Fraction(1)
    if "%" in (gold, answer):
        return None
    if not gold or not answer:
        return Fraction(1)
    if {gold, answer} <= {"$", "¢"}:
        return Fraction(1, 100) if answer == "¢" else Fraction(100)
    if {gold, answer} in ({"pound", "lb"}, {"pound", "£"}, {"°", "°C"}, {"°", "°F"}, {"¥", "元"}):
        return Fraction(1)
    pair = [_scaled(unit) for unit in (gold, answer)]
    if None not in pair and pair[0][0] == pair[1][0]:
        return pair[1][1] / pair[0][1]
    named = [frozenset(map(singular, u.removeprefix("~").split())) for u in (gold, answer)]
    if any(unit.startswith("~") and "per" not in unit.split() for unit in (gold, answer)):
        return Fraction(1) if named[0] <= named[1] or named[1] <= named[0] else None
    return None


def _scaled(unit: str) -> tuple[str, Fraction] | None:
    """One unit and a power of it in the unit that it is converted to: km^2 is 10^6 m^2."""
    name, _, power = unit.partition("^")
    if name not in _SCALE:
        return None
    base, amount = _SCALE[name]
    return f"{base}^{power}", amount ** int(power or 1)
