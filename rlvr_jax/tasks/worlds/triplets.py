"""Worlds of programs, their prompts, and the grades of answers and proposals.

Values are compared as values, never as text, and nothing that a policy wrote is evaluated here: a
world reads and runs it as it must.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rlvr_jax.tasks.base import Prompt, Response, Verify
from rlvr_jax.verifiers.grade import Grade

__all__ = [
    "KINDS",
    "Triplet",
    "World",
    "graded_proposal",
    "is_proposal",
    "proposal_in",
    "propose_prompt",
    "solve_prompt",
    "split",
    "verify_in",
]

KINDS = ("deduction", "abduction", "induction")
LEAST_INPUTS = 2
"""Inputs of an induction: one to be shown, one to be hidden."""


class Triplet(NamedTuple):
    """A program with inputs and their outputs."""

    program: str
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]

    def text(self) -> str:
        """As JSON."""
        return json.dumps([self.program, list(self.inputs), list(self.outputs)])

    @classmethod
    def of(cls, text: str) -> Triplet:
        """The triplet in `text`."""
        program, inputs, outputs = json.loads(text)
        return cls(program, tuple(inputs), tuple(outputs))


class World(NamedTuple):
    """The programs and the values of a world.

    Fields:
      name: of the world.
      first: the triplet that a run begins with.
      run: (pairs of a program and its inputs) -> for each the outputs, None where any run fails, is
        not allowed, or differs from a second one.
      same: (value, value) -> whether they are equal.
      read_value: (text) -> the value that an answer names, None if none.
      read_program: (text) -> the program of an answer, None if none.
      read_proposal: (kind, text) -> (program, inputs) of a proposal, None if it is none.
      show: (kind, triplet) -> the text that requests the missing part; of an induction the triplet
        has the pairs that are shown.
      request: (kind, references) -> the text that requests another program and inputs.
    """

    name: str
    first: Triplet
    run: Callable[[Sequence[tuple[str, Sequence[Any]]]], Sequence[Sequence[Any] | None]]
    same: Callable[[Any, Any], bool]
    read_value: Callable[[str], Any]
    read_program: Callable[[str], str | None]
    read_proposal: Callable[[str, str], tuple[str, Sequence[Any]] | None]
    show: Callable[[str, Triplet], str]
    request: Callable[[str, Sequence[Triplet]], str]


def split(kind: str, triplet: Triplet) -> tuple[Triplet, Triplet]:
    """The shown part of a triplet and the part to find: of an induction the first half of the
    pairs and the others, else the first pair both times."""
    half = -(-len(triplet.inputs) // 2) if kind == "induction" else 1
    shown = Triplet(triplet.program, triplet.inputs[:half], triplet.outputs[:half])
    if kind != "induction":
        return shown, shown
    return shown, Triplet(triplet.program, triplet.inputs[half:], triplet.outputs[half:])


def solve_prompt(world: World, kind: str, triplet: Triplet) -> Prompt:
    """The question for the missing part."""
    shown, hidden = split(kind, triplet)
    answer = {"role": "solve", "kind": kind, "triplet": hidden.text()}
    return Prompt(world.show(kind, shown), answer=answer, kind=kind)


def propose_prompt(world: World, kind: str, references: Sequence[Triplet]) -> Prompt:
    """The question for another program with inputs than those that are shown."""
    known = [reference.text() for reference in references]
    answer = {"role": "propose", "kind": kind, "references": known}
    return Prompt(world.request(kind, references), answer=answer, kind=f"propose_{kind}")


def is_proposal(prompt: Prompt) -> bool:
    """Whether a prompt requests a proposal."""
    return isinstance(prompt.answer, dict) and prompt.answer.get("role") == "propose"


def proposal_in(
    world: World, prompts: Sequence[Prompt], texts: Sequence[str]
) -> list[Triplet | None]:
    """The triplets that are proposed, None for a text that proposes none.

    A proposal can be read, runs twice with equal results, and is not a reference.
    """
    read = [world.read_proposal(p.answer["kind"], t) for p, t in zip(prompts, texts, strict=True)]
    runs = iter(world.run([proposal for proposal in read if proposal is not None]))
    found: list[Triplet | None] = []
    for prompt, proposal in zip(prompts, read, strict=True):
        outputs = None if proposal is None else next(runs)
        if proposal is None or outputs is None:
            found.append(None)
            continue
        program, inputs = proposal
        triplet = Triplet(program, tuple(inputs), tuple(outputs))
        few = prompt.answer["kind"] == "induction" and len(inputs) < LEAST_INPUTS
        found.append(None if few or triplet.text() in prompt.answer["references"] else triplet)
    return found


def graded_proposal(prompt: Prompt, grade: Grade) -> Triplet | None:
    """The triplet that a response proposes, as its verifier found it; None for one that proposes
    none, or answers something."""
    text = grade.answer if is_proposal(prompt) and grade.outcome else None
    return None if text is None else Triplet.of(text)


def verify_in(world: World) -> Verify:
    """Grades answers and proposals.

    The answer of a valid proposal is its triplet, with the outputs as they were found: it does
    not run again, and every process knows the same ones.

    Metrics: readable (1 for a text that can be read).
    """

    def verify(prompts: Sequence[Prompt], responses: Sequence[Response]) -> list[Grade]:
        grades: dict[int, Grade] = {}
        asked = [k for k, prompt in enumerate(prompts) if is_proposal(prompt)]
        texts = [responses[k].text for k in asked]
        cut = [responses[k].truncated for k in asked]
        found = proposal_in(world, [prompts[k] for k in asked], texts)
        for place, triplet, short in zip(asked, found, cut, strict=True):
            text = None if triplet is None or short else triplet.text()
            valid = text is not None
            grades[place] = Grade(float(valid), info={"readable": float(valid)}, answer=text)
        waiting: list[tuple[int, str, Sequence[Any], Triplet]] = []
        for place, (prompt, response) in enumerate(zip(prompts, responses, strict=True)):
            if place in grades:
                continue
            hidden = Triplet.of(prompt.answer["triplet"])
            if prompt.answer["kind"] == "induction":
                program = None if response.truncated else world.read_program(response.text)
                if program is not None:
                    waiting.append((place, program, hidden.inputs, hidden))
                grades[place] = _graded(False, program)
                continue
            value = None if response.truncated else world.read_value(response.text)
            right = False
            if value is not None and prompt.answer["kind"] == "deduction":
                right = world.same(value, hidden.outputs[0])
            elif value is not None:
                waiting.append((place, hidden.program, [value], hidden))
            grades[place] = _graded(right, value)
        runs = world.run([(program, inputs) for _, program, inputs, _ in waiting])
        for (place, program, inputs, hidden), outputs in zip(waiting, runs, strict=True):
            right = outputs is not None and all(
                world.same(a, b) for a, b in zip(outputs, hidden.outputs, strict=True)
            )
            induced = prompts[place].answer["kind"] == "induction"
            grades[place] = _graded(right, program if induced else inputs[0])
        return [grades[place] for place in range(len(prompts))]

    return verify


def _graded(right: bool, found: Any) -> Grade:
    """The grade of the parsed answer, None if it could not be parsed."""
    there = found is not None
    answer = str(found) if there else None
    return Grade(float(right), info={"readable": float(there)}, answer=answer)
