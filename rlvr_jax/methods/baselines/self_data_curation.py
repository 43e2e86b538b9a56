"""SELF: only problems that the policy does not yet hold for solved are trained on, near the base.

"The Reasoning Boundary Paradox: How Reinforcement Learning Constrains Language Models",
https://github.com/mail-research/SELF-llm-interference

    1. each prompt once, greedily; those whose answer is right are left out of the step
    2. n rollouts of each prompt that is kept
    3. A_i  = (R_i - mean) / (std + 1e-6)
       loss = mean_t [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + β KL(π_ref ‖ π)]

Training makes likely problems win and lowers others: so the easy ones are left out, and a forward
KL over the whole vocabulary, at the states of the policy, keeps the mass of the reference. The
released script has no KL; β is ours. Kept groups may still be all wrong: add
`--dynamic-sampling`. Batches shrink as training goes on unless `rounds` fills them, and a batch of
which all is solved teaches nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience import experience, shuffled_epochs
from rlvr_jax.experience.parts import Curriculum, Stage
from rlvr_jax.objectives import group_normalized, statistic_penalty
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, KLCoefficient
from rlvr_jax.types.parts import part

GREEDY = 1e-6
"""A temperature that draws the likeliest token."""


@part
def ask_greedily() -> Curriculum:
    """Asks what the curricula before it ask once each, decoded greedily.

    A stage such as `screen` says which of the prompts are then asked as usual.
    """

    def propose(asks, state, turn):
        del state, turn
        return [replace(ask, samples=1, temperature=GREEDY) for ask in asks]

    return Curriculum(propose)


def unsolved(outcomes: np.ndarray) -> np.ndarray:
    """Groups without an answer that earns everything, bool [G]; one without a verdict is kept."""
    return ~(np.nan_to_num(outcomes) >= 1).any(axis=1)


@part(by_row=True, size=lambda samples: 1)
def screen(rounds: Count = 1) -> Stage:
    """Draws the rollouts of a step for those prompts alone whose first answer was not right.

    It stands first, behind `ask_greedily`. Further prompts are asked until there are as many as a
    step has, or the rounds are used up; then the batch is smaller. Where every prompt is solved,
    nothing is learned from.

    Args:
      rounds: batches of prompts that are asked at most, at least 1.
    Reads: outcome. Draws: the samples of a step for each prompt that is kept.
    Metrics: screened_prompts (asked), solved_greedily (share of them).
    """

    def apply(batch, actor, state, turn):
        wanted, asked, kept = turn.setting.prompts, 0, []
        first = batch
        for number in range(rounds):
            outcomes = batch.outcomes()
            asked += len(outcomes)
            kept += batch.asks_of(unsolved(outcomes))
            more = turn.more(wanted - len(kept)) if number + 1 < rounds > 1 else []
            if len(kept) >= wanted or not more:
                break
            batch = actor.grade(actor.draw(more))
        told = {"screened_prompts": float(asked), "solved_greedily": 1 - len(kept) / asked}
        if not kept:
            return first.without(np.ones(len(first), bool)), state, told
        samples = turn.setting.samples
        asks = [replace(ask, samples=samples, temperature=None) for ask in kept[:wanted]]
        return actor.grade(actor.draw(asks, turn.key)), state, told

    return Stage(apply, rounds=rounds - 1)


def self_data_curation(
    rounds: int = 1,
    kl_coefficient: KLCoefficient = 0.01,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
    teacher: str = "start",
) -> Recipe:
    """GRPO on prompts that are not solved greedily, with a forward KL to the first policy.

    Args:
      rounds: batches of prompts that are screened at most to fill one update.
      teacher: the reference of the KL.
    """
    kl = [statistic_penalty(kl_coefficient, "reverse_kl")] if kl_coefficient else []
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            regularizers=kl,
        ),
        experience=experience([shuffled_epochs(), ask_greedily()], stages=[screen(rounds)]),
        teacher=teacher if kl_coefficient else None,
    )


METHOD = Method(
    self_data_curation,
    "The Reasoning Boundary Paradox: How Reinforcement Learning Constrains Language Models",
    "https://github.com/mail-research/SELF-llm-interference",
    changes="selection, regularizer",
    reports="better pass@k on maths (abstract, no number)",
    traps=(
        "the released script sets no KL, here 0.01; kept groups may be all wrong; batches shrink "
        "as prompts are solved; the KL at the policy's own states is not that of whole answers"
    ),
)
