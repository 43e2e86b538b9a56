"""Laws of every task, and the check of one against them.

from rlvr_jax.tasks.laws import check

for law, reason in check(my_task).items():
    print(law, reason or "holds")
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlvr_jax.laws import hold, laws_of, require
from rlvr_jax.tasks.base import Prompt, Response, Task
from rlvr_jax.tasks.grading import grades_of
from rlvr_jax.tasks.selfcheck import self_check
from rlvr_jax.verifiers.grade import Grade

PROMPTS = 8
ODD_TEXTS = ("", " ", "\\boxed{", "<answer>", "\0", "\ud800", "½ ∞ \u202e", "(" * 5000, "9" * 5000)
"""Responses that a verifier must survive: empty, unclosed, not printable, deep and long."""


@dataclass(frozen=True, eq=False)
class Case:
    """A task.

    Fields:
      make: () -> a new task at each call.
    """

    make: Callable[[], Task]

    @functools.cached_property
    def task(self) -> Task:
        """The task that is graded."""
        return self.make()

    @property
    def prompts(self) -> list[Prompt]:
        """The first prompts of the train split."""
        return [self.task.train[n] for n in range(min(PROMPTS, len(self.task.train)))]

    def grades(self, texts: Sequence[str]) -> list[Grade]:
        """Grades of each text as the response to each of the first prompts, in one batch."""
        prompts = [prompt for _ in texts for prompt in self.prompts]
        responses = [Response(text) for text in texts for _ in self.prompts]
        return grades_of(self.task, prompts, responses)


def prompts(case: Case) -> None:
    """The train and the test split have prompts, and no prompt is in both."""
    for name, split in (("train", case.task.train), ("test", case.task.test)):
        require(len(split) > 0, f"{name} has no prompts")
    train = {_shown(prompt) for prompt in case.task.train}
    both = [prompt.text for prompt in case.task.test if _shown(prompt) in train]
    require(not both, f"{len(both)} prompts of test are in train, such as {both[:1]}")


def _shown(prompt: Prompt) -> str:
    return f"{prompt.messages}{prompt.text}"


def same_prompts(case: Case) -> None:
    """The task has the same prompts each time it is made."""
    again = case.make()
    for name in ("train", "test"):
        one, two = (list(map(_shown, getattr(task, name))) for task in (case.task, again))
        require(one == two, f"{name} has other prompts when the task is made again")


def known_answers(case: Case) -> None:
    """Known answers score 1, and empty answers score 0."""
    problems = self_check(case.task).problems
    require(not problems, "; ".join(problems))


def odd_texts(case: Case) -> None:
    """Odd responses have grades in [0, 1] or are ungraded, and the verifier does not fail."""
    for grade in case.grades(ODD_TEXTS):
        outcome = grade.outcome
        require(outcome is None or 0 <= outcome <= 1, f"an outcome is {outcome}")


def same_grades(case: Case) -> None:
    """A response has the same outcome each time it is graded."""
    texts = ["0", "1", *filter(None, (prompt.gold for prompt in case.prompts))]
    one, two = ([grade.outcome for grade in case.grades(texts)] for _ in range(2))
    require(one == two, "outcomes change when a response is graded again")


LAWS = laws_of(prompts, same_prompts, known_answers, odd_texts, same_grades)


def check(make: Callable[[], Task]) -> dict[str, str]:
    """Checks a task against all laws.

    Args:
      make: () -> a new task at each call.
    Returns:
      For each law "" if it holds, else the reason.
    """
    return hold(LAWS, Case(make))
