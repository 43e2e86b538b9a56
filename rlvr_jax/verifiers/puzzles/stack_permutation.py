"""Stack permutations: instance {"task", "input", "output"}; the operations are played."""

from collections.abc import Sequence
from random import Random
from typing import Any

from rlvr_jax.verifiers.puzzles.board import Puzzle, puzzle
from rlvr_jax.verifiers.puzzles.notation import is_word, show_lines

# The least and the largest number of items.
LEVELS = ((4, 5), (6, 7), (8, 10))
IMPOSSIBLE = "impossible"
# Puzzles without a solution.
_UNSOLVABLE = 0.25

_RULES = (
    "The numbers of the input come one after the other. `push` puts the next one on a stack, `pop`"
    " takes the one on top off and writes it to the output. Find the operations that make this"
    " output of this input."
)


def check(answer: str, gold: dict[str, Any]) -> bool:
    """Whether the operations use up the input and write the output."""
    if is_word(answer, IMPOSSIBLE):
        return operations(gold["input"], gold["output"]) is None
    pieces = [piece.split() for piece in answer.lower().split(",")]
    if not all(pieces):
        return False
    waiting, stack, written = list(reversed(gold["input"])), [], []
    for operation in (word for piece in pieces for word in piece):
        source, target = {"push": (waiting, stack), "pop": (stack, written)}.get(
            operation, ([], [])
        )
        if not source:
            return False
        target.append(source.pop())
    return written == list(gold["output"])


def generate(random: Random, level: int) -> Puzzle:
    """A puzzle of a level from 1 on, a quarter of them impossible."""
    number = random.randint(*LEVELS[level - 1])
    items = random.sample(range(1, number + 1), number)
    possible = random.random() >= _UNSOLVABLE
    while True:
        output = _stacked(random, items) if possible else random.sample(items, number)
        found = operations(items, output)
        if (found is not None) == possible:
            break
    board = show_lines({"input": items, "output": output})
    form = f"the operations, with blanks between, or the word {IMPOSSIBLE} if there are none"
    solution = " ".join(found) if found else IMPOSSIBLE
    return puzzle("stack_permutation", _RULES, board, form, solution, input=items, output=output)


def operations(items: Sequence[int], output: Sequence[int]) -> list[str] | None:
    """The operations, of which there is at most one list; None if the output is impossible. A
    number is popped as soon as it is on top: a number pushed on it would hide it."""
    waiting, stack, found = list(reversed(items)), [], []
    for wanted in output:
        while waiting and (not stack or stack[-1] != wanted):
            stack.append(waiting.pop())
            found.append("push")
        if not stack or stack.pop() != wanted:
            return None
        found.append("pop")
    return found


def _stacked(random: Random, items: Sequence[int]) -> list[int]:
    """The output of random operations."""
    waiting, stack, written = list(reversed(items)), [], []
    while waiting or stack:
        if waiting and (not stack or random.random() < 0.5):
            stack.append(waiting.pop())
        else:
            written.append(stack.pop())
    return written
