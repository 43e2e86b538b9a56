"""What generators promise and checks look up, against brute force."""

import itertools
import random
import re

import pytest

from rlvr_jax.verifiers.puzzles import (
    hamiltonian,
    knights,
    maze,
    sliding,
    stack_permutation,
    sudoku,
    tic_tac_toe,
    zebra,
)


def num_sudoku_solutions(grid, height, width, limit=2):
    """Tries every number in the first open cell with the fewest candidates."""
    side = height * width
    best = None
    for r, c in itertools.product(range(side), repeat=2):
        if grid[r][c]:
            continue
        top, left = r - r % height, c - c % width
        used = {grid[r][k] for k in range(side)} | {grid[k][c] for k in range(side)}
        used |= {grid[top + i][left + j] for i in range(height) for j in range(width)}
        free = [number for number in range(1, side + 1) if number not in used]
        if best is None or len(free) < len(best[2]):
            best = r, c, free
    if best is None:
        return 1
    r, c, free = best
    found = 0
    for number in free:
        grid[r][c] = number
        found += num_sudoku_solutions(grid, height, width, limit)
        grid[r][c] = 0
        if found >= limit:
            break
    return found


@pytest.mark.parametrize(("box", "seeds"), [((2, 2), range(20)), ((3, 3), range(3))])
def test_a_sudoku_has_one_solution(box, seeds):
    for seed, level in itertools.product(seeds, (1, 2, 3)):
        puzzle = sudoku.generate(random.Random(seed), level, box)
        grid = [list(row) for row in puzzle.instance["grid"]]
        assert num_sudoku_solutions(grid, *box) == 1


def test_the_brute_force_finds_two_solutions_where_there_are_two():
    grid = [[1, 2, 0, 0], [0, 0, 1, 2], [2, 1, 0, 0], [0, 0, 2, 1]]
    assert num_sudoku_solutions(grid, 2, 2) == 2


def holds(claim, is_knight):
    """Whether a sentence of a puzzle of knights is true; it is read from its words."""
    for pattern, rule in (
        (r"If (.*), then (.*)", lambda a, b: not a or b),
        (r"(.*) if and only if (.*)", lambda a, b: a == b),
        (r"(.*) and (.*)", lambda a, b: a and b),
        (r"(.*) or (.*)", lambda a, b: a or b),
    ):
        if match := re.fullmatch(pattern, claim):
            return rule(*(holds(part, is_knight) for part in match.groups()))
    name, role = re.fullmatch(r"(\w+) is a (knight|knave)", claim).groups()
    return is_knight[name] == (role == "knight")


@pytest.mark.parametrize("people", [3, 4, 5, 8])
def test_knights_have_one_solution_by_their_words(people):
    for seed in range(5):
        instance = knights.generate(random.Random(seed), people)
        said = dict(re.findall(r"(\w+) says: “(.*)\.”", instance.text))
        assert set(said) == set(instance.roles)
        found = []
        for roles in itertools.product((False, True), repeat=people):
            is_knight = dict(zip(said, roles, strict=True))
            if all(holds(said[name], is_knight) == is_knight[name] for name in said):
                found.append({name: "knight" if k else "knave" for name, k in is_knight.items()})
        assert found == [instance.roles]
        assert not any(name in claim for name, claim in said.items())  # nobody speaks of herself


@pytest.mark.parametrize(("level", "seeds"), [(1, range(8)), (2, range(4)), (3, range(1))])
def test_a_zebra_puzzle_has_one_solution_by_its_words_and_no_needless_clue(level, seeds):
    for seed in seeds:
        puzzle = zebra.generate(random.Random(seed), level)
        head, told, _ = puzzle.question.split("\n\n", 2)
        attributes = [line.split(": ")[1].split(", ") for line in head.split("\n")[1:]]
        clues = [re.findall(r"[\w]+", line) for line in told.split("\n")]
        values = {value for attribute in attributes for value in attribute}
        right = []
        for orders in itertools.product(*map(itertools.permutations, attributes)):
            house = {value: n for order in orders for n, value in enumerate(order, 1)}
            broken = []
            for clue in clues:
                named = [house[word] for word in clue if word in values]
                if len(named) == 1:
                    true = named[0] == int(clue[-1])
                elif "next" in clue:
                    true = abs(named[0] - named[1]) == 1
                elif "left" in clue:
                    true = named[0] + 1 == named[1]
                else:
                    true = named[0] == named[1]
                if not true:
                    broken.append(" ".join(clue))
            right.append((broken, orders))
        solved = [orders for broken, orders in right if not broken]
        assert len(solved) == 1
        rows = [[n, *cells] for n, cells in enumerate(zip(*solved[0], strict=True), 1)]
        assert rows == puzzle.instance["rows"]
        alone = {broken[0] for broken, _ in right if len(broken) == 1}
        assert alone == {" ".join(clue) for clue in clues}


