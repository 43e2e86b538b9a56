"""Units of measurement: which names mean the same, and what is left of an answer without its unit.

`split_unit` knows the names below, "square" and "cubic", powers, and one unit per another ("miles
per hour"). It does not convert: 1 m and 100 cm are different answers.
"""

from __future__ import annotations

import re

__all__ = ["split_unit"]

# One unit a line: its canonical name, then the others. The last block is what questions count.
_TABLE = """
% percent pct
° degree degrees deg
rad radian radians
m meter meters metre metres
dm decimeter decimeters decimetre decimetres
cm centimeter centimeters centimetre centimetres
mm millimeter millimeters millimetre millimetres
μm micrometer micrometers
nm nanometer nanometers
km kilometer kilometers kilometre kilometres
in inch inches
ft foot feet
yd yds yard yards
mi mile miles
acre acres
ha hectare hectares
mg milligram milligrams
g gm gram grams
kg kgs kilogram kilograms
oz ounce ounces
lb lbs pound pounds
mL ml milliliter milliliters millilitre millilitres
cL cl centiliter centiliters
L l liter liters litre litres
gal gallon gallons
ms millisecond milliseconds
s sec secs second seconds
min mins minute minutes
h hr hrs hour hours
day days
week weeks
month months
year years yr yrs
dollar dollars USD
cent cents
euro euros
rupee rupees
mi/h mph
km/h kmh kph kmph
Hz hertz
kHz
MHz
J joule joules
kJ
MJ
W watt watts
mW
kW
K kelvin
N newton newtons
V volt volts
Pa
kPa
MPa
unit units

person persons people
man men
woman women
child children
student students
way ways
point points
digit digits
edge edges
tile tiles
coin coins
toy toys
apple apples
meal meals
"""
_CANONICAL = {name: line.split()[0] for line in _TABLE.splitlines() for name in line.split()}


def _one(number: int) -> str:
    """Pattern of one unit with its power, which names its groups with this number."""
    names = sorted(filter(str.isalpha, _CANONICAL), key=len, reverse=True)
    return (
        rf"(?:(?P<square{number}>sq(?:uare|\.)?|cu(?:bic|\.)?)\s+)?"
        rf"(?P<name{number}>{'|'.join(names)})(?:\^\{{(?P<power{number}>[23])\}})?"
    )


_UNIT = re.compile(
    rf"(?P<rest>.*?\S)(?P<space>\s*)(?:(?P<sign>[%°])|{_one(1)}(?:\s*(?:/|\bper\b)\s*{_one(2)})?)$"
)


def split_unit(text: str) -> tuple[str, str]:
    """Returns an answer without the unit at its end, and the unit's one name; "" without a unit.

    A name that touches the number has two letters or more: 5cm is a length, 5t a product.
    """
    # No unit ends with a digit, and most answers do.
    if text[-1:].isdigit() or (match := _UNIT.match(text)) is None:
        return text, ""
    found = match.groupdict(default="")
    if found["sign"]:
        return found["rest"], found["sign"]
    if not found["space"] and (len(found["name1"]) == 1 or not re.search(r"[\d}]$", found["rest"])):
        return text, ""
    return found["rest"], "/".join(_named(found, n) for n in "12" if found[f"name{n}"])


def _named(found: dict[str, str], number: str) -> str:
    square = {"sq": "2", "cu": "3"}.get(found[f"square{number}"][:2], "")
    power = found[f"power{number}"] or square
    return _CANONICAL[found[f"name{number}"]] + (f"^{power}" if power else "")
