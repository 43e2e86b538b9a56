"""Ends a run in which nothing can be learned, as almost nothing is graded."""

from collections import Counter

import numpy as np

from rlvr_jax.experience import Batch
from rlvr_jax.tasks import GradingError, SelfCheck
from rlvr_jax.tasks.grading import shortened

UNGRADED = 0.9
"""Fraction of ungraded answers from which on a run does not go on. Chosen, not measured."""

_MEND = (
    "look at what its verifier returns (`rlvr_jax.tasks.self_check`), at the columns of the"
    " answers, and at `python -m rlvr_jax.sandbox` where code is run"
)


def check_known_answers(check: SelfCheck) -> None:
    """Refuses a task whose verifier grades almost none of the known correct answers.

    Raises:
      GradingError: with the counts and the first reasons of the check.
    """
    known = sum(kind.num_golds for kind in check.kinds)
    ungraded = sum(kind.ungraded_golds for kind in check.kinds)
    if known and ungraded >= UNGRADED * known:
        problem_text = next((problem for problem in check.problems if "no verdict" in problem), "")
        raise GradingError(
            f"task {check.task!r}: known answers must be graded, got no verdict on {ungraded} of"
            f" {known}: nothing can be learned; {_MEND}. {problem_text}".rstrip()
        )


def check_first_step(task: str, batch: Batch) -> None:
    """Refuses to go on from a first step in which almost no response has a grade. A judge without a
    grade is a warning: it may be back in the next step.

    Args:
      batch: that is trained on, with grades. Rows to imitate need none.
    Raises:
      GradingError: with the count, where the verifier gave up, and one of the responses.
    """
    imitated = batch.rollouts.records.get("supervised", np.zeros(len(batch), bool))
    ungraded, count = np.flatnonzero(~batch.decided & ~imitated), int(np.sum(~imitated))
    if not count or len(ungraded) < UNGRADED * count:
        return
    stages = Counter(batch.grades[row].stage or "no reason given" for row in ungraded)
    where = ", ".join(f"{stage}: {count}" for stage, count in stages.most_common(3))
    row = int(ungraded[0])
    raise GradingError(
        f"task {task!r}: responses must be graded, got no grade for {len(ungraded)} of {count}"
        f" in the first step ({where}), such as prompt {shortened(batch.prompts[row].text)} and"
        f" response {shortened(batch.responses[row].text)}: nothing can be learned; {_MEND}"
    )