@pytest.mark.parametrize("cycle", [False, True])
def test_a_hamiltonian_path_is_found_exactly_where_there_is_one(cycle):
    nodes = 5
    pairs = list(itertools.combinations(range(nodes), 2))
    solvable = 0
    for seed in range(60):
        rng = random.Random(seed)
        edges = rng.sample(pairs, rng.randint(3, 8))
        found = hamiltonian.find(nodes, edges, cycle)
        paths = [
            [*order, order[0]] if cycle else list(order)
            for order in itertools.permutations(range(nodes))
        ]
        near = {*edges, *((b, a) for a, b in edges)}
        right = [path for path in paths if all(step in near for step in itertools.pairwise(path))]
        assert found in right if right else found is None
        instance = {"nodes": nodes, "edges": edges, "solvable": bool(right), "cycle": cycle}
        for path in paths:
            answer = " -> ".join(map(str, path))
            assert hamiltonian.check(answer, instance) == (path in right)
        solvable += bool(right)
    assert 0 < solvable < 60


def test_a_cycle_has_three_nodes_at_least():
    pair = {"nodes": 2, "edges": [[0, 1]], "solvable": False, "cycle": True}
    assert not hamiltonian.check("0 1 0", pair)
    assert hamiltonian.check("no path", pair)


def test_stack_operations_are_found_exactly_where_there_are_some():
    items = [3, 1, 4, 2]
    made = {}
    for words in itertools.product(("push", "pop"), repeat=8):
        waiting, stack, written = list(items), [], []
        for word in words:
            if word == "push" and waiting:
                stack.append(waiting.pop(0))
            elif word == "pop" and stack:
                written.append(stack.pop())
        if len(written) == 4:
            made[tuple(written)] = list(words)
    for output in itertools.permutations(items):
        instance = {"input": items, "output": list(output)}
        assert stack_permutation.operations(items, output) == made.get(output)
        assert stack_permutation.check("impossible", instance) == (output not in made)
        for other, words in made.items():
            assert stack_permutation.check(", ".join(words), instance) == (other == output)
    assert len(made) == 14  # Catalan's number


@pytest.mark.parametrize(
    ("board", "turn", "best"),
    [
        ("XX.OO....", "X", [2]),  # wins at once
        ("XX..O....", "O", [2]),  # or else X wins
        ("X...O...X", "O", [1, 3, 5, 7]),  # a corner loses to a fork
        ("O...X...O", "X", [1, 3, 5, 7]),
        ("........X", "O", [4]),  # every other answer to a corner loses
    ],
)
def test_best_moves_are_those_of_theory(board, turn, best):
    assert tic_tac_toe.best_moves(board, turn) == best


def test_any_way_through_a_maze_counts_and_no_wall_does():
    grid = ["######", "#S..G#", "#....#", "######"]
    for answer, right in {
        "RRR": True,
        "DRRRU": True,
        "RRLRR": True,
        "LRRRR": False,
        "RRRR": False,
        "RR": False,
        "RRRL": False,
        "URRRD": False,
    }.items():
        assert maze.check(answer, {"grid": grid}) is right, answer
    assert not maze.check("LLRRR", {"grid": ["S.G"]})  # left the board, which has no walls
    assert maze.check("RR", {"grid": ["S.G"]})


def test_tiles_may_slide_any_way_to_the_goal():
    instance = {"start": [[1, 2], [0, 3]], "goal": [[1, 2], [3, 0]]}
    for answer, right in {"R": True, "RLR": True, "URDL": False, "L": False, "": False}.items():
        assert sliding.check(answer, instance) is right, answer
    assert sliding.check("", {"start": [[1, 0]], "goal": [[1, 0]]})
