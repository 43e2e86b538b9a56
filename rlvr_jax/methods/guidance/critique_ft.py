"""CFT: supervised learning of critiques of many solutions to one problem.

"Unleashing the Reasoning Potential of Pre-trained LLMs by Critique Fine-Tuning on One Problem",
https://github.com/TIGER-AI-Lab/One-Shot-CFT

    prompt   the problem, a candidate solution, the request to criticize it
    target   a critique that ends with "Conclusion: right [END]" or "wrong", as the verifier grades
    loss     = mean of -logp over the tokens of the critiques

There is no reward. `python -m rlvr_jax critiques` samples candidates, requests a critique of each
from one or several models, and writes the task `critiques:FILE`. It leaves out and counts critiques
that are truncated or disagree with the verifier. The test prompts are problems to solve. Set one
sample per prompt, because responses are sampled and graded only for metrics. The policy must read
words, such as SmolLM2. The task `critiqued_sums:written_critiques=true` has critiques that a small
base model reads.

Left out: candidates of several models in one file.
Reports: Qwen2.5-Math-7B: 15 points on six maths sets and 16 on three of logic, in 5 GPU hours.
Traps: On a task whose worked solutions are not critiques, the method is plain imitation. With 50
epochs over 600 examples, choose the step by held-out accuracy.
"""

from dataclasses import replace

import numpy as np

from rlvr_jax.experience import Stage, experience
from rlvr_jax.experience.stages.donors.imitate_correct import to_imitate
from rlvr_jax.experience.stages.donors.traces import solutions
from rlvr_jax.objectives import imitate, objective_of_terms, part
from rlvr_jax.types import Method, Recipe, Shown
from rlvr_jax.types.hyperparameters import NonNegative


@part(reads={"solution"}, writes={"supervised"}, by_row=True)
def imitate_solutions() -> Stage:
    """Replaces the batch by the worked solutions of its prompts, as rows to imitate.

    A solution longer than the budget of a response is left out; without any, nothing is trained on.

    Metrics: imitated_solutions (rows), solutions_too_long (prompts).
    """

    def apply(batch, actor, state, turn):
        every = np.ones(len(batch.groups), bool)
        traces, fit = solutions(actor, batch.requests_of(every), 1, turn)
        metrics = {
            "imitated_solutions": float(fit.sum()),
            "solutions_too_long": float(np.sum(~fit)),
        }
        if traces is None:
            return to_imitate(batch, False), state, metrics
        traces = replace(traces, tokenizer=batch.tokenizer, further=batch.further)
        traces = traces.with_rollouts(off_policy=None, origin=None)
        return to_imitate(traces, True), state, metrics

    return apply


def critique_ft(weight: NonNegative = 1.0) -> Recipe:
    """Imitates the prompts' worked solutions, which are critiques.

    Args:
      weight: weight of the imitation.
    """
    return Recipe(
        objective=objective_of_terms([imitate(weight)]),
        experience=experience(stages=[imitate_solutions()]),
    )


METHOD = Method(
    critique_ft,
    changes="surrogate, guidance",
    shown=Shown(
        "critiqued_sums:written_critiques=true",
        "experience/imitated_solutions",
        without="reinforce",
        settings={"samples_per_prompt": 1},
    ),
)
