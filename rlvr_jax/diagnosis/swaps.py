"""Grades correct responses after the prompts of similar ones: a consistent reward rejects them.

    python -m rlvr_jax.diagnosis.swaps --task countdown
    python -m rlvr_jax.diagnosis.swaps RUN

With --task the responses are the known answers of the test prompts. With RUN they are the stored
responses with outcome 1 of a run directory, graded by its task. A pair is two prompts of a kind
that share many word bigrams and have different answers and responses.

An accepted swap is a false positive of the verifier, or a response that fits both prompts: the
command prints some to read. `analysis.texts.reward_consistency` has the measures and their source.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rlvr_jax import sandbox, tasks
from rlvr_jax.analysis.run_directory import load_run
from rlvr_jax.analysis.samples import number_or
from rlvr_jax.analysis.texts.diversity_metrics import bigrams, jaccard_distance
from rlvr_jax.analysis.texts.reward_consistency import consistency, false_accepts
from rlvr_jax.arguments import as_typed
from rlvr_jax.tasks import Prompt, Response, Task
from rlvr_jax.tasks.grading import grades_of
from rlvr_jax.types import is_correct

_SHOWN, _LENGTH = 5, 70


class _Known(NamedTuple):
    """A prompt with a correct response."""

    prompt: Prompt
    response: str


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    options = _parser().parse_args(arguments)
    if options.unsafe_local:
        sandbox.allow_unsafe_local()
    try:
        task, known = _of_run(options.run) if options.run else _of_task(options)
        pairs = _pairs(known, options.pairs)
        if not pairs:
            raise ValueError(
                "swaps: correct responses must be known to two prompts of one kind with different"
                f" answers, got {len(known)} prompts"
            )
    except ValueError as error:
        sys.exit(f"error: {error}")
    outcome, reward, graded = _graded(task, pairs)
    kept = graded.all(axis=(1, 2)) & is_correct(outcome[:, [0, 1], [0, 1]]).all(axis=1)
    print(
        f"{len(pairs)} pairs of similar prompts with different answers; in {kept.sum()} both own"
        " responses are graded as correct"
    )
    if not kept.any():
        sys.exit(
            "swaps: both responses of a pair must be correct for their own prompts, got no such"
            " pair; check the task"
        )
    accepted = is_correct(outcome[kept])
    print(f"accepted swaps: {100 * false_accepts(accepted):.2f} % of {2 * kept.sum()}")
    found = consistency(reward[kept])
    print(
        f"consistency of the reward: response side {found.response:.3f}, prompt side"
        f" {found.prompt:.3f}, both {found.both:.3f}"
    )
    swapped = [
        (pairs[number][i].prompt.text, pairs[number][j].response)
        for number, table in zip(np.flatnonzero(kept), accepted, strict=True)
        for i, j in ((0, 1), (1, 0))
        if table[i, j]
    ]
    for prompt, response in swapped[:_SHOWN]:
        print(f"  accepted: {_short(prompt)} | {_short(response)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m rlvr_jax.diagnosis.swaps",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("run", nargs="?", metavar="RUN", help="run directory with stored responses")
    add("--task", help="task whose prompts have known answers, as in rlvr_jax train")
    add("--task-options", nargs="*", default=(), help="as in rlvr_jax train")
    add("--columns", nargs="*", default=(), help="columns of its files, as in rlvr_jax train")
    add("--unsafe-local", action="store_true", help="as in rlvr_jax train")
    add("--pairs", type=int, default=200, help="largest number of pairs")
    return parser


def _of_task(options: argparse.Namespace) -> tuple[Task, list[_Known]]:
    """The known answers of the test prompts."""
    if not options.task:
        raise ValueError("swaps: either RUN or --task must be given, got none")
    task = tasks.load_as_written(options.task, options.task_options, options.columns)
    known = [_Known(prompt, prompt.gold) for prompt in task.test if prompt.gold is not None]
    if not known:
        raise ValueError(
            f"swaps: --task must have known answers (gold), got {options.task!r}: name a run"
            " directory with correct responses instead"
        )
    return task, known


def _of_run(path: str) -> tuple[Task, list[_Known]]:
    """The first correct response that a run has stored for each of its prompts."""
    with as_typed("RUN", "load_run: path"):
        run = load_run(path)
    name = str(run.setting("task", ""))
    given = (tuple(run.setting(each, ())) for each in ("task_options", "columns"))
    task = tasks.load_as_written(name, *given)
    prompts = {prompt.text: prompt for prompt in (*task.test, *task.train)}
    known: dict[str, _Known] = {}
    for step in run.sample_steps():
        for row in run.samples(step):
            prompt = prompts.get(str(row.get("prompt")))
            if prompt and is_correct(number_or(row.get("outcome"), 0.0)):
                known.setdefault(prompt.text, _Known(prompt, str(row["response"])))
    if not known:
        raise ValueError(
            f"swaps: RUN must have correct responses in samples/ to prompts of {name!r}, got none"
            f" in {path} (--samples-stored)"
        )
    return task, list(known.values())


def _pairs(known: Sequence[_Known], most: int) -> list[tuple[_Known, _Known]]:
    """Each response with the one of the most similar prompt of its kind, none twice."""
    left, found = list(known), []
    while left and len(found) < most:
        first = left.pop(0)
        grams = bigrams(first.prompt.text.split())
        others = [
            (jaccard_distance([grams, bigrams(each.prompt.text.split())]), place)
            for place, each in enumerate(left)
            if each.prompt.kind == first.prompt.kind
            and each.prompt.answer != first.prompt.answer
            and each.response.split() != first.response.split()
        ]
        if others:
            found.append((first, left.pop(min(others)[1])))
    return found


def _graded(
    task: Task, pairs: Sequence[tuple[_Known, _Known]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outcomes, rewards and whether they are known: [pairs, prompt, response]."""
    prompts = [pair[i].prompt for pair in pairs for i in (0, 1) for _ in (0, 1)]
    answers = [Response(pair[j].response) for pair in pairs for _ in (0, 1) for j in (0, 1)]
    grades = grades_of(task, prompts, answers)
    shape = len(pairs), 2, 2
    outcome, reward = (
        np.array([getattr(grade, name) or 0.0 for grade in grades]).reshape(shape)
        for name in ("outcome", "reward")
    )
    return outcome, reward, np.array([g.outcome is not None for g in grades]).reshape(shape)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LENGTH else f"{line[:_LENGTH]}…"


if __name__ == "__main__":
    main()
