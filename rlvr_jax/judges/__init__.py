"""Judges: models that grade responses which no verifier can grade.

A `Judge` puts texts into a prompt, sends it to a `Call` (a server, the policy itself, another
folder, a custom function), and reads numbers from the reply. Unreadable and failed replies are not
verdicts and are counted. A file of the run stores replies and failures (`Replies`), so a resumed
run gives the same bytes without new requests.

This subpackage has no policy and no rows: `experience.judge` judges the rows of a batch.
"""

from rlvr_jax.judges.calls import Call, Question, Reply, Spending, by_function, one_by_one
from rlvr_jax.judges.judge import Judge, Verdicts
from rlvr_jax.judges.parse import as_fractions, number, points, two_numbers, yes_or_no
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
    "two_numbers",
    "yes_or_no",
]
