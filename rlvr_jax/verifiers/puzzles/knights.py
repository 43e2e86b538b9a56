"""Knights and knaves: knights make true statements, knaves false ones. Gold: {name: role}.

Puzzles have one solution, proved by enumeration. An answer has "NAME is a ROLE" for each person.

Source: https://github.com/Unakar/Logic-RL, whose total of format and answer is `logic_rl`. The
grade is only the answer, 0 or 1; the task `knights:reward=logic_rl` rewards the total.
"""

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from rlvr_jax.verifiers.answers import in_tag
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.tags import tags

_NAMES = "Ann Bob Carla David Emma Felix Grace Henry Irene Jack Kate Liam"
# None begins like another one or is a word of the prompt.
NAMES = tuple(_NAMES.split())
_ROLES = ("knave", "knight")
# Fraction of the statements about one person; the others connect two statements.
_PLAIN = 0.3
_JOINED = {
    "and": "{} and {}",
    "or": "{} or {}",
    "if": "if {}, then {}",
    "iff": "{} if and only if {}",
}
_ROLE = re.compile("knight|knave", re.IGNORECASE)

extract = in_tag

# A person and whether the statement calls her a knight; or a word of `_JOINED` and two of these.
Statement = tuple[Any, ...]


class Instance(NamedTuple):
    """The text, in which person i makes statement i; the roles; and the statements, which identify
    the puzzle."""

    text: str
    roles: dict[str, str]
    statements: list[Statement]


def read_roles(answer: str, names: Sequence[str]) -> dict[str, str] | None:
    """The first "NAME is a ROLE" of each name, in any case; None where a name has none.

    The words knight and knave must occur as often as there are names, so no answer names both.
    """
    if len(_ROLE.findall(answer)) != len(names):
        return None
    roles = {}
    for name in names:
        pattern = rf"(?<!\w){re.escape(name)}\s+is\s+a\s+(knight|knave)(?!\w)"
        found = re.search(pattern, answer, re.IGNORECASE)
        if found is None:
            return None
        roles[name] = found[1].lower()
    return roles


def check(answer: str, gold: Mapping[str, str]) -> Grade:
    """1 if every role is correct."""
    roles = read_roles(answer, list(gold))
    listed = None if roles is None else ", ".join(f"{name} {role}" for name, role in roles.items())
    return Grade(float(roles == gold), answer=listed, stage="unread" if roles is None else "roles")


def logic_rl(response: str, gold: Mapping[str, str]) -> float:
    """The released total: 1 or -1 for the format, and 2, -1.5 or -2 for the answer.

    The format is correct if each of the four tags occurs once and in order. If it is not, or if the
    answer cannot be read, the second part is -2.
    """
    if not tags(response).exact:
        return -3.0
    roles = read_roles(in_tag(response) or "", list(gold))
    return -1.0 if roles is None else (3.0 if roles == gold else -0.5)


def generate(random: Random, people: int) -> Instance:
    """A puzzle of `people` persons (3 to 12), each of whom makes a statement about others."""
    while True:
        statements = [_statement(random, person, people) for person in range(people)]
        found = solutions(statements)
        if found.bit_count() == 1:
            break
    names = random.sample(NAMES, people)
    row = found.bit_length() - 1
    roles = {name: _ROLES[row >> person & 1] for person, name in enumerate(names)}
    lines = [
        f"{name} says: “{_in_words(statement, names)}.”"
        for name, statement in zip(names, statements, strict=True)
    ]
    return Instance("\n".join(lines), roles, statements)


def solutions(statements: Sequence[Statement]) -> int:
    """The roles for which knights make true statements and knaves false ones, as a set of bits: bit
    r is for the roles in which person i is a knight if bit i of r is set."""
    count = len(statements)
    everything = (1 << (1 << count)) - 1
    # Bit r of knight[i] is bit i of r: blocks of 2^i ones, with as many zeros before each.
    knight = [everything // ((1 << (1 << i)) + 1) << (1 << i) for i in range(count)]

    def claimed(claim: tuple[int, bool]) -> int:
        person, is_knight = claim
        return knight[person] if is_knight else everything ^ knight[person]

    found = everything
    for person, statement in enumerate(statements):
        if statement[0] not in _JOINED:
            truth = claimed(statement)
        else:
            a, b = map(claimed, statement[1:])
            no_a = everything ^ a
            truth = {"and": a & b, "or": a | b, "if": no_a | b, "iff": no_a ^ b}[statement[0]]
        found &= everything ^ knight[person] ^ truth
    return found


def _statement(random: Random, speaker: int, people: int) -> Statement:
    others = [person for person in range(people) if person != speaker]
    if random.random() < _PLAIN:
        return random.choice(others), random.random() < 0.5
    first, second = random.sample(others, 2)
    joined = random.choice(sorted(_JOINED))
    return joined, (first, random.random() < 0.5), (second, random.random() < 0.5)


def _in_words(statement: Statement, names: Sequence[str]) -> str:
    if statement[0] in _JOINED:
        text = _JOINED[statement[0]].format(*(_in_words(part, names) for part in statement[1:]))
    else:
        text = f"{names[statement[0]]} is a {_ROLES[statement[1]]}"
    return text[0].upper() + text[1:] if text.startswith("if ") else text
