"""The rules of each puzzle on all answers to a small board, against a second statement of them."""

import itertools
import random

import pytest

from rlvr_jax.verifiers.puzzles import (
    binario,
    campsite,
    hitori,
    kakurasu,
    light_up,
    minesweeper,
    skyscraper,
    slant,
    star_battle,
)
from rlvr_jax.verifiers.puzzles.notation import show_cells, show_grid

SIDE = 3
BOARD = list(itertools.product(range(SIDE), repeat=2))


def subsets(cells):
    return itertools.chain.from_iterable(
        itertools.combinations(cells, size) for size in range(len(cells) + 1)
    )


def touch(a, b):
    return max(abs(a[0] - b[0]), abs(a[1] - b[1])) == 1


def share_a_side(a, b):
    return abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1


def agree_on_all_placements(module, instance, holds, cells=BOARD):
    """The number of right placements, which is not 0 in a good example."""
    found = 0
    for placed in subsets(cells):
        wanted = holds(set(placed))
        assert module.check(show_cells(placed), instance) == wanted, placed
        found += wanted
    return found


@pytest.mark.parametrize(
    "grid", [["...", ".2.", "..."], ["..#", "1..", "..."], ["#..", "...", ".0."]]
)
def test_light_up(grid):
    free = {(r, c) for r, c in BOARD if grid[r][c] == "."}

    def sees(a, b):
        if a == b or (a[0] != b[0] and a[1] != b[1]):
            return a == b
        between = [
            cell
            for cell in BOARD
            if min(a, b) <= cell <= max(a, b)
            and (cell[0] == a[0] == b[0] or cell[1] == a[1] == b[1])
        ]
        return all(cell in free for cell in between)

    def holds(lamps):
        digits = [(cell, grid[cell[0]][cell[1]]) for cell in BOARD if cell not in free]
        return (
            lamps <= free
            and all(any(sees(lamp, cell) for lamp in lamps) for cell in free)
            and not any(sees(a, b) for a, b in itertools.combinations(lamps, 2))
            and all(
                mark == "#" or sum(share_a_side(cell, lamp) for lamp in lamps) == int(mark)
                for cell, mark in digits
            )
        )

    assert agree_on_all_placements(light_up, {"grid": grid}, holds)


@pytest.mark.parametrize("seed", range(3))
def test_hitori(seed):
    rng = random.Random(seed)
    grid = [[rng.randint(1, SIDE) for _ in range(SIDE)] for _ in range(SIDE)]

    def holds(shaded):
        left = [cell for cell in BOARD if cell not in shaded]
        pairs = list(itertools.combinations(left, 2))
        repeats = any(
            (a[0] == b[0] or a[1] == b[1]) and grid[a[0]][a[1]] == grid[b[0]][b[1]]
            for a, b in pairs
        )
        group = {cell: {cell} for cell in left}
        for a, b in pairs:
            if share_a_side(a, b):
                merged = group[a] | group[b]
                group.update(dict.fromkeys(merged, merged))
        whole = all(group[a] == group[b] for a, b in pairs)
        apart = not any(share_a_side(a, b) for a, b in itertools.combinations(shaded, 2))
        return not repeats and whole and apart

    agree_on_all_placements(hitori, {"grid": grid}, holds)


def test_hitori_has_an_example_with_a_solution():
    grid = [[1, 1, 2], [2, 3, 1], [3, 2, 3]]
    assert hitori.check("(0, 0), (2, 2)", {"grid": grid})
    assert not hitori.check("(0, 1), (1, 0), (2, 2)", {"grid": [[1, 2, 3], [2, 3, 1], [3, 1, 2]]})


@pytest.mark.parametrize(
    "grid", [["..1", "...", "1.1"], ["...", "...", "..2"], ["0..", "...", "..."]]
)
@pytest.mark.parametrize("number", [1, 2, 3])
def test_minesweeper(grid, number):
    def holds(mines):
        digits = [(cell, grid[cell[0]][cell[1]]) for cell in BOARD]
        return len(mines) == number and all(
            mark == "." or (cell not in mines and sum(touch(cell, m) for m in mines) == int(mark))
            for cell, mark in digits
        )

    agree_on_all_placements(minesweeper, {"grid": grid, "mines": number}, holds)


@pytest.mark.parametrize(
    ("grid", "rows", "cols"),
    [
        (["T..", "..T", "..."], [1, 0, 1], [0, 1, 1]),
        (["..T", "T..", "..."], [0, 1, 0], [1, 0, 0]),
        ([".T.", "T..", "..."], [1, 0, 1], [2, 0, 0]),
    ],
)
def test_campsite(grid, rows, cols):
    trees = [(r, c) for r, c in BOARD if grid[r][c] == "T"]

    def holds(tents):
        return (
            len(tents) == len(trees)
            and tents.isdisjoint(trees)
            and not any(touch(a, b) for a, b in itertools.combinations(tents, 2))
            and all(sum(r == n for r, _ in tents) == rows[n] for n in range(SIDE))
            and all(sum(c == n for _, c in tents) == cols[n] for n in range(SIDE))
            and any(all(map(share_a_side, order, trees)) for order in itertools.permutations(tents))
        )

    agree_on_all_placements(campsite, {"grid": grid, "rows": rows, "cols": cols}, holds)


