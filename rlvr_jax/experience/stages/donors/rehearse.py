"""Answers of an earlier policy that join every batch."""

import math
from dataclasses import replace

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
def rehearse(share: Bound, capacity: Count, solved: bool = True) -> Stage:
    """Adds answers that the first policy gave to prompts that were rated.

    One answer is kept of each prompt that was rated (as `set_solved_aside` and `rate_first` ask
    for), if all answers to it were right or `solved` is False. From the step after on, some of
    them, drawn uniformly, stand behind the rows of the batch, each a group of its own, on the mask
    and marked `off_policy`. Their log-probs under the policy that wrote them are the
    reference's, where that policy is the one that the run began with.

    Args:
      share: of the rows of a step that are added, positive.
      capacity: answers that are kept, the newest ones.
      solved: of prompts that were always solved alone.
    Writes: off_policy, origin. Metrics: rehearsed (rows), kept_answers.
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
        number = math.floor(share * setting.prompts * setting.samples)
        places = uniform_places(state, number, turn.random())
        told = {"rehearsed": float(len(places)), "kept_answers": float(state.held)}
        if not len(places):
            return batch, state, told
        kept = taken(state, np.sort(places))
        rows = rewritten(actor, setting.task, kept)
        told_then = kept["outcome"].astype(batch.rollouts.outcome.dtype)
        rows = own_rows(rows).with_rollouts(
            outcome=told_then, reward=told_then, off_policy=np.ones(len(rows), bool)
        )
        rows = replace(rows, grades=[Grade(float(outcome)) for outcome in told_then])
        return concatenate([batch, rows]), state, told

    def observe(state, turn, seen, learned):
        for batch in seen:
            outcomes, plain = batch.outcomes(), repeatable(batch, turn.setting)
            kept = [
                rows[0]
                for rows, told in zip(batch.groups, outcomes, strict=True)
                if batch.asks[rows[0]].rating
                and plain[rows[0]]
                and ((told == 1).all() if solved else not np.isnan(told[0]))
            ]
            if kept:
                first = batch.take(np.array(kept))
                numbers = np.array([ask.number for ask in first.asks], np.int32)
                rollouts = first.rollouts
                fields = {name: getattr(rollouts, name) for name in ("tokens", "length")}
                fields["outcome"] = rollouts.outcome.astype(np.float32)
                state = push(state, {"number": numbers, **fields}, turn.step)
        return state, {}

    gives = frozenset({"off_policy", "origin"})
    return Stage(apply, init, observe, writes=gives, most=1.0 + share)
