"""Small functions made of steps, each in words and in Python.

A step changes a value `x`: a list of integers, a text or an integer. Functions are chains of steps;
each step begins with the result of the previous one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

# Kinds of the first value of a chain, and descriptions of `x`.
KINDS = {"lists": "a list of integers", "texts": "a text", "numbers": "an integer"}
_WORDS = (
    *("apple", "Banana", "cat", "Dog", "evening", "Forest", "green", "House", "island", "Jump"),
    *("kite", "Lemon", "moon", "North", "orange", "Paper", "quiet", "River", "stone", "Tree"),
    *("under", "Village", "water", "yellow", "Zebra", "a", "An", "it", "Of", "to"),
)
_CHOICES: dict[str, Sequence[Any]] = {
    "": ("",),
    "letters": "abcdeghilmnoprstuvwy",
    "small": range(2, 10),
    "added": range(1, 31),
    "factors": range(2, 31),
    "bounds": range(-9, 10),
    "few": range(1, 5),
    "every": (2, 3, 4),
}
"""Values for {k}, by name."""

# (takes, gives): lines of words | Python | name of the choices.
_STEPS = {
    ("lists", "lists"): """
        keep only the numbers greater than {k} | [v for v in x if v > {k}] | bounds
        keep only the numbers smaller than {k} | [v for v in x if v < {k}] | bounds
        keep only the numbers divisible by {k} | [v for v in x if v % {k} == 0] | small
        remove the numbers divisible by {k} | [v for v in x if v % {k} != 0] | small
        add {k} to every number | [v + {k} for v in x] | added
        subtract {k} from every number | [v - {k} for v in x] | added
        multiply every number by {k} | [v * {k} for v in x] | small
        replace every number v by v % {k} | [v % {k} for v in x] | small
        replace every number greater than {k} by {k} | [min(v, {k}) for v in x] | bounds
        square every number | [v * v for v in x]
        replace every number by its absolute value | [abs(v) for v in x]
        sort the list from small to large | sorted(x)
        sort the list from large to small | sorted(x, reverse=True)
        reverse the list | x[::-1]
        of equal numbers keep only the first | list(dict.fromkeys(x))
        keep only the first {k} numbers (all if there are fewer) | x[:{k}] | few
        keep only the last {k} numbers (all if there are fewer) | x[-{k}:] | few
        remove the first {k} numbers (all if there are fewer) | x[{k}:] | few
        keep only the numbers at the positions divisible by {k}, counted from 0 | x[::{k}] | every
        replace every number by the sum of all numbers up to and including it \
            | [sum(x[: i + 1]) for i in range(len(x))]
        replace the list by the differences of neighbours, each number less the one before it \
            | [b - a for a, b in zip(x, x[1:])]
    """,
    ("lists", "numbers"): """
        take the sum of the list | sum(x)
        take the largest number (0 if there is none) | max(x, default=0)
        take the smallest number (0 if there is none) | min(x, default=0)
        count the numbers | len(x)
        count the different numbers | len(set(x))
        count the numbers greater than {k} | sum(v > {k} for v in x) | bounds
        count how often {k} occurs | x.count({k}) | small
        take the sum of the squares | sum(v * v for v in x)
    """,
    ("lists", "texts"): """
        write the numbers one after the other, with commas between | ','.join(map(str, x))
    """,
    ("texts", "texts"): """
        change all letters to upper case | x.upper()
        change all letters to lower case | x.lower()
        swap upper and lower case | x.swapcase()
        reverse the text | x[::-1]
        sort the characters by their codes | ''.join(sorted(x))
        write every character twice | ''.join(c * 2 for c in x)
        remove every {k!r} | x.replace({k!r}, '') | letters
        replace every {k!r} by '*' | x.replace({k!r}, '*') | letters
        write '-' before every {k!r} | x.replace({k!r}, '-' + {k!r}) | letters
        repeat the text {k} times | x * {k} | every
        keep only the first {k} characters (all if there are fewer) | x[:{k}] | small
        keep only the last {k} characters (all if there are fewer) | x[-{k}:] | small
        remove the first {k} characters (all if there are fewer) | x[{k}:] | small
        keep only the characters at the positions divisible by {k}, counted from 0 \
            | x[::{k}] | every
        keep only the words longer than {k} characters, with one blank between \
            | ' '.join(w for w in x.split() if len(w) > {k}) | few
        keep only the words that contain {k!r}, with one blank between \
            | ' '.join(w for w in x.split() if {k!r} in w) | letters
        reverse the order of the words, with one blank between | ' '.join(x.split()[::-1])
        sort the words by their character codes, with one blank between \
            | ' '.join(sorted(x.split()))
    """,
    ("texts", "numbers"): """
        count the characters | len(x)
        count the words | len(x.split())
        count the different characters | len(set(x))
        count how often {k!r} occurs | x.count({k!r}) | letters
        count the words longer than {k} characters | sum(len(w) > {k} for w in x.split()) | few
    """,
    ("texts", "lists"): """
        make the list of the lengths of the words | [len(w) for w in x.split()]
        make the list of the positions, from 0, at which {k!r} stands \
            | [i for i, c in enumerate(x) if c == {k!r}] | letters
    """,
    ("numbers", "numbers"): """
        add {k} | x + {k} | added
        subtract {k} | x - {k} | added
        multiply by {k} | x * {k} | factors
        take x % {k} | x % {k} | factors
        take x // {k} | x // {k} | factors
        subtract the number from {k} | {k} - x | added
        take the larger one of the number and {k} | max(x, {k}) | added
        take the smaller one of the number and {k} | min(x, {k}) | added
        take the absolute value | abs(x)
        square it | x * x
        take the sum of its decimal digits, without the sign | sum(map(int, str(abs(x))))
        reverse its decimal digits and drop the sign | int(str(abs(x))[::-1])
        halve it if it is even, else take 3 * x + 1 | x // 2 if x % 2 == 0 else 3 * x + 1
    """,
    ("numbers", "lists"): """
        make the list of its decimal digits, without the sign | [*map(int, str(abs(x)))]
        make the list of the integers from 1 to x % {k} | [*range(1, x % {k} + 1)] | small
    """,
    ("numbers", "texts"): """
        write it in decimal digits | str(x)
        write its absolute value in binary digits | format(abs(x), 'b')
    """,
}


@dataclass(frozen=True)
class Step:
    """One step: types of input and output, in words, and as an expression of `x`."""

    takes: str
    gives: str
    words: str
    python: str


@cache
def steps_from(kind: str) -> list[list[Step]]:
    """The steps that take a kind of value; steps that differ only in {k} are a group."""
    found = []
    for (takes, gives), rows in _STEPS.items():
        for row in rows.strip().split("\n") if takes == kind else ():
            words, python, choices = (part.strip() for part in f"{row} | ".split("|")[:3])
            forms = [(words.format(k=k), python.format(k=k)) for k in _CHOICES[choices]]
            found.append([Step(takes, gives, *form) for form in forms])
    return found


def chain(random: Random, kind: str, length: int) -> list[Step]:
    """A chain of `length` steps that begins with a kind of value."""
    steps: list[Step] = []
    for _ in range(length):
        # Weights are between those of single steps and those of rows: a row of 30 numbers is not
        # 30 times as interesting as "sort the list", nor are there 30 times as many such functions.
        groups = steps_from(steps[-1].gives if steps else kind)
        weights = [len(group) ** 0.5 for group in groups]
        steps.append(random.choice(random.choices(groups, weights)[0]))
    return steps


def draw_input(random: Random, kind: str) -> Any:
    """A random first value."""
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
    """The output of the function for `x`."""
    for step in steps:
        x = _function(step.python)(x)
    return x


@cache
def _function(python: str) -> Callable[[Any], Any]:
    return eval(f"lambda x: {python}")  # of the table above, never of a model
