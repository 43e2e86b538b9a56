"""The diagnosis of two policies from arrays of their responses to the same problems."""

from collections.abc import Mapping

import numpy as np

from rlvr_jax.analysis.diagnosis.answers import Answers
from rlvr_jax.analysis.diagnosis.formats import FORMATS, formats_of_answers
from rlvr_jax.analysis.diagnosis.information import information
from rlvr_jax.analysis.diagnosis.likelihood import likelihood
from rlvr_jax.analysis.diagnosis.reach import reach
from rlvr_jax.analysis.diagnosis.side_by_side import side_by_side
from rlvr_jax.analysis.diagnosis.ties import ties
from rlvr_jax.analysis.diagnosis.topics import Topic
from rlvr_jax.analysis.diagnosis.winners import winners


def diagnose_answers(
    before: Answers,
    after: Answers,
    again: Answers | None = None,
    names: tuple[str, str] = ("the first policy", "the second policy"),
    rules: Mapping[str, str] = FORMATS,
) -> list[Topic]:
    """The diagnosis of two policies from their answers, topic by topic.

    Args:
      before, after: answers of two policies, equally many to the same problems. With `other_logp`
        and `other_entropy` the policies are also compared on the same tokens.
      again: a second sampling of the first policy, with other random numbers. Its difference from
        `before` is the noise floor of every number. None: halves of the samples are compared
        instead, where this is possible.
      names: names of the two policies in sentences.
      rules: formats of responses, regular expressions by name.
    Returns:
      Topics, for `write_page` and `as_json`.
    Raises:
      ValueError: problems, weights, or numbers of answers differ.
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
        formats_of_answers(before, after, again, names, rules),
        ties(before, names[0]),
        information(before, after, names),
        winners(before, after, names),
    ]
