"""Responses of an earlier policy that are added to every batch."""

import math

import numpy as np

from rlvr_jax.experience.batch import concatenate
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.donors.traces import own_rows
from rlvr_jax.experience.store import (
    empty_store,
    push,
    repeatable,
    rewritten,
    taken,
    uniform_places,
)
from rlvr_jax.tasks import Grade
from rlvr_jax.types.hyperparameters import Bound, Count
from rlvr_jax.types.parts import part


@part
def rehearse(fraction: Bound, capacity: Count, solved: bool = True) -> Stage:
    """Adds responses of the initial policy to prompts that were rated.

    A response to each rated prompt (`set_solved_aside`, `rate_first`) is stored if all responses to
    it were correct, or if `solved` is False. From the next step on, random stored responses follow
    the rows of the batch. Each is a separate group, on the mask and marked `off_policy`. Their
    log-probs are those of the reference if the initial policy is the reference.

    Args:
      fraction: added rows as a fraction of the rows of a step.
      capacity: largest number of stored responses; the newest ones stay.
      solved: only store responses to prompts that were always solved.
    Metrics: rehearsed (rows), stored_answers (stored responses).
    Source: DPH-RL, https://github.com/seamoke/DPH-RL.
    """

    def init(setting):
        tokens = (setting.response_tokens,), np.int32
        whole, number = ((), np.int32), ((), np.float32)
        fields = {"number": whole, "tokens": tokens, "length": whole, "outcome": number}
        return empty_store(capacity, **fields)

    def apply(batch, actor, state, turn):
        batch = own_rows(batch)
        setting = turn.setting
        number = math.floor(fraction * setting.prompts * setting.samples)
        places = uniform_places(state, number, turn.random())
        metrics = {"rehearsed": float(len(places)), "stored_answers": float(state.held)}
        if not len(places):
            return batch, state, metrics
        stored = taken(state, np.sort(places))
        rows = rewritten(actor, setting.task, stored)
        rows = own_rows(rows).with_rollouts(off_policy=np.ones(len(rows), bool))
        rows = rows.graded([Grade(outcome) for outcome in stored["outcome"].tolist()])
        return concatenate([batch, rows]), state, metrics

    def observe(state, turn, seen, learned):
        for batch in seen:
            plain = repeatable(batch, turn.setting)
            chosen = [
                rows[0]
                for rows, outcomes in zip(batch.groups, batch.outcomes(), strict=True)
                if batch.requests[rows[0]].rating
                and plain[rows[0]]
                and ((outcomes == 1).all() if solved else not np.isnan(outcomes[0]))
            ]
            if chosen:
                first = batch.take(np.array(chosen))
                numbers = np.array([request.number for request in first.requests], np.int32)
                rollouts = first.rollouts
                fields = {name: rollouts.get(name) for name in ("tokens", "length")}
                fields["outcome"] = rollouts.outcome.astype(np.float32)
                state = push(state, {"number": numbers, **fields}, turn.step)
        return state, {}

    gives = frozenset({"off_policy", "origin"})
    return Stage(apply, init, observe, writes=gives, most=1.0 + fraction)
