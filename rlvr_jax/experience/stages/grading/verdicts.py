"""Verdicts of the policy on its own responses: one token after each."""

from collections.abc import Sequence

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Actor, Stage
from rlvr_jax.types.parts import part

__all__ = ["asked_rows", "request_verdict"]

GIVES = frozenset({"asked_tokens", "asked_length", "verdict_ids"})


@part(writes=GIVES, by_row=True)
def request_verdict(answers: Sequence[str], question: str = "") -> Stage:
    """Records a question after each response and its possible answers, for `verdict_logp`.

    Args:
      answers: texts of one token each, such as " Yes" and " No".
      question: text after the response; "": the answer follows its last token.
    Raises:
      ValueError: there are no answers. In a run: an answer is not one token of the policy's
        tokenizer, or two answers are equal.
    """
    answers = checked_answers("request_verdict", answers)

    def apply(batch, actor, state, turn):
        return asked_rows(batch, actor, answers, question), state, {}

    return apply


def checked_answers(function: str, answers: Sequence[str]) -> tuple[str, ...]:
    """The answers as a tuple; ValueError for a single text or none."""
    if isinstance(answers, str) or not answers:
        raise ValueError(f"{function}: answers must be texts, at least one, got {answers!r}")
    return tuple(answers)


def asked_rows(batch: Batch, actor: Actor, answers: Sequence[str], question: str) -> Batch:
    """The rows with the question and its answers.

    Args:
      batch: graded responses.
      actor: has the tokenizer.
      answers: texts of one token each.
      question: text after the response.
    """
    ids = []
    for answer in answers:
        tokens = list(actor.encode(answer))
        if len(tokens) != 1:
            raise ValueError(
                f"request_verdict: answers must be one token each of the policy's tokenizer, got"
                f" {answer!r} of {len(tokens)}"
            )
        ids += tokens
    if len({*ids}) < len(ids):
        raise ValueError(
            f"request_verdict: answers must be different tokens of the policy's tokenizer, got"
            f" {list(answers)} with ids {ids}"
        )
    asked, rows = list(actor.encode(question)) if question else [], len(batch)

    def repeated(tokens):
        return np.repeat(np.asarray(tokens, np.int32).reshape(1, -1), rows, axis=0)

    return batch.with_rollouts(
        asked_tokens=repeated(asked),
        asked_length=np.full(rows, len(asked), np.int32),
        verdict_ids=repeated(ids),
    )
