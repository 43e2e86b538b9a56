r"""Verdicts on solutions as additional prompts of a task: is this solution correct?

The answer is the label, true or false. A response has it in its last \conclusion{…}
(`rlvr_jax.verifiers.texts.critique_rl`).

    verdicts:runs/first                 the task of a run, with verdicts on its stored responses
"""

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rlvr_jax.tasks.base import Prompt, Response, Task
from rlvr_jax.tasks.checked import verifier_of
from rlvr_jax.tasks.loading import load_as_written
from rlvr_jax.tasks.synthesis.lines import read_lines, wanted
from rlvr_jax.verifiers.grade import Grade

__all__ = ["KIND", "Labelled", "stored_solutions", "verdict_mixture", "verdicts"]
__all__ += ["with_verdicts"]

KIND = "verdict"
_VERIFY = verifier_of("rlvr_jax.verifiers.texts.critique_rl", workers=0)

ASK = (
    "{problem}\n\nA solution:\n{solution}\n\nIs it right? Go through it, and end with"
    " \\conclusion{{True}} or \\conclusion{{False}}."
)


class Labelled(NamedTuple):
    """A solution and whether it is correct.

    Fields:
      problem: the question.
      solution: a solution of it.
      right: whether it is correct, by tests or a verifier.
    """

    problem: str
    solution: str
    right: bool


def with_verdicts(
    task: Task, labelled: Sequence[Labelled], fraction: float = 0.2, request: str = ASK
) -> Task:
    """The task with prompts that request a verdict on a solution, of kind "verdict".

    The test prompts do not change. Labels should be balanced, or a constant verdict has a reward.

    Args:
      task: task whose train prompts are extended.
      labelled: solutions, one prompt each; several solutions of one problem are several prompts.
      fraction: fraction of a batch, in (0, 1); the task's kinds divide the rest as before.
      request: template of the prompt, with {problem} and {solution}.
    Raises:
      ValueError: the fraction is out of range, there are no solutions, or all labels are equal.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"with_verdicts: fraction must be in (0, 1), got {fraction}")
    labels = {bool(one.right) for one in labelled}
    if len(labels) < 2:
        raise ValueError(
            f"with_verdicts: labelled must have solutions of both labels, got {len(labelled)}, of"
            f" labels {sorted(labels)}"
        )
    prompts = [
        Prompt(
            request.format(problem=one.problem, solution=one.solution),
            answer=bool(one.right),
            kind=KIND,
            gold=f"\\conclusion{{{bool(one.right)}}}",
        )
        for one in labelled
    ]

    def verify(asked: Sequence[Prompt], responses: Sequence[Response]) -> list[Grade]:
        found: dict[int, Grade] = {}
        for own, grade in ((True, _VERIFY), (False, task.verify)):
            rows = [row for row, prompt in enumerate(asked) if (prompt.kind == KIND) == own]
            if rows:
                grades = grade([asked[row] for row in rows], [responses[row] for row in rows])
                # Rewards of the task do not apply to these prompts.
                nan = {name: math.nan for name in task.rewards if own and name != "outcome"}
                for row, one in zip(rows, grades, strict=True):
                    found[row] = dataclasses.replace(one, info={**nan, **one.info})
        return [found[row] for row in range(len(asked))]

    return dataclasses.replace(
        task,
        name=f"{task.name}+verdicts",
        train=[*task.train, *prompts],
        verify=verify,
        mixture=verdict_mixture(task, fraction),
    )


def verdict_mixture(task: Task, fraction: float) -> dict[str, float]:
    """Fractions of the kinds of a task if a fraction of a batch requests verdicts; the other kinds
    divide the rest as in the task."""
    mixture = task.mixture or Counter(prompt.kind for prompt in task.train)
    others = {kind: weight for kind, weight in mixture.items() if kind != KIND}
    whole = sum(others.values())
    return {kind: (1 - fraction) * w / whole for kind, w in others.items()} | {KIND: fraction}


def verdicts(path: str, fraction: float = 0.2, request: str = ASK) -> Task:
    """The task of a run, with verdicts on the responses that the run stored.

    Args:
      path: run directory. `--samples-stored` of that run is the number of its responses per step.
      fraction, request: as in `with_verdicts`.
    Raises:
      ValueError: there is no run, or it has no correct or no incorrect response; those of
        `with_verdicts`.
    """
    card = Path(path) / "config.json"
    if not card.is_file():
        raise ValueError(f"verdicts: path must be a run directory with a config.json, got {path}")
    settings = json.loads(card.read_text(encoding="utf-8"))["settings"]
    task = load_as_written(settings["task"], settings["task_options"], settings["columns"])
    labelled = stored_solutions(Path(path))
    if not labelled:
        raise ValueError(
            f"verdicts: {path} must have correct and incorrect responses in samples/, got none of"
            " one label; store more of them by --samples-stored"
        )
    return dataclasses.replace(
        with_verdicts(task, labelled, fraction, request), name=f"verdicts:{path}"
    )


def stored_solutions(folder: Path) -> list[Labelled]:
    """Different stored solutions of a run, as many correct ones (outcome 1) as incorrect ones.

    They are in the order of the steps, and the later ones of the more frequent label are left out.
    Truncated and ungraded responses and verdicts are not solutions.
    """
    found: dict[bool, dict[Labelled, None]] = {True: {}, False: {}}
    for file in sorted((folder / "samples").glob("*.jsonl")):
        for place, row in enumerate(read_lines(file)):
            texts = [wanted(row, name, place, file, str) for name in ("prompt", "response")]
            right = wanted(row, "outcome", place, file, (float, int)) == 1
            solves = row.get("kind") != KIND and not row.get("truncated", False)
            if solves and row.get("verdict", True):
                found[right][Labelled(*texts, right)] = None
    pairs = zip(*found.values(), strict=False)
    return [one for pair in pairs for one in pair]
