"""Hints that a policy wrote: a task whose prompts have them as their hints.

    hints:hints.jsonl

Each row of the file has the name of the task (`task`), a prompt of it (`prompt`), and the `hint`.
`python -m rlvr_jax hints` writes such files. Prompts without a hint are left out. The held-out
prompts and the verifier are those of the task.
"""

from dataclasses import replace
from pathlib import Path

from rlvr_jax.tasks.base import Task
from rlvr_jax.tasks.derived.hints import gives_away
from rlvr_jax.tasks.loading import load
from rlvr_jax.tasks.synthesis.lines import read_lines, wanted

__all__ = ["explanation_request", "hint_request", "hints"]


def explanation_request(problem: str, answer: str) -> str:
    """The request to explain an answer, which the policy is shown."""
    return f"{problem}\n\nThe answer: {answer}\n\nExplain why this answer is correct."


def hint_request(problem: str, answer: str, explanation: str) -> str:
    """The request for the knowledge that a problem requires, without its answer."""
    return (
        f"{problem}\n\nThe answer: {answer}\n\nAn explanation:\n{explanation}\n\nWrite one sentence"
        " with the knowledge that such a question requires. Do not mention the answer or the"
        " numbers of this question."
    )


def hints(path: str) -> Task:
    """The task.

    Args:
      path: path of the file.
    Raises:
      ValueError: there is no such file, or a row does not fit: its task, its prompt, its fields, or
        a hint with the answer.
    """
    file = Path(path)
    rows = read_lines(file)
    names = {str(wanted(row, "task", place, file)) for place, row in enumerate(rows)}
    if len(names) != 1:
        raise ValueError(f"hints: rows of {path} must be of one task, got {sorted(names)}")
    task = load(names.pop())
    known = {prompt.text: prompt for prompt in task.train}
    found = {}
    for place, row in enumerate(rows):
        text, hint = (wanted(row, name, place, file, str) for name in ("prompt", "hint"))
        if text not in known:
            raise ValueError(
                f"hints: prompts of {path} must be train prompts of {task.name!r}, got"
                f" {text[:80]!r}"
            )
        if gives_away(hint, known[text]):
            raise ValueError(
                f"hints: hints of {path} must not contain the answer, got {hint[:80]!r} for"
                f" {text[:80]!r}"
            )
        found[text] = replace(known[text], hints=(hint,))
    kinds = {prompt.kind for prompt in found.values()}
    return replace(
        task,
        name=f"hints:{path}",
        train=tuple(found.values()),
        derived=tuple(name for name in task.derived if name != "hints"),
        mixture={kind: part for kind, part in task.mixture.items() if kind in kinds},
    )
