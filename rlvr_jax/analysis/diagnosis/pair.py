"""Two policies by their answers to the same problems, only from arrays."""

import numpy as np

from rlvr_jax.analysis.diagnosis.answers import Answers
from rlvr_jax.analysis.diagnosis.likelihood import likelihood
from rlvr_jax.analysis.diagnosis.reach import reach
from rlvr_jax.analysis.diagnosis.side_by_side import side_by_side
from rlvr_jax.analysis.diagnosis.topics import Topic


def diagnose_answers(
    before: Answers,
    after: Answers,
    again: Answers | None = None,
    names: tuple[str, str] = ("the start", "the end"),
) -> list[Topic]:
    """The diagnosis of two policies from their answers, topic by topic.

    Args:
      before, after: of two policies, the same number of answers to the same problems. With
        `other_logp` and `other_entropy` both are also compared on the same tokens.
      again: a second draw of the first policy, with other random numbers: its difference from
        `before` is the noise floor of every number. None: half of the samples replace
        it where they can.
      names: of the two policies, as sentences call them.
    Returns:
      Topics, for `write_page` and `as_json`: reach, answers, the same tokens.
    Raises:
      ValueError: other problems, weights, or numbers of answers.
    """
    first = before.counts()
    for name, answers in (("after", after), ("again", again)):
        if answers is None:
            continue
        own = answers.counts()
        if (own["n"], own["prompts"]) != (first["n"], first["prompts"]):
            raise ValueError(
                f"diagnose_answers: {name} must answer the {len(first['prompts'])} problems of"
                f" before {first['n']} times each, got {len(own['prompts'])} problems {own['n']}"
                " times"
            )
        if not np.array_equal(answers.weights, before.weights):
            raise ValueError(
                f"diagnose_answers: {name} must weigh the problems as before does, got"
                f" {answers.weights}"
            )
    return [
        reach(first, after.counts(), names, None if again is None else again.counts()),
        side_by_side(before, after, again, names),
        likelihood(before, after, names),
    ]
