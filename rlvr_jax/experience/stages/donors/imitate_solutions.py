"""The worked solutions of the step's prompts as rows to imitate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.donors.imitate_right import to_imitate
from rlvr_jax.experience.stages.donors.traces import solutions
from rlvr_jax.types.parts import part

__all__ = ["imitate_solutions"]


@part(by_row=True)
def imitate_solutions() -> Stage:
    """Learns from the worked solution of every prompt of the step, and from nothing that was drawn.

    A solution that is longer than the budget of a response is left out; where all are, nothing is
    learned. What is drawn is graded and counted, one response to each prompt is enough.

    Reads: Prompt.solution. Writes: mask (nothing is on it), supervised. Metrics:
      imitated_solutions (rows), solutions_too_long (prompts).
    """

    def apply(batch, actor, state, turn):
        every = np.ones(len(batch.groups), bool)
        traces, fit = solutions(actor, batch.asks_of(every), 1, turn)
        told = {"imitated_solutions": float(fit.sum()), "solutions_too_long": float(np.sum(~fit))}
        if traces is None:
            return to_imitate(batch, np.zeros(len(batch), bool)), state, told
        traces = replace(traces, tokenizer=batch.tokenizer, further=batch.further)
        traces = traces.with_rollouts(off_policy=None, origin=None)
        return to_imitate(traces, np.ones(len(traces), bool)), state, told

    needs, gives = frozenset({"solution"}), frozenset({"supervised"})
    return Stage(apply, reads=needs, writes=gives)
