"""CFT: supervised learning of critiques of many solutions to one problem.

"Unleashing the Reasoning Potential of Pre-trained LLMs by Critique Fine-Tuning on One Problem",
https://github.com/TIGER-AI-Lab/One-Shot-CFT

    prompt   the problem, a candidate solution, the request to criticise it
    target   a critique that ends with "Conclusion: right [END]" or "wrong", as the verifier says
    loss     = mean of -logp over the tokens of the critiques

No RL and no reward. The task is the data: its train prompts are made of (problem, candidate,
critique) by `rlvr_jax.tasks.critiques.critique_prompts`, which leaves out critiques that disagree
with the verifier or are cut off; its test prompts are problems to be solved. Choose the step by
held-out accuracy, never by the loss. Run it with one sample per prompt: what is drawn is only
counted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience import experience
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.donors.imitate_right import to_imitate
from rlvr_jax.experience.stages.donors.traces import solutions
from rlvr_jax.objectives import imitate
from rlvr_jax.objectives.compositions import objective_of_terms
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.parts import part


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


def critique_ft(weight: float = 1.0) -> Recipe:
    """Imitation of the worked solutions of the prompts, which are critiques.

    Args:
      weight: of the imitation.
    """
    return Recipe(
        objective=objective_of_terms([imitate(weight)]),
        experience=experience(stages=[imitate_solutions()]),
    )


METHOD = Method(
    critique_ft,
    "Unleashing the Reasoning Potential of Pre-trained LLMs by Critique Fine-Tuning on One Problem",
    "https://github.com/TIGER-AI-Lab/One-Shot-CFT",
    changes="surrogate, guidance",
    left_out="sampling the candidates and their critiques from other models",
    reports=(
        "Qwen2.5-Math-7B: 15 points on the mean of six maths sets and 16 on three of logic, in 5 "
        "GPU hours"
    ),
    traps=(
        "it reads no reward: on a task whose worked solutions are no critiques it is plain "
        "imitation; at 50 epochs over 600 examples the choice of the step decides, by held-out "
        "accuracy"
    ),
)
