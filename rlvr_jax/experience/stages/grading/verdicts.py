"""What the policy says about its own answers: one token behind each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Actor, Stage
from rlvr_jax.objectives import odds_of_yes, self_reward
from rlvr_jax.types.parts import part

__all__ = ["ask_verdict", "asked_rows", "reward_itself", "reward_odds"]

GIVES = frozenset({"asked_tokens", "asked_length", "verdict_ids"})


@part(writes=GIVES, by_row=True)
def ask_verdict(answers: Sequence[str], question: str = "") -> Stage:
    """Says what is asked behind each response, and which tokens the answer may be, so that the
    objective can read `verdict_logp`.

    Args:
      answers: texts of one token each, such as " Yes" and " No".
      question: behind the response; "": nothing, the token follows the response's last one.
    Writes: asked_tokens, asked_length, verdict_ids.
    Raises:
      ValueError: no answers; when a run begins to draw, an answer that is not one token of the
        policy's tokenizer, or two that are the same.
    """
    answers = checked_answers("ask_verdict", answers)

    def apply(batch, actor, state, turn):
        del turn
        return asked_rows(batch, actor, answers, question), state, {}

    return apply


@part(writes=frozenset({"self_reward"}), by_row=True)
def reward_itself(scale: float, reference: float) -> Stage:
    """Gives each answer what the policy that wrote it expects of it: `self_reward` of the first
    token that `ask_verdict` before it asks for.

    Args:
      scale, reference: of `self_reward`.
    Writes: self_reward. Metrics: self_reward (mean over finished rows).
    Source: LaSeR, https://github.com/RUCBM/LaSeR.
    """

    def apply(batch, actor, state, turn):
        del turn
        rollouts = batch.rollouts
        said = actor.score(batch, ["verdict_logp"])["verdict_logp"][:, 0]
        finished = ~rollouts.truncated & rollouts.mask.any(axis=1)
        score = np.asarray(self_reward(said, finished, scale, reference), rollouts.reward.dtype)
        told = {"self_reward": float(score[finished].mean())} if finished.any() else {}
        return batch.with_rollouts(self_reward=score), state, told

    return apply


@part(at_grading=True, by_row=True)
def reward_odds(
    question: str, answers: Sequence[str] = (" Yes", " No"), of: str = "start", name: str = "odds"
) -> Stage:
    """Adds ln p(yes) - ln p(no) of a policy that is asked about each answer to its grade.

    The number becomes the first reward of the task; it is asked for where answers are graded.

    Args:
      question: behind the response, such as "Is it polite? Answer Yes or No.".
      answers: yes and no, texts of one token each.
      of: whose odds, "start" or "current".
      name: of the reward.
    Writes: info of grades. Metrics: a curve info/<name>.
    Raises:
      ValueError: not two answers, or another policy; as `ask_verdict`.
    Source: RLBFF, https://arxiv.org/abs/2509.21319.
    """
    answers = checked_answers("reward_odds", answers)
    if len(answers) != 2:
        raise ValueError(f"reward_odds: answers must be yes and no, got {answers}")
    if of not in ("start", "current"):
        raise ValueError(f"reward_odds: of must be 'start' or 'current', got {of!r}")

    def apply(batch, actor, state, turn):
        del turn
        said = actor.score(asked_rows(batch, actor, answers, question), ["verdict_logp"], of)
        odds = np.asarray(odds_of_yes(said["verdict_logp"])).tolist()
        grades = [
            replace(grade, info={**grade.info, name: own})
            for grade, own in zip(batch.grades, odds, strict=True)
        ]
        return replace(batch, grades=grades), state, {}

    return Stage(apply, rewards=(name,))


def checked_answers(function: str, answers: Sequence[str]) -> tuple[str, ...]:
    if isinstance(answers, str) or not answers:
        raise ValueError(f"{function}: answers must be texts, at least one, got {answers!r}")
    return tuple(answers)


def asked_rows(batch: Batch, actor: Actor, answers: Sequence[str], question: str) -> Batch:
    """The rows with what is asked behind them."""
    ids = []
    for answer in answers:
        tokens = list(actor.encode(answer))
        if len(tokens) != 1:
            raise ValueError(
                f"ask_verdict: answers must be one token each of the policy's tokenizer, got"
                f" {answer!r} of {len(tokens)}"
            )
        ids += tokens
    if len({*ids}) < len(ids):
        raise ValueError(
            f"ask_verdict: answers must be different tokens of the policy's tokenizer, got"
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
