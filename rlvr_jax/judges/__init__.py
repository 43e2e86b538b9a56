"""Judges: models that grade responses which no verifier can grade.

    judge = Judge(server("model-name"), question(), number(), names=("quality",))
    verdicts = judge.query([{"prompt": "Why is …?", "response": "Because …"}], step=0)

A `Judge` puts texts into a prompt, sends it to a `Call`, and reads numbers from the reply. A `Call`
is a server, the policy, another policy folder, or a custom function. Unreadable and failed replies
are ungraded and counted. `Replies` stores replies and failures in a file of the run, so a resumed
run has the same bytes without new requests. `experience.judge` judges the rows of a batch.
"""

from rlvr_jax.judges.calls import Call, Question, Reply, Spending, by_function, one_by_one
from rlvr_jax.judges.judge import Judge, Verdicts
from rlvr_jax.judges.parse import (
    as_fractions,
    number,
    points,
    strength,
    two_numbers,
    yes_or_no,
)
from rlvr_jax.judges.prompts import (
    comparison,
    constraints_question,
    question,
    rubric_question,
    shown_by,
)
from rlvr_jax.judges.replies import Replies
from rlvr_jax.judges.rubric import check_rubric, read_rubric
from rlvr_jax.judges.server import server

__all__ = [
    "Call",
    "Judge",
    "Question",
    "Replies",
    "Reply",
    "Spending",
    "Verdicts",
    "as_fractions",
    "by_function",
    "check_rubric",
    "comparison",
    "constraints_question",
    "number",
    "one_by_one",
    "points",
    "question",
    "read_rubric",
    "rubric_question",
    "server",
    "shown_by",
    "strength",
    "two_numbers",
    "yes_or_no",
]
