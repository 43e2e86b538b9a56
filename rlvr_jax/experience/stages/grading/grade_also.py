"""A second verifier grades answers: its numbers are further rewards."""

import functools
from collections.abc import Sequence
from dataclasses import replace

from rlvr_jax.experience.grades import grade
from rlvr_jax.experience.parts import Setting, Stage
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
    """Adds what another verifier says of an answer to its grade (`Grade.info`).

    It grades all answers that are graded in the step, as `judge` does; its numbers become the first
    rewards of the task, and the outcome stays the task's. A number that it does not tell, and all
    of them where it has no verdict, are NaN.

    Args:
      verify: as of a task; or a check that cannot take long on any text, run in this process.
      names: of its info that are taken.
      outcome: name that its outcome gets; "": it is not taken.
      behind_prompt: it reads the prompt and the answer as one text.
    Writes: info of grades. Metrics: second_verifier_no_verdict, second_verifier_timeouts (counts);
      a curve info/<name> of each number.
    Raises:
      ValueError: no names.
    """
    every = [*([outcome] if outcome else []), *names]
    if not every or isinstance(names, str):
        raise ValueError(f"grade_also: names must be those of numbers, at least one, got {names!r}")
    verify = verifier(verify, workers=0) if isinstance(verify, Check) else verify
    own = functools.lru_cache(maxsize=2)(functools.partial(_task, verify, behind_prompt))

    def apply(batch, actor, state, turn):
        told = grade(own(turn.setting), batch).grades
        known = [_numbers(one, names, outcome) for one in told]
        grades = [
            replace(before, info={**before.info, **new})
            for before, new in zip(batch.grades, known, strict=True)
        ]
        counts = {
            "second_verifier_no_verdict": float(sum(one.outcome is None for one in told)),
            "second_verifier_timeouts": float(sum(one.timed_out for one in told)),
        }
        return replace(batch, grades=grades), state, counts

    return Stage(apply, rewards=tuple(every))


def _task(verify: Verify, behind_prompt: bool, setting: Setting) -> Task:
    """The task of a run as the other verifier grades it."""

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
