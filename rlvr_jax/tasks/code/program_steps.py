"""Small functions made of steps: what each does in words, and in Python.

A step changes a value `x`: a list of integers, a text or an integer. Functions are chains of steps
in which each begins with what the one before it gives.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

# What a chain may begin with, and what `x` is called then.
KINDS = {"lists": "a list of integers", "texts": "a text", "numbers": "an integer"}
_WORDS = (
    *("apple", "Banana", "cat", "Dog", "evening", "Forest", "green", "House", "island", "Jump"),
    *("kite", "Lemon", "moon", "North", "orange", "Paper", "quiet", "River", "stone", "Tree"),
    *("under", "Village", "water", "yellow", "Zebra", "a", "An", "it", "Of", "to"),
)
_LETTERS = "abcdeghilmnoprstuvwy"
_SMALL = tuple(range(2, 10))
_ADDED = tuple(range(1, 31))
_BOUNDS = tuple(range(-9, 10))
_FEW = tuple(range(1, 5))
_EVERY = (2, 3, 4)
_NONE = ("",)

# (takes, gives) -> (words, Python, choices for {k})
_STEPS: dict[tuple[str, str], Sequence[tuple[str, str, Sequence]]] = {
    ("lists", "lists"): (
        ("keep only the numbers greater than {k}", "[v for v in x if v > {k}]", _BOUNDS),
        ("keep only the numbers smaller than {k}", "[v for v in x if v < {k}]", _BOUNDS),
        ("keep only the numbers divisible by {k}", "[v for v in x if v % {k} == 0]", _SMALL),
        ("remove the numbers divisible by {k}", "[v for v in x if v % {k} != 0]", _SMALL),
        ("add {k} to every number", "[v + {k} for v in x]", _ADDED),
        ("subtract {k} from every number", "[v - {k} for v in x]", _ADDED),
        ("multiply every number by {k}", "[v * {k} for v in x]", _SMALL),
        ("replace every number v by v % {k}", "[v % {k} for v in x]", _SMALL),
        ("replace every number greater than {k} by {k}", "[min(v, {k}) for v in x]", _BOUNDS),
        ("square every number", "[v * v for v in x]", _NONE),
        ("replace every number by its absolute value", "[abs(v) for v in x]", _NONE),
        ("sort the list from small to large", "sorted(x)", _NONE),
        ("sort the list from large to small", "sorted(x, reverse=True)", _NONE),
        ("reverse the list", "x[::-1]", _NONE),
        ("of equal numbers keep only the first", "list(dict.fromkeys(x))", _NONE),
        ("keep only the first {k} numbers (all if there are fewer)", "x[:{k}]", _FEW),
        ("keep only the last {k} numbers (all if there are fewer)", "x[-{k}:]", _FEW),
        ("remove the first {k} numbers (all if there are fewer)", "x[{k}:]", _FEW),
        (
            "keep only the numbers at the positions divisible by {k}, counted from 0",
            "x[::{k}]",
            _EVERY,
        ),
        (
            "replace every number by the sum of all numbers up to and including it",
            "[sum(x[: i + 1]) for i in range(len(x))]",
            _NONE,
        ),
        (
            "replace the list by the differences of neighbours, each number less the one before it",
            "[b - a for a, b in zip(x, x[1:])]",
            _NONE,
        ),
    ),
    ("lists", "numbers"): (
        ("take the sum of the list", "sum(x)", _NONE),
        ("take the largest number (0 if there is none)", "max(x, default=0)", _NONE),
        ("take the smallest number (0 if there is none)", "min(x, default=0)", _NONE),
        ("count the numbers", "len(x)", _NONE),
        ("count the different numbers", "len(set(x))", _NONE),
        ("count the numbers greater than {k}", "sum(v > {k} for v in x)", _BOUNDS),
        ("count how often {k} occurs", "x.count({k})", _SMALL),
        ("take the sum of the squares", "sum(v * v for v in x)", _NONE),
    ),
    ("lists", "texts"): (
        (
            "write the numbers one after the other, with commas between",
            "','.join(map(str, x))",
            [""],
        ),
    ),
    ("texts", "texts"): (
        ("change all letters to upper case", "x.upper()", _NONE),
        ("change all letters to lower case", "x.lower()", _NONE),
        ("swap upper and lower case", "x.swapcase()", _NONE),
        ("reverse the text", "x[::-1]", _NONE),
        ("sort the characters by their codes", "''.join(sorted(x))", _NONE),
        ("write every character twice", "''.join(c * 2 for c in x)", _NONE),
        ("remove every {k!r}", "x.replace({k!r}, '')", _LETTERS),
        ("replace every {k!r} by '*'", "x.replace({k!r}, '*')", _LETTERS),
        ("write '-' before every {k!r}", "x.replace({k!r}, '-' + {k!r})", _LETTERS),
        ("repeat the text {k} times", "x * {k}", _EVERY),
        ("keep only the first {k} characters (all if there are fewer)", "x[:{k}]", _SMALL),
        ("keep only the last {k} characters (all if there are fewer)", "x[-{k}:]", _SMALL),
        ("remove the first {k} characters (all if there are fewer)", "x[{k}:]", _SMALL),
        (
            "keep only the characters at the positions divisible by {k}, counted from 0",
            "x[::{k}]",
            _EVERY,
        ),
        (
            "keep only the words longer than {k} characters, with one blank between",
            "' '.join(w for w in x.split() if len(w) > {k})",
            _FEW,
        ),
        (
            "keep only the words that contain {k!r}, with one blank between",
            "' '.join(w for w in x.split() if {k!r} in w)",
            _LETTERS,
        ),
        (
            "reverse the order of the words, with one blank between",
            "' '.join(x.split()[::-1])",
            _NONE,
        ),
        (
            "sort the words by their character codes, with one blank between",
            "' '.join(sorted(x.split()))",
            _NONE,
        ),
    ),
    ("texts", "numbers"): (
        ("count the characters", "len(x)", _NONE),
        ("count the words", "len(x.split())", _NONE),
        ("count the different characters", "len(set(x))", _NONE),
        ("count how often {k!r} occurs", "x.count({k!r})", _LETTERS),
        (
            "count the words longer than {k} characters",
            "sum(len(w) > {k} for w in x.split())",
            _FEW,
        ),
    ),
    ("texts", "lists"): (
        ("make the list of the lengths of the words", "[len(w) for w in x.split()]", _NONE),
        (
            "make the list of the positions, from 0, at which {k!r} stands",
            "[i for i, c in enumerate(x) if c == {k!r}]",
            _LETTERS,
        ),
    ),
    ("numbers", "numbers"): (
        ("add {k}", "x + {k}", _ADDED),
        ("subtract {k}", "x - {k}", _ADDED),
        ("multiply by {k}", "x * {k}", _ADDED[1:]),
        ("take x % {k}", "x % {k}", _ADDED[1:]),
        ("take x // {k}", "x // {k}", _ADDED[1:]),
        ("subtract the number from {k}", "{k} - x", _ADDED),
        ("take the larger one of the number and {k}", "max(x, {k})", _ADDED),
        ("take the smaller one of the number and {k}", "min(x, {k})", _ADDED),
        ("take the absolute value", "abs(x)", _NONE),
        ("square it", "x * x", _NONE),
        (
            "take the sum of its decimal digits, without the sign",
            "sum(map(int, str(abs(x))))",
            _NONE,
        ),
        ("reverse its decimal digits and drop the sign", "int(str(abs(x))[::-1])", _NONE),
        (
            "halve it if it is even, else take 3 * x + 1",
            "x // 2 if x % 2 == 0 else 3 * x + 1",
            _NONE,
        ),
    ),
    ("numbers", "lists"): (
        (
            "make the list of its decimal digits, without the sign",
            "[*map(int, str(abs(x)))]",
            _NONE,
        ),
        ("make the list of the integers from 1 to x % {k}", "[*range(1, x % {k} + 1)]", _SMALL),
    ),
    ("numbers", "texts"): (
        ("write it in decimal digits", "str(x)", _NONE),
        ("write its absolute value in binary digits", "format(abs(x), 'b')", _NONE),
    ),
}


@dataclass(frozen=True)
class Step:
    """One step: what it takes and gives, what it does in words, and as an expression of `x`."""

    takes: str
    gives: str
    words: str
    python: str


@cache
def _all() -> dict[str, list[list[Step]]]:
    """The steps by what they take; those that differ in a number or letter alone stand together."""
    found: dict[str, list[list[Step]]] = {kind: [] for kind in KINDS}
    for (takes, gives), rows in _STEPS.items():
        for words, python, choices in rows:
            steps = [Step(takes, gives, words.format(k=k), python.format(k=k)) for k in choices]
            found[takes].append(steps)
    return found


def all_steps() -> list[Step]:
    """Every step there is."""
    return [step for groups in _all().values() for group in groups for step in group]


def chain(random: Random, kind: str, length: int) -> list[Step]:
    """So many steps that follow one on the other, beginning with a kind of value."""
    steps: list[Step] = []
    for _ in range(length):
        # Weights lie between those of single steps and those of rows: a row of 30 numbers is not
        # 30 times as interesting as "sort the list", nor are there 30 times as many of the latter.
        groups = _all()[steps[-1].gives if steps else kind]
        weights = [len(group) ** 0.5 for group in groups]
        steps.append(random.choice(random.choices(groups, weights)[0]))
    return steps


def draw_input(random: Random, kind: str) -> Any:
    """A value to begin with."""
    if kind == "lists":
        return [random.randint(-20, 20) for _ in range(random.randint(1, 9))]
    if kind == "texts":
        return " ".join(random.choices(_WORDS, k=random.randint(1, 6)))
    return random.randint(-99, 999)


def program(steps: Sequence[Step], name: str) -> str:
    """The function of these steps as Python source."""
    lines = [f"    x = {step.python}\n" for step in steps[:-1]]
    return f"def {name}(x):\n{''.join(lines)}    return {steps[-1].python}\n"


def value(steps: Sequence[Step], x: Any) -> Any:
    """What the function gives for `x`."""
    for step in steps:
        x = _function(step.python)(x)
    return x


@cache
def _function(python: str) -> Callable[[Any], Any]:
    return eval(f"lambda x: {python}")  # of the table above, never of a model
