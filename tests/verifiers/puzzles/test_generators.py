"""Every generator against its own check: gold is right, and what is nearly gold is not."""

import random

import pytest

from rlvr_jax.verifiers.puzzles.enigmata import PUZZLES, check
from rlvr_jax.verifiers.puzzles.sudoku import generate

SEEDS = range(6)
CASES = [(name, level) for name in PUZZLES for level in (1, 2, 3)]


def puzzles(name, level):
    return [PUZZLES[name].generate(random.Random(f"{name} {seed}"), level) for seed in SEEDS]


def right(answer, instance):
    found = check(answer, instance)
    return bool(getattr(found, "outcome", found))


def damaged(solution):
    """The solution with something missing or something more."""
    lines = solution.split("\n")
    yield ""
    yield " \n "
    yield solution[: len(solution) // 2]
    yield "\n".join(lines[:-1])
    yield f"{solution}\n{solution}"
    yield f"{solution} x"
    yield f"The answer is {solution}"
    if len(lines) == 1:
        yield solution.rpartition("," if "," in solution else " ")[0]
        yield solution[:-1] if solution[-1] in "UDLR" else f"{solution},"


@pytest.mark.parametrize(("name", "level"), CASES)
def test_the_solution_is_right_and_a_damaged_one_is_not(name, level):
    for puzzle in puzzles(name, level):
        assert right(puzzle.solution, puzzle.instance), puzzle
        for answer in [*damaged(puzzle.solution), *filter(None, [puzzle.wrong])]:
            assert not right(answer, puzzle.instance), (answer, puzzle)


# One number more or less cannot be right where all are bound by sums or by being there once.
@pytest.mark.parametrize(
    "name", ["sudoku", "binario", "kakurasu", "skyscraper", "magic_square", "zebra"]
)
@pytest.mark.parametrize("level", [1, 2, 3])
def test_one_changed_cell_is_wrong(name, level):
    for seed, puzzle in enumerate(puzzles(name, level)):
        places = [i for i, mark in enumerate(puzzle.solution) if mark in "0123456789"]
        place = random.Random(seed).choice(places)
        for digit in set("0123456789") - {puzzle.solution[place]}:
            answer = puzzle.solution[:place] + digit + puzzle.solution[place + 1 :]
            assert not right(answer, puzzle.instance), (answer, puzzle)


@pytest.mark.parametrize(("name", "level"), CASES)
def test_a_seed_gives_one_puzzle_and_others_another(name, level):
    first = puzzles(name, level)
    assert first == puzzles(name, level)
    assert len({puzzle.question for puzzle in first}) > len(SEEDS) // 2


@pytest.mark.parametrize("name", PUZZLES)
def test_the_question_does_not_hold_the_solution(name):
    for puzzle in puzzles(name, 3):
        if puzzle.solution not in ("no path", "impossible"):
            assert puzzle.solution not in puzzle.question


@pytest.mark.parametrize("name", ["hamiltonian", "stack_permutation"])
def test_some_puzzles_have_no_solution_and_saying_so_is_right_there_alone(name):
    word = PUZZLES[name].NO_PATH if name == "hamiltonian" else PUZZLES[name].IMPOSSIBLE
    made = [PUZZLES[name].generate(random.Random(seed), 1) for seed in range(40)]
    unsolvable = [puzzle for puzzle in made if puzzle.solution == word]
    assert 0 < len(unsolvable) < len(made) / 2
    for puzzle in made:
        assert right(f"{word.upper()}.", puzzle.instance) == (puzzle in unsolvable)


@pytest.mark.parametrize(("box", "opened"), [((2, 2), (6, 8, 10)), ((3, 3), (30, 38, 45))])
def test_sudoku_opens_as_many_cells_as_its_level_says(box, opened):
    for level, wanted in enumerate(opened, 1):
        grid = generate(random.Random(level), level, box).instance["grid"]
        assert sum(row.count(0) for row in grid) == wanted


def test_a_puzzle_that_is_not_known_has_no_verdict():
    assert check("1", {"task": "crosswords"}) is None
