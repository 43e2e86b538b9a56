r"""Routes: a map of three lines as text, and questions about it in order of difficulty.

    prompt    L1:Ba,Ko,Li,Mu;L2:Li,Te,Zo;L3:…;Ko on L1?           true
    prompt    L1:…;L2:…;L3:…;L2 stops?                            3
    prompt    L1:…;L2:…;L3:…;Ba>Te?                               a route, as below

    Route Name: L1\nDeparture Stop: Ba\nArrival Stop: Li\n--
    Route Name: L2\nDeparture Stop: Li\nArrival Stop: Te\n

The kinds are truefalse, count and route. Half of the routes have a change of lines. Neighbouring
lines share one stop. `rlvr_jax.verifiers.texts.rewardmap` grades the responses, with partial credit
for the parts of a route.

The base model often names a line that does not have both stops, or leaves out a leg.
"""

from collections.abc import Mapping, Sequence
from random import Random

from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.checked import verifier
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.tasks.sketches.words import BASE_MODEL, NAMES
from rlvr_jax.verifiers.checks import Check
from rlvr_jax.verifiers.texts.rewardmap import Leg

__all__ = ["route_text", "routes"]

KINDS = ("truefalse", "count", "route")
LENGTHS = (3, 4, 5)
"""Numbers of stops of a line."""


@generated(response_tokens=28)
def routes() -> Generated:
    """Questions of each kind, in equal numbers.

    Metrics: detail (points of the parts of a route), score (weighted points).
    """
    return Generated(
        _prompt,
        KINDS,
        verify=verifier(Check("rlvr_jax.verifiers.texts.rewardmap:check"), workers=0),
        base_model=BASE_MODEL,
        answers=True,
    )


def _prompt(random: Random, kind: str) -> Prompt:
    lines = _lines(random)
    text = "".join(f"{name}:{','.join(stops)};" for name, stops in lines.items())
    gold = {"type": kind, "map": "middle"}
    line = random.choice(list(lines))
    if kind == "truefalse":
        stop = random.choice(sorted({stop for stops in lines.values() for stop in stops}))
        answer = str(stop in lines[line]).lower()
        return Prompt(f"{text}{stop} on {line}?", gold | {"gold": answer}, kind, answer)
    if kind == "count":
        number = len(lines[line])
        return Prompt(f"{text}{line} stops?", gold | {"gold": number}, kind, str(number))
    legs = _legs(random, lines)
    start, end, transfers = legs[0].start, legs[-1].end, len(legs) - 1
    gold |= {"from": start, "to": end, "transfers": transfers, "lines": lines}
    return Prompt(f"{text}{start}>{end}?", gold, kind, route_text(legs))


def _lines(random: Random) -> dict[str, list[str]]:
    """Three lines of different stops; two neighbouring ones share one."""
    names = random.sample(NAMES, sum(LENGTHS))
    lines, shared = {}, None
    for name, length in zip(("L1", "L2", "L3"), random.sample(LENGTHS, 3), strict=True):
        stops = [names.pop() for _ in range(length)]
        if shared:
            stops[0] = shared
        shared = stops[-1]
        lines[name] = random.sample(stops, length)
    return lines


def _legs(random: Random, lines: Mapping[str, Sequence[str]]) -> list[Leg]:
    """A direct route, or one over the stop that two lines share."""
    first, last = random.choice((("L1", "L2"), ("L2", "L1"), ("L2", "L3"), ("L3", "L2")))
    if random.random() < 0.5:
        return [Leg(first, *random.sample(lines[first], 2))]
    (change,) = {*lines[first]} & {*lines[last]}
    start, end = (
        random.choice([stop for stop in lines[name] if stop != change]) for name in (first, last)
    )
    # Both ends on one line: the other neighbour of the middle line is not at its ends.
    return [Leg(first, start, change), Leg(last, change, end)]


def route_text(legs: Sequence[Leg]) -> str:
    """The legs in the form that `rewardmap.legs` reads."""
    return "--\n".join(
        f"Route Name: {leg.line}\nDeparture Stop: {leg.start}\nArrival Stop: {leg.end}\n"
        for leg in legs
    )
