"""Worlds of programs, their prompts, and the grades of answers and proposals.

Values are compared as values, never as text. Nothing that a policy wrote is evaluated here: each
world reads and runs it.
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
"""Number of inputs of an induction: shown ones and hidden ones."""


class Triplet(NamedTuple):
    """A program with inputs and their outputs."""

    program: str
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]

    def text(self) -> str:
        """The triplet as JSON."""
        return json.dumps([self.program, list(self.inputs), list(self.outputs)])

    @classmethod
    def of(cls, text: str) -> Triplet:
        """The triplet that a text holds as JSON."""
        program, inputs, outputs = json.loads(text)
        return cls(program, tuple(inputs), tuple(outputs))


class World(NamedTuple):
    """The programs and the values of a world.

    Fields:
      name: name of the world.
      first: the triplet with which a run begins.
      run: (pairs of a program and its inputs) -> for each the outputs. None if any run fails, is
        not allowed, or differs from a second run.
      same: (value, value) -> whether they are equal.
      read_value: (text) -> the value in an answer; None without one.
      read_program: (text) -> the program in an answer; None without one.
      read_proposal: (kind, text) -> (program, inputs) of a proposal; None without one.
      show: (kind, triplet) -> the text that requests the missing part. For an induction the triplet
        has the shown pairs.
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
    """The shown part of a triplet and the part to find. In an induction these are the first and the
    second half of the pairs, else both are the first pair."""
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
    """The request for a program with inputs that differs from the shown ones."""
    known = [reference.text() for reference in references]
    answer = {"role": "propose", "kind": kind, "references": known}
    return Prompt(world.request(kind, references), answer=answer, kind=f"propose_{kind}")


def is_proposal(prompt: Prompt) -> bool:
    """Whether a prompt requests a proposal."""
    return isinstance(prompt.answer, dict) and prompt.answer.get("role") == "propose"


def proposal_in(
    world: World, prompts: Sequence[Prompt], texts: Sequence[str]
) -> list[Triplet | None]:
    """The proposed triplets; None for a text without a valid proposal.

    A valid proposal can be read, runs twice with equal results, and is not a reference.
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
    """The triplet that a response proposes, as its verifier found it. None if it proposes none or
    answers a question."""
    text = grade.answer if is_proposal(prompt) and grade.outcome else None
    return None if text is None else Triplet.of(text)


def verify_in(world: World) -> Verify:
    """Grades answers and proposals.

    The answer of a valid proposal is its triplet with the outputs that were found. So it does not
    run again, and all processes have the same outputs.

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
    """The grade of the parsed answer; None if it could not be parsed."""
    there = found is not None
    answer = str(found) if there else None
    return Grade(float(right), info={"readable": float(there)}, answer=answer)
