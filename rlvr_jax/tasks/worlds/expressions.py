"""Expressions: programs that are one line of integers, x and + - *.

    out x * 2 + 1 ; 3 >                    7            the output (deduction)
    in x * 2 + 1 ; 7 >                     3            the input (abduction)
    def 1 ; 3 | 2 ; 5 >                    x * 2 + 1    the program, for hidden pairs (induction)
    new out x + 1 ; 3 | x * 2 ; 5 >        x - 1 ; 4    another program and input
    new def x + 1 ; 1 2 | x * 2 ; 3 4 >    x - 1 ; 4 7  another program and inputs

A program has x, at most 9 words, and brackets only where needed. Its inputs and all intermediate
values are 0 to 99, else it is not allowed. The shipped base model answers and proposes in this
form, often incorrectly. `train` and `test` have questions of all three kinds from random programs.
"""

from collections.abc import Sequence
from pathlib import Path
from random import Random

from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.tasks.worlds.triplets import KINDS, Triplet, World, solve_prompt, verify_in

__all__ = ["BASE_MODEL", "EXPRESSIONS", "LARGEST", "VOCABULARY", "expressions", "random_program"]
__all__ += ["value_of"]

LARGEST = 99
MOST_WORDS = 9
MOST_INPUTS = 6
PADDING = "<pad>"
MARKS = {"deduction": "out", "abduction": "in", "induction": "def"}
SIGNS = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}
VOCABULARY = (
    *map(str, range(LARGEST + 1)),
    *("x", "(", ")", *SIGNS, ";", "|", ">", "."),
    *(*MARKS.values(), "new", PADDING),
)
BASE_MODEL = str(Path(__file__).parents[1] / "base_models" / "expressions")
# Forms of random programs: n is a number, s a sign.
SHAPES = ("x s n", "n s x", "x s n s n", "( x s n ) s n", "n s ( x s n )", "x s x", "x s x s n")


def value_of(words: Sequence[str], x: int) -> int | None:
    """The value of an expression at x; None if it is invalid, has more than 9 words, or has a value
    outside 0 .. 99 on the way."""
    if len(words) > MOST_WORDS:
        return None
    try:
        value, rest = _sum(list(words), x)
    except (IndexError, ValueError):
        return None
    return None if rest else value


def _sum(words: list[str], x: int) -> tuple[int, list[str]]:
    value, words = _product(words, x)
    while words and words[0] in ("+", "-"):
        sign, (other, rest) = words[0], _product(words[1:], x)
        value, words = _inside(SIGNS[sign](value, other)), rest
    return value, words


def _product(words: list[str], x: int) -> tuple[int, list[str]]:
    value, words = _factor(words, x)
    while words and words[0] == "*":
        other, words = _factor(words[1:], x)
        value = _inside(value * other)
    return value, words


def _factor(words: list[str], x: int) -> tuple[int, list[str]]:
    word, rest = words[0], words[1:]
    if word == "x":
        return x, rest
    if word == "(":
        value, rest = _sum(rest, x)
        if rest[0] != ")":
            raise ValueError(word)
        return value, rest[1:]
    number = _number(word)
    if number is None:
        raise ValueError(word)
    return number, rest


def _inside(value: int) -> int:
    if not 0 <= value <= LARGEST:
        raise ValueError(value)
    return value


def _number(word: str) -> int | None:
    """A number of at most two digits."""
    return int(word) if word.isascii() and word.isdigit() and len(word) <= 2 else None


def _program(text: str) -> str | None:
    words = text.split()
    known = {"x", "(", ")", *SIGNS}
    fine = all(word in known or _number(word) is not None for word in words)
    return " ".join(words) if fine and "x" in words and len(words) <= MOST_WORDS else None


def _value(text: str) -> int | None:
    words = text.split()
    return _number(words[0]) if len(words) == 1 else None


def _proposal(kind: str, text: str) -> tuple[str, list[int]] | None:
    first, mark, behind = text.partition(";")
    program, words = _program(first), behind.split()
    inputs = [number for word in words if (number := _number(word)) is not None]
    allowed = range(2, MOST_INPUTS + 1) if kind == "induction" else (1,)
    if program is None or not mark or len(words) not in allowed or len(inputs) < len(words):
        return None
    return (program, inputs) if len({*inputs}) == len(inputs) else None


def _run(pairs: Sequence[tuple[str, Sequence[int]]]) -> list[list[int] | None]:
    found = []
    for program, inputs in pairs:
        words = program.split()
        outputs = [value_of(words, x) for x in inputs]
        found.append(None if None in outputs else outputs)
    return found


def _shown(kind: str, triplet: Triplet) -> str:
    if kind == "induction":
        pairs = zip(triplet.inputs, triplet.outputs, strict=True)
        shown = " | ".join(f"{a} ; {b}" for a, b in pairs)
    else:
        value = (triplet.outputs if kind == "abduction" else triplet.inputs)[0]
        shown = f"{triplet.program} ; {value}"
    return f"{MARKS[kind]} {shown} >"


def _asked(kind: str, references: Sequence[Triplet]) -> str:
    number = None if kind == "induction" else 1
    shown = " | ".join(
        f"{known.program} ; {' '.join(map(str, known.inputs[:number]))}" for known in references
    )
    return f"new {MARKS[kind]} {shown} >"


EXPRESSIONS = World(
    name="expressions",
    first=Triplet("x", (1, 2), (1, 2)),
    run=_run,
    same=lambda a, b: a == b,
    read_value=_value,
    read_program=_program,
    read_proposal=_proposal,
    show=_shown,
    request=_asked,
)


def random_program(random: Random, inputs: int) -> Triplet:
    """A random program with `inputs` different inputs for which it is allowed."""
    while True:
        words = [
            str(random.randint(1, 9)) if w == "n" else random.choice(list(SIGNS)) if w == "s" else w
            for w in random.choice(SHAPES).split()
        ]
        chosen = random.sample(range(1, 13), inputs)
        (outputs,) = _run([(" ".join(words), chosen)])
        if outputs is not None:
            return Triplet(" ".join(words), tuple(chosen), tuple(outputs))


@generated(response_tokens=16, size=600, test_size=150)
def expressions() -> Generated:
    """Prompts of the three kinds, equally many of each; `absolute_zero` makes other prompts instead
    of those of `train`."""

    def draw(random: Random, kind: str) -> Prompt:
        triplet = random_program(random, 4 if kind == "induction" else 1)
        return solve_prompt(EXPRESSIONS, kind, triplet)

    return Generated(
        draw,
        KINDS,
        verify=verify_in(EXPRESSIONS),
        base_model=BASE_MODEL,
        rewards=("outcome", "readable"),
        answers=True,
        world=EXPRESSIONS,
    )
