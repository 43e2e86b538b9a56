"""Worked solutions by several writers: those that the policy understands best replace failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.batch import Batch, GroupTest, concatenate
from rlvr_jax.experience.parts import Actor, Stage, Turn
from rlvr_jax.experience.stages.donors.traces import GIVES, off_policy_rows, own_rows
from rlvr_jax.tasks import Prompt
from rlvr_jax.types.hyperparameters import Count, Finite
from rlvr_jax.types.parts import part

__all__ = ["by_comprehension", "comprehension", "place_ranked_traces", "traces_of"]

RIGHT = 0.5
"""An outcome above this counts as right."""


def traces_of(prompt: Prompt) -> list[Sequence[str]]:
    """The worked solutions of a prompt, each as its steps: `meta["solutions"]`, else `solution`."""
    return list(prompt.meta.get("solutions") or [prompt.solution])


def comprehension(logp: np.ndarray, answer: np.ndarray, geometric: bool = False) -> np.ndarray:
    """How probable an answer is for a policy that has read what stands before it, [B].

    Args:
      logp: [B, T], log-probs of rows that end with the answer.
      answer: bool [B, T], its tokens; 0 for a row without any.
      geometric: exp of the mean log-prob, and not the mean probability.
    """
    count = np.maximum(answer.sum(axis=1), 1)
    values = logp if geometric else np.exp(logp)
    mean = np.where(answer, values, 0).sum(axis=1) / count
    return np.where(answer.any(axis=1), np.exp(mean) if geometric else mean, 0)


def by_comprehension(score: np.ndarray, length: np.ndarray, number: int) -> np.ndarray:
    """The places of the `number` best understood traces, of equal ones the shorter first.

    Args:
      score, length: of each trace.
    """
    return np.lexsort((length, -np.asarray(score)))[:number]


@part(reads=frozenset({"solution"}), writes=GIVES, by_row=True)
def place_ranked_traces(when: GroupTest, most: Count = 2, right_above: Finite = RIGHT) -> Stage:
    """Puts worked solutions in the place of wrong answers, where a group needs them.

    Of the solutions that a prompt has (`traces_of`) those are taken after whose reasoning the
    policy finds the answer, their last step, most probable; they overwrite as many wrong rows,
    drawn at random. A solution is learned from with reward 1, whatever its grade is. What is longer
    than the budget of a response is no candidate.

    Args:
      when: which groups, such as `none_above(0.5)`.
      most: solutions of a group at most.
      right_above: outcome above which an answer is right, so that it is not overwritten.
    Reads: outcome, Prompt.solution, Prompt.meta. Writes: off_policy, origin; reward, of the rows
      that are added. Scores: the solutions of those groups. Metrics: traces (rows added),
      traces_right (of them), traces_too_long (solutions of those groups), comprehension (mean of
      the rows added).
    Raises:
      ValueError: most below 1, a bound that is not finite; when a run is set up, a prompt without a
        solution.
    Source: AMPO, https://github.com/SII-Enigma/AMPO.
    """

    def apply(batch, actor, state, turn):
        wanted = np.flatnonzero(when(batch.outcomes()))
        batch = own_rows(batch)
        random = turn.random()
        order, chosen, scores, long = np.arange(len(batch)), [], [], 0
        for group in wanted:
            rows = batch.groups[group]
            wrong = rows[batch.rollouts.outcome[rows] <= right_above]
            written, answer = _candidates(actor, batch.asks[rows[0]], turn)
            long += len(traces_of(batch.asks[rows[0]].prompt)) - len(answer)
            if written is None or not len(wrong):
                continue
            logp = actor.score(written, ["logp"])["logp"]
            score = comprehension(logp, answer)
            best = by_comprehension(score, written.rollouts.length, min(most, len(wrong)))
            places = random.permutation(wrong)[: len(best)]
            order[places] = len(batch) + sum(map(len, chosen)) + np.arange(len(best))
            chosen.append(written.take(best))
            scores += score[best].tolist()
        if not chosen:
            return (
                batch,
                state,
                {"traces": 0.0, "traces_right": 0.0, "traces_too_long": float(long)},
            )
        traces = actor.grade(off_policy_rows(concatenate(chosen)))
        right = float(np.sum(traces.rollouts.outcome > RIGHT))
        traces = traces.with_rollouts(reward=np.ones_like(traces.rollouts.reward))
        group = batch.rollouts.group
        whole = concatenate([batch, traces]).take(order).with_rollouts(group=group).renumbered()
        told = {"traces": float(len(traces)), "traces_right": right}
        told |= {"traces_too_long": float(long), "comprehension": float(np.mean(scores))}
        return whole, state, told

    return apply


def _candidates(actor: Actor, ask: Ask, turn: Turn) -> tuple[Batch | None, np.ndarray]:
    """Rows of a prompt's solutions that fit the budget, and where in them the answer stands."""
    stop, width = actor.stop_token(), turn.setting.response_tokens
    rows, starts = [], []
    for steps in traces_of(ask.prompt):
        tokens = actor.encode("".join(steps))
        if len(tokens) < width:
            rows.append([*tokens, stop])
            starts.append(min(len(actor.encode("".join(steps[:-1]))), len(tokens) - 1))
    if not rows:
        return None, np.zeros((0, width), bool)
    written = actor.written([replace(ask, samples=len(rows))], rows)
    places = np.arange(width)[None]
    ends = written.rollouts.length[:, None] - 1  # the stop token belongs to no answer
    return written, (places >= np.array(starts)[:, None]) & (places < ends)
