"""Worked solutions in the groups of the policy: rows of a teacher."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.batch import Batch, concatenate
from rlvr_jax.experience.parts import Actor, Stage, StepContext
from rlvr_jax.experience.requests import SampleRequest
from rlvr_jax.objectives import TEACHER
from rlvr_jax.types import is_correct
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part

__all__ = ["add_traces", "off_policy_rows"]

GIVES = frozenset({"off_policy", "origin"})


@part(reads=frozenset({"solution"}), writes=GIVES)
def add_traces(per_group: Count = 1) -> Stage:
    """Replaces sampled responses of every group by the worked solution of its prompt.

    The merged steps of a solution and the stop token are graded like a response; an incorrect one
    stays and becomes less probable. A solution longer than the budget of a response is left out, so
    its group is smaller. Log-probs of the added rows are 0.

    Args:
      per_group: rows of a group that are the solution.
    Metrics: traces (rows added), traces_right (correct ones among them), traces_too_long (prompts),
      traces_alone (groups with a correct solution only).
    Raises:
      ValueError: at the start of a run: a group has no row of the policy, or a prompt has no
        solution.
    Source: LUFFY, https://github.com/ElliottYan/LUFFY.
    """

    def apply(batch, actor, state, turn):
        every = np.ones(len(batch.groups), bool)
        traces, fit = solutions(actor, batch.requests_of(every), per_group, turn)
        metrics, solved = trace_metrics(traces, fit), _solved(batch)
        batch = own_rows(batch)
        if traces is not None:
            metrics["traces_alone"] = float(np.sum(_solved(traces) & ~solved[fit]))
            batch = batch.with_groups(fit, traces, "append")
        return batch, state, metrics

    return Stage(apply, size=fewer_rows("add_traces: per_group", per_group))


def _solved(batch: Batch) -> np.ndarray:
    """Groups with a correct row, bool [G]."""
    correct = is_correct(batch.rollouts.outcome)
    return np.array([correct[rows].any() for rows in batch.groups], bool)


def fewer_rows(argument: str, number: int) -> Callable[[int], int]:
    """The size of sampled groups without the rows that a stage adds to them (`Stage.size`)."""

    def size(samples):
        if samples <= number:
            raise ValueError(
                f"{argument} must be below the {samples} rollouts of a group, got {number}"
            )
        return samples - number

    return size


def off_policy_rows(batch: Batch) -> Batch:
    """The rows, marked as a teacher's."""
    tokens = np.full(batch.rollouts.mask.shape, TEACHER, np.int32)
    return batch.with_rollouts(off_policy=np.ones(len(batch), bool), origin=tokens)


def own_rows(batch: Batch) -> Batch:
    """The batch with records of origin: the policy, except for rows that have such records."""
    rollouts = batch.rollouts
    known = {}
    if "off_policy" not in rollouts.records:
        known["off_policy"] = np.zeros(len(batch), bool)
    if "origin" not in rollouts.records:
        known["origin"] = np.zeros(rollouts.mask.shape, np.int32)
    return batch.with_rollouts(**known)


def solutions(
    actor: Actor, requests: Sequence[SampleRequest], copies: int, turn: StepContext
) -> tuple[Batch | None, np.ndarray]:
    """Graded rows of the worked solutions that fit the budget, None without any; and bool [n].

    Args:
      actor: grades the solutions.
      requests: one for each prompt, [n].
      copies: rows of each solution.
      turn: context of the step.
    """
    stop = actor.stop_token()
    tokens = [[*actor.encode("".join(request.prompt.solution)), stop] for request in requests]
    fit = np.array([len(ids) <= turn.setting.response_tokens for ids in tokens], bool)
    if not fit.any():
        return None, fit
    fitting = [
        replace(request, samples=copies)
        for request, there in zip(requests, fit, strict=True)
        if there
    ]
    rows = [ids for ids, there in zip(tokens, fit, strict=True) if there for _ in range(copies)]
    return actor.grade(off_policy_rows(actor.written(fitting, rows))), fit


def trace_metrics(traces: Batch | None, fit: np.ndarray) -> dict[str, float]:
    """Numbers of added solutions, of correct ones among them, and of solutions that do not fit."""
    outcomes = np.zeros(0) if traces is None else traces.rollouts.outcome
    return {
        "traces": float(len(outcomes)),
        "traces_right": float(np.sum(is_correct(outcomes))),
        "traces_too_long": float(np.sum(~fit)),
    }


def with_rows(batch: Batch, rows: np.ndarray, others: Batch, sources: np.ndarray) -> Batch:
    """The batch with some rows replaced by rows of another batch.

    Args:
      batch: the batch.
      rows: int [n], replaced rows.
      others: has the replacements.
      sources: int [n], their replacements in `others`.
    """
    order = np.arange(len(batch))
    order[rows] = len(batch) + sources
    group = batch.renumbered().rollouts.group
    return concatenate([batch, others]).take(order).with_rollouts(group=group).renumbered()
