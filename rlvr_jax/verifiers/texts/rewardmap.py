"""Routes on a map of lines, and small questions about it, with partial credit.

Gold: {"type": "route", "from", "to", "transfers", "map", "lines": {name: stops}}, or {"type":
"truefalse" or "count", "gold", "map"}; "map" is how difficult the map is.

    score = weight · (10 · correct + detail / 2)

The weight multiplies all rewards of a prompt, so it has no effect if these are divided by their
deviation. With 0 transfers, the release counts even the only leg of a direct route as one too many,
at a cost of 5.

Source: https://github.com/fscdc/RewardMap, whose cleaning of station names is left out.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from rlvr_jax.verifiers.grade import Grade

_WEIGHTS = {"easy": 1.0, "middle": 1.2, "hard": 1.5}
_TRANSFER_WEIGHT = 0.5
_LARGEST_DETAIL = 10.0

_DIGITS = re.compile(r"[0-9]{1,6}")
_LABELS = ("Route Name:", "Departure Stop:", "Arrival Stop:")


class Leg(NamedTuple):
    """A ride on one line."""

    line: str
    start: str
    end: str


def legs(answer: str) -> list[Leg]:
    """The legs of a route, separated by --; parts without a name or a stop are skipped."""
    found = []
    for part in answer.split("--"):
        values = [_after(part, label) for label in _LABELS]
        if all(values):
            found.append(Leg(*values))
    return found


def check(answer: str, gold: Mapping[str, Any]) -> Grade:
    """1 if correct. Other questions are ungraded.

    Metrics: detail (points of the parts of a route), score (weighted points).
    """
    weight, detail = _WEIGHTS.get(gold["map"]), 0.0
    if weight is None or gold["type"] not in ("route", "truefalse", "count"):
        return Grade(None, answer=answer, stage="unknown question")
    if gold["type"] == "route":
        route = legs(answer)
        weight += _TRANSFER_WEIGHT * (gold["transfers"] > 0)
        asked = bool(route) and (route[0].start, route[-1].end) == (gold["from"], gold["to"])
        correct = asked and _rides(route, gold["lines"])
        detail = _detail(route, gold) if asked else 0.0
    elif gold["type"] == "truefalse":
        correct = answer.strip().lower() == str(gold["gold"]).lower()
    else:
        number = answer.strip()
        correct = bool(_DIGITS.fullmatch(number)) and int(number) == gold["gold"]
    score = weight * (10 * correct + detail / 2)
    return Grade(
        float(correct), answer=answer, stage=gold["type"], info={"detail": detail, "score": score}
    )


def _after(part: str, label: str) -> str:
    """The rest of the first line that has a label, "" without one."""
    _, found, rest = part.partition(label)
    return rest.partition("\n")[0].strip() if found else ""


def _on(leg: Leg, lines: Mapping[str, Sequence[str]]) -> bool:
    """Whether a leg's line exists and has both of its stops."""
    return {leg.start, leg.end} <= set(lines.get(leg.line, ()))


def _rides(route: Sequence[Leg], lines: Mapping[str, Sequence[str]]) -> bool:
    meet = all(leg.end == after.start for leg, after in pairwise(route))
    return meet and all(_on(leg, lines) for leg in route)


def _detail(route: Sequence[Leg], gold: Mapping[str, Any]) -> float:
    """2 for correct ends of the route. For each leg -5 if it is one too many, 4 or 3 for its line,
    1 for its change, which the last leg does not have."""
    lines, transfers = gold["lines"], gold["transfers"]
    direct = next(
        (n for n, stops in lines.items() if {gold["from"], gold["to"]} <= set(stops)), None
    )
    detail = 2.0
    for number, leg in enumerate(route):
        allowed = number < transfers
        detail -= 5 * (not allowed)
        if transfers == 0:
            detail += 4 * (leg.line == direct)
        else:
            detail += 3 * (leg.line in lines)
        meets = leg.end in [after.start for after in route[number + 1 : number + 2]]
        detail += allowed and meets and _on(leg, lines)
    return min(detail, _LARGEST_DETAIL)
