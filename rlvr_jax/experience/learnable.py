"""Ends a run that cannot learn, because almost nothing is graded."""

from collections import Counter

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.tasks import GradingError, SelfCheck
from rlvr_jax.tasks.grading import shortened

UNGRADED = 0.9
"""From this fraction of ungraded responses a run ends. Chosen, not measured."""

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
        found = (problem for problem in check.problems if " gold answer " in problem)
        raise GradingError(
            f"task {check.task!r}: known answers must be graded, got {ungraded} of {known}"
            f" ungraded: nothing can be learned; {_MEND}. {next(found, '')}".rstrip()
        )


def check_first_step(task: str, batch: Batch) -> None:
    """Ends a run if almost all responses of its first step are ungraded. Missing grades of a judge
    are a warning, because the judge may answer in the next step.

    Args:
      batch: the graded batch of the update. Rows to imitate need no grades.
    Raises:
      GradingError: with the counts, the stages of the verifier, and one response.
    """
    imitated = batch.rollouts.records.get("supervised", np.zeros(len(batch), bool))
    ungraded, count = np.flatnonzero(~batch.decided & ~imitated), int(np.sum(~imitated))
    if not count or len(ungraded) < UNGRADED * count:
        return
    stages = Counter(batch.grades[row].stage or "no reason given" for row in ungraded)
    where = ", ".join(f"{stage}: {count}" for stage, count in stages.most_common(3))
    row = int(ungraded[0])
    raise GradingError(
        f"task {task!r}: responses must be graded, got {len(ungraded)} of {count} ungraded in the"
        f" first step ({where}): nothing can be learned; {_MEND}. An ungraded response is"
        f" {shortened(batch.responses[row].text)} to {shortened(batch.prompts[row].text)}"
    )