def test_two_tents_do_not_share_a_tree():
    instance = {"grid": ["T....T", "......"], "rows": [2, 0], "cols": [0, 1, 0, 0, 1, 0]}
    assert campsite.check("(0, 1), (0, 4)", instance)
    shared = {"grid": [".T.T", "...."], "rows": [2, 0], "cols": [1, 0, 1, 0]}
    assert campsite.check("(0, 0), (0, 2)", shared)
    alone = {"grid": [".T..T", "....."], "rows": [2, 0], "cols": [1, 0, 1, 0, 0]}
    assert not campsite.check("(0, 0), (0, 2)", alone)


def test_star_battle():
    regions = ["AABB", "ACBB", "CCDB", "CDDD"]
    board = list(itertools.product(range(4), repeat=2))
    right = 0
    for stars in itertools.combinations(board, 4):
        wanted = not any(
            a[0] == b[0]
            or a[1] == b[1]
            or regions[a[0]][a[1]] == regions[b[0]][b[1]]
            or touch(a, b)
            for a, b in itertools.combinations(stars, 2)
        )
        assert star_battle.check(show_cells(stars), {"regions": regions}) == wanted, stars
        right += wanted
    assert right


def test_kakurasu():
    instance, right = {"rows": [3, 2, 4], "cols": [4, 3, 3]}, 0
    for cells in itertools.product((0, 1), repeat=9):
        grid = [cells[:3], cells[3:6], cells[6:]]
        wanted = all(
            sum(c + 1 for c in range(3) if grid[n][c]) == instance["rows"][n]
            and sum(r + 1 for r in range(3) if grid[r][n]) == instance["cols"][n]
            for n in range(3)
        )
        assert kakurasu.check(show_grid(grid), instance) == wanted
        right += wanted
    assert right


def test_skyscraper():
    instance = {"top": [3, 0, 0], "bottom": [0, 0, 2], "left": [0, 0, 1], "right": [0, 2, 0]}

    def seen(line):
        return sum(all(x > y for y in line[:i]) for i, x in enumerate(line))

    right = 0
    for grid in itertools.product(itertools.product((1, 2, 3), repeat=3), repeat=3):
        columns = list(zip(*grid, strict=True))
        if any(len(set(line)) < 3 for line in [*grid[:2], *columns[:1]]):
            continue  # thousands of grids that are wrong at first sight
        clues = [(instance["top"][n], columns[n]) for n in range(3)]
        clues += [(instance["bottom"][n], columns[n][::-1]) for n in range(3)]
        clues += [(instance["left"][n], grid[n]) for n in range(3)]
        clues += [(instance["right"][n], grid[n][::-1]) for n in range(3)]
        wanted = all(len(set(line)) == 3 for line in [*grid, *columns]) and all(
            clue in (0, seen(line)) for clue, line in clues
        )
        assert skyscraper.check(show_grid(grid), instance) == wanted, grid
        right += wanted
    assert right


def test_binario():
    given = [[0, None, None, 1], [None] * 4, [None] * 4, [1, None, None, None]]
    right = 0
    for lines in itertools.product(itertools.product((0, 1), repeat=4), repeat=2):
        grid = [(0, 0, 1, 1), *lines, (1, 1, 0, 0)]
        texts = ["".join(map(str, line)) for line in [*grid, *zip(*grid, strict=True)]]
        wanted = all(t.count("0") == 2 and "000" not in t and "111" not in t for t in texts)
        assert binario.check(show_grid(grid), {"grid": given}) == wanted
        right += wanted
    assert right


def test_slant():
    corners = list(itertools.product(range(SIDE + 1), repeat=2))
    clues = [[None] * (SIDE + 1) for _ in range(SIDE + 1)]
    clues[1][1], clues[2][2], clues[0][0] = 4, 2, 1
    right = 0
    for marks in itertools.product("/\\", repeat=SIDE * SIDE):
        lines = []
        for (r, c), mark in zip(BOARD, marks, strict=True):
            lines.append(((r, c), (r + 1, c + 1)) if mark == "\\" else ((r, c + 1), (r + 1, c)))
        # Without a loop, what is left when ends are taken off again and again is nothing.
        rest = lines
        while True:
            ends = {x for x in corners if sum(x in line for line in rest) == 1}
            kept = [line for line in rest if not ends.intersection(line)]
            if len(kept) == len(rest):
                break
            rest = kept
        wanted = not rest and all(
            clues[r][c] in (None, sum((r, c) in line for line in lines)) for r, c in corners
        )
        grid = [marks[i : i + SIDE] for i in range(0, SIDE * SIDE, SIDE)]
        assert slant.check(show_grid(grid), {"clues": clues}) == wanted
        assert slant.check("\n".join(map("".join, grid)), {"clues": clues}) == wanted
        right += wanted
    assert right
