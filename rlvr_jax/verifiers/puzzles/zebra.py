"""Zebra puzzles: who lives where? Gold: rows [house, value, …], or an instance with "rows".

The answer is the last table (lines |…|), header first, house first. Puzzles have one solution,
proved by enumeration, and no clue can be left out.

Source: https://github.com/Leey21/A-Data-Centric-Study for the fraction of correct cells. The exact
grade requires exactly the rows; Enigmata's accepts any table that contains them.
"""

import functools
import itertools
import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from rlvr_jax.verifiers.answers import after_thinking
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.puzzles.board import Puzzle, puzzle

# Houses and attributes.
LEVELS = ((3, 2), (3, 3), (4, 3))

_VALUES = {
    "Name": ("Ann", "Bob", "Carla", "David"),
    "Colour": ("red", "blue", "green", "white"),
    "Drink": ("tea", "milk", "juice", "water"),
    "Pet": ("cat", "dog", "bird", "fish"),
}
_PHRASES = {
    "Name": "the house of {}",
    "Colour": "the {} house",
    "Drink": "the house where {} is drunk",
    "Pet": "the house with the {}",
}
_DASHES = re.compile(r":?-+:?")

extract = after_thinking  # `check` finds the table

Fact = tuple[int, int]  # an attribute and one of its values, by number
Clue = tuple[str, Fact, Any]


def read_table(text: str) -> list[list[str]]:
    """The rows below the header of the last run of lines |…|, in small letters."""
    table: list[list[str]] = []
    inside = False
    for line in text.split("\n"):
        line = line.strip()
        cells = len(line) > 1 and line[0] == line[-1] == "|"
        if cells and not inside:
            table = []
        inside = cells
        if cells:
            table.append([" ".join(cell.split()).lower() for cell in line[1:-1].split("|")])
    return [row for row in table if not all(map(_DASHES.fullmatch, row))][1:]


def check(answer: str, gold: Sequence[Sequence[Any]] | Mapping[str, Any]) -> Grade:
    """1 if all cells are correct; info: `cells`, their fraction. A row of the answer counts
    if it has the right length, and names a house of the gold that no earlier row named. No row
    counts if there are more rows than houses.

    Metrics: cells (fraction of correct cells).
    """
    rows = gold["rows"] if isinstance(gold, Mapping) else gold
    wanted = {str(row[0]).lower(): [str(cell).lower() for cell in row[1:]] for row in rows}
    table = read_table(answer)
    right = 0
    for house, *cells in table if len(table) <= len(wanted) else ():
        true = wanted.pop(house, None)
        if true is not None and len(true) == len(cells):
            right += sum(a == b for a, b in zip(true, cells, strict=True))
    fraction = right / sum(len(row) - 1 for row in rows)
    rows_text = "; ".join(" ".join(row) for row in sorted(table))
    return Grade(float(fraction == 1), answer=rows_text, stage="table", info={"cells": fraction})


def generate(random: Random, level: int) -> Puzzle:
    """A random puzzle of a level, counted from 1."""
    houses, width = LEVELS[level - 1]
    names = random.sample(sorted(_VALUES), width)
    values = [random.sample(_VALUES[name], houses) for name in names]
    # Value v of each attribute is in house v, before the houses are dealt out anew.
    places = [random.sample(range(houses), houses) for _ in names]
    clues = _needed(_true_clues(random, places), houses, width)
    phrases = [
        [_PHRASES[name].format(v) for v in row] for name, row in zip(names, values, strict=True)
    ]
    rules = [
        f"There are {houses} houses in a row, 1 to {houses} from the left. Each has its own"
        f" {', '.join(name.lower() for name in names[:-1])} and {names[-1].lower()}:"
    ]
    rules += [f"{n}: {', '.join(sorted(v))}" for n, v in zip(names, values, strict=True)]
    listed = [f"- {_in_words(clue, phrases)}" for clue in random.sample(clues, len(clues))]
    rows = [
        [house + 1, *(v[p.index(house)] for v, p in zip(values, places, strict=True))]
        for house in range(houses)
    ]
    header, *lines = (f"| {' | '.join(map(str, row))} |" for row in [["House", *names], *rows])
    form = f"a table with the header {header} and a row for each house"
    table = "\n".join([header, "|---" * (width + 1) + "|", *lines])
    return puzzle("zebra", "\n".join(rules), "\n".join(listed), form, table, rows=rows)


def _true_clues(random: Random, places: Sequence[Sequence[int]]) -> list[Clue]:
    """All clues that hold, in random order; those that name a house come last."""
    facts = [(a, v) for a, row in enumerate(places) for v in range(len(row))]
    clues: list[Clue] = []
    for first, second in itertools.permutations(facts, 2):
        distance = places[second[0]][second[1]] - places[first[0]][first[1]]
        if first[0] != second[0] and first < second and distance == 0:
            clues.append(("same", first, second))
        if distance == 1:
            clues.append(("left", first, second))
        if abs(distance) == 1 and first < second:
            clues.append(("beside", first, second))
    random.shuffle(clues)
    named: list[Clue] = [("at", fact, places[fact[0]][fact[1]]) for fact in facts]
    return clues + random.sample(named, len(named))


def _needed(clues: Sequence[Clue], houses: int, width: int) -> list[Clue]:
    """Clues that leave one arrangement; without any one of them there are more."""
    masks = {clue: _mask(clue, houses, width) for clue in clues}
    everything = functools.reduce(int.__or__, _facts(houses, width)[0][0])
    selected: list[Clue] = []
    left = everything
    for clue in clues:
        if left & masks[clue] != left:
            selected.append(clue)
            left &= masks[clue]
    for clue in list(selected):
        others = [masks[other] for other in selected if other != clue]
        if functools.reduce(int.__and__, others, everything).bit_count() == 1:
            selected.remove(clue)
    return selected


def _mask(clue: Clue, houses: int, width: int) -> int:
    """The arrangements under which a clue holds, as a set of bits."""
    kind, (a, v), other = clue
    first = _facts(houses, width)[a][v]
    if kind == "at":
        return first[other]
    second = _facts(houses, width)[other[0]][other[1]]
    shifts = {"same": (0,), "left": (1,), "beside": (1, -1)}[kind]
    mask = 0
    for house, shift in itertools.product(range(houses), shifts):
        if 0 <= house + shift < houses:
            mask |= first[house] & second[house + shift]
    return mask


@functools.cache
def _facts(houses: int, width: int) -> list[list[list[int]]]:
    """[a][v][h]: the arrangements in which value v of attribute a is in house h, as bits."""
    orders = list(itertools.permutations(range(houses)))
    facts = [[[0] * houses for _ in range(houses)] for _ in range(width)]
    for number, arrangement in enumerate(itertools.product(orders, repeat=width)):
        bit = 1 << number
        for row, order in zip(facts, arrangement, strict=True):
            for value, house in enumerate(order):
                row[value][house] |= bit
    return facts


def _in_words(clue: Clue, phrases: Sequence[Sequence[str]]) -> str:
    kind, (a, v), other = clue
    first = phrases[a][v]
    first = first[0].upper() + first[1:]
    if kind == "at":
        return f"{first} is house {other + 1}."
    second = phrases[other[0]][other[1]]
    between = {"same": "is", "left": "is directly to the left of", "beside": "is next to"}[kind]
    return f"{first} {between} {second}."
