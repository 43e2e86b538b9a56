"""Grades responses with a second verifier; its numbers are further rewards."""

import functools
from collections.abc import Sequence
from dataclasses import replace

from rlvr_jax.experience.grades import grade, with_info
from rlvr_jax.experience.parts import RunInfo, Stage
from rlvr_jax.tasks import Grade, Prompt, Response, Task, verifier
from rlvr_jax.tasks.base import Verify
from rlvr_jax.types.parts import part
from rlvr_jax.verifiers.checks import Check

__all__ = ["grade_also"]

NOTHING = float("nan")


@part(at_grading=True, by_row=True)
def grade_also(
    verify: Verify | Check, names: Sequence[str], outcome: str = "", behind_prompt: bool = False
) -> Stage:
    """Adds numbers of another verifier to the grades (`Grade.info`).

    It grades all responses that are graded in the step. Its numbers become the first rewards of the
    task; the outcome does not change. Missing numbers, and those of ungraded responses, are NaN.

    Args:
      verify: like `Task.verify`; or a check that is fast on any text, run in this process.
      names: names of the numbers in its info.
      outcome: name of its outcome as a reward; "": not used.
      behind_prompt: it reads prompt and response as one text.
    Metrics: second_verifier_no_verdict (ungraded responses), second_verifier_timeouts (responses
      for which it ran out of time), info/<name> (mean of a number).
    """
    every = [*([outcome] if outcome else []), *names]
    if not every or isinstance(names, str):
        raise ValueError(f"grade_also: names must be those of numbers, at least one, got {names!r}")
    verify = verifier(verify, workers=0) if isinstance(verify, Check) else verify
    own = functools.lru_cache(maxsize=2)(functools.partial(_task, verify, behind_prompt))

    def apply(batch, actor, state, turn):
        second = grade(own(turn.setting), batch).grades
        counts = {
            "second_verifier_no_verdict": float(sum(one.outcome is None for one in second)),
            "second_verifier_timeouts": float(sum(one.timed_out for one in second)),
        }
        return with_info(batch, [_numbers(one, names, outcome) for one in second]), state, counts

    return Stage(apply, rewards=tuple(every))


def _task(verify: Verify, behind_prompt: bool, setting: RunInfo) -> Task:
    """The task of a run with the other verifier."""

    def behind(prompts: Sequence[Prompt], responses: Sequence[Response]):
        whole = [
            replace(response, text=f"{prompt.text} {response.text}")
            for prompt, response in zip(prompts, responses, strict=True)
        ]
        return verify(prompts, whole)

    return replace(setting.task, verify=behind if behind_prompt else verify, rewards=())


def _numbers(grade: Grade, names: Sequence[str], outcome: str) -> dict[str, float]:
    there = grade.outcome is not None
    numbers = {name: grade.info.get(name, NOTHING) if there else NOTHING for name in names}
    return {outcome: grade.outcome if there else NOTHING, **numbers} if outcome else numbers
