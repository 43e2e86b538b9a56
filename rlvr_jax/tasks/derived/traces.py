"""Traces: a task whose worked solutions are verified answers of some policy.

    traces:teacher.jsonl

Each row of the file has the name of the task (`task`), a prompt of it (`prompt`, `answer`, `kind`),
and correct answers: `solution`, as steps, and `solutions`, all of them. `python -m
rlvr_jax traces` writes such files. Prompts without a trace are left out. The held-out prompts and
the verifier are those of the task.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlvr_jax.tasks import Prompt, Response, Task, load
from rlvr_jax.tasks.synthesis.lines import read_lines, wanted, wanted_list


def steps_of(task: Task, prompt: Prompt, text: str) -> list[str]:
    """A response as steps: those that its task defines, else its lines with their ends."""
    if task.score_steps is None:
        ends = [place + 1 for place, letter in enumerate(text) if letter == "\n"]
    else:
        ends = [step.end for step in task.score_steps(prompt, text) if 0 < step.end <= len(text)]
    if not ends or ends[-1] < len(text):
        ends.append(len(text))
    return [text[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True) if b > a]


def trace_row(name: str, task: Task, prompt: Prompt, texts: Sequence[str]) -> dict[str, Any]:
    """The row of a prompt with correct answers.

    Args:
      name: name of the task for `load`.
      task: the loaded task.
      prompt: one of its train prompts.
      texts: at least one; the first one is shown first.
    """
    solutions = [steps_of(task, prompt, text) for text in texts]
    fields = {"task": name, "prompt": prompt.text, "answer": prompt.answer, "kind": prompt.kind}
    return fields | {"solution": solutions[0], "solutions": solutions}


def traces(path: str, response_tokens: int = 0) -> Task:
    """The task.

    Args:
      path: path of the file.
      response_tokens: budget of a response; 0: that of the task of the traces.
    Raises:
      ValueError: there is no such file, or it has no rows or rows of several tasks; the task does
        not have a prompt; a field is of another kind; the task's verifier does not grade one of
        the solutions as correct.
    """
    file = Path(path)
    rows = read_lines(file)
    names = {str(wanted(row, "task", place, file)) for place, row in enumerate(rows)}
    if len(names) != 1:
        raise ValueError(f"traces: rows of {path} must be of one task, got {sorted(names)}")
    task = load(names.pop())
    known: dict[Any, Prompt] = {prompt.text: prompt for prompt in task.train}
    found = {}
    for place, row in enumerate(rows):
        found[wanted(row, "prompt", place, file, str)] = _solutions(row, place, file)
    strange = [text for text in found if text not in known]
    if strange:
        raise ValueError(
            f"traces: prompts of {path} must be train prompts of {task.name!r}, got"
            f" {str(strange[0])[:80]!r}"
        )
    prompts = [
        replace(
            known[text],
            solution=solutions[0],
            gold="".join(solutions[0]),
            meta={**known[text].meta, "solutions": solutions},
        )
        for text, solutions in found.items()
    ]
    asked = [prompt for prompt in prompts for _ in prompt.meta["solutions"]]
    texts = ["".join(steps) for prompt in prompts for steps in prompt.meta["solutions"]]
    grades = task.verify(asked, [Response(text) for text in texts])
    wrong = [p for p, grade in zip(asked, grades, strict=True) if grade.outcome != 1]
    if wrong:
        raise ValueError(
            f"traces: the solutions of {path} must be correct, got an incorrect one for"
            f" {wrong[0].text[:80]!r}"
        )
    remaining = [name for name in task.derived if name not in ("solution", "meta")]
    return replace(
        task,
        name=f"traces:{path}",
        train=tuple(prompts),
        derived=tuple(remaining),
        mixture={k: v for k, v in task.mixture.items() if k in {p.kind for p in prompts}},
        response_tokens=response_tokens or task.response_tokens,
    )


def _solutions(row: Mapping[str, Any], place: int, path: Path) -> list[list[str]]:
    """All solutions of a row, each as its steps; the first one is shown first."""
    steps = wanted_list(row, "solution", place, path, str)
    others = wanted_list({"solutions": [], **row}, "solutions", place, path, list)
    others = [wanted_list({"solutions": each}, "solutions", place, path, str) for each in others]
    return [steps, *(each for each in others if each != steps)]
