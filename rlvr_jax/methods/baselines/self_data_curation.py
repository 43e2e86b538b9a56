"""SELF: trains only on prompts that greedy decoding does not solve, and stays near the base model.

"The Reasoning Boundary Paradox: How Reinforcement Learning Constrains Language Models",
https://github.com/mail-research/SELF-llm-interference

    1. one greedy response per prompt; prompts with a correct one are left out of the step
    2. n rollouts of each remaining prompt
    3. A_i  = (R_i - mean) / (std + 1e-6)
       loss = mean_t [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + β KL(π_ref ‖ π)]

Training improves problems that are likely to be solved and degrades others, so easy prompts are
left out. A forward KL over the whole vocabulary, at the states of the policy, preserves the
coverage of the reference. The released script has no KL; β = 0.01 is ours. Batches shrink during
training unless `rounds` fills them. A batch of solved prompts trains nothing.

Reports: better pass@k on maths (abstract, no numbers).
Traps: The remaining groups may be all incorrect; add `--dynamic-sampling`. A KL at the policy's
states is not the KL of whole responses.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from rlvr_jax.experience import Curriculum, Stage, experience, shuffled_epochs
from rlvr_jax.objectives import clipped_objective, part, statistic_penalty
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import Count, KLCoefficient

GREEDY = 1e-6  # a temperature that samples the most probable token


@part
def sample_greedily() -> Curriculum:
    """Requests one greedy response to each prompt of the curricula before it."""

    def propose(requests, state, turn):
        return [replace(request, samples=1, temperature=GREEDY) for request in requests]

    return Curriculum(propose)


@part(by_row=True, size=lambda samples: 1)
def screen(rounds: Count = 1) -> Stage:
    """Samples the rollouts of a step only for prompts whose greedy response was not correct.

    It is the first stage, after `sample_greedily`. It screens further prompts until a step has all
    of its prompts or the rounds are used up; then the batch is smaller. An ungraded prompt counts
    as unsolved. If every prompt is solved, nothing is trained.

    Reads: outcome. Samples: the rollouts of a step for each remaining prompt.
    Metrics: screened_prompts (prompts answered greedily), solved_greedily (fraction of them).
    """

    def apply(batch, actor, state, turn):
        wanted, screened, selected = turn.setting.prompts, 0, []
        first = batch
        for number in range(rounds):
            outcomes = batch.outcomes()
            screened += len(outcomes)
            selected += batch.requests_of(~(np.nan_to_num(outcomes) >= 1).any(axis=1))
            more = turn.more(wanted - len(selected)) if number + 1 < rounds > 1 else []
            if len(selected) >= wanted or not more:
                break
            batch = actor.grade(actor.draw(more, turn.setting.sampler_key(turn.step)))
        metrics = {
            "screened_prompts": float(screened),
            "solved_greedily": 1 - len(selected) / screened,
        }
        if not selected:
            return first.without(np.ones(len(first), bool)), state, metrics
        samples = turn.setting.samples
        requests = [
            replace(request, samples=samples, temperature=None) for request in selected[:wanted]
        ]
        return actor.grade(actor.draw(requests, turn.key)), state, metrics

    return Stage(apply, rounds=rounds - 1)


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def self_data_curation(
    rounds: Count = 1, kl_coefficient: KLCoefficient = 0.01, teacher: str = "start", **clip: Any
) -> Recipe:
    """Applies GRPO to prompts not solved greedily, with a forward KL to the initial policy.

    Args:
      rounds: maximum number of prompt batches screened to fill one update.
      teacher: reference of the KL, as in `Recipe`.
    """
    kl = [statistic_penalty(kl_coefficient, "reverse_kl")] if kl_coefficient else []
    return Recipe(
        objective=clipped_objective(regularizers=kl, **clip),
        experience=experience([shuffled_epochs(), sample_greedily()], stages=[screen(rounds)]),
        teacher=teacher if kl_coefficient else None,
    )


METHOD = Method(
    self_data_curation,
    changes="selection, regularizer",
    shown=Shown("brackets", "experience/solved_greedily"),
)
