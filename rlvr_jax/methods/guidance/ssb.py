"""SSB: an explanation that the policy gives once it has seen a right and a wrong answer.

"Semantic Soft Bootstrapping: Long Context Reasoning in LLMs without Reinforcement Learning",
https://github.com/purbeshmitra/semantic-soft-bootstrapping

    groups with a right and a wrong answer; of the wrong ones one with the commonest answer
    reply: the policy's, shown both; kept if it is right
    loss = τ² mean_t KL(softmax(z_T / τ) ‖ softmax(z / τ)) over the replies' tokens

z_T are the logits of the policy that the run began with behind the prompt with both answers, z
those of the policy behind the bare prompt; gradient through z alone. No reward enters the loss. The
authors make replies and logits once, before training, from the same base model; here every step
makes its own with the current weights, and the teacher's are those of the start. Theirs are LoRA
runs: `--lora-rank 32`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience import experience
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.choices.pairs import RIGHT, asked_about, contrast_pairs
from rlvr_jax.experience.stages.rewards.second_prompt import GIVES
from rlvr_jax.experience.views import with_two_answers
from rlvr_jax.objectives import (
    statistic_penalty,
)
from rlvr_jax.objectives.compositions import objective_of_terms
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import Positive, Temperature
from rlvr_jax.types.parts import part

REQUEST = "Explain, step by step and so that nothing is left open, how to answer rightly."


@part(writes=GIVES, by_row=True)
def bootstrap_replies(temperature: Positive) -> Stage:
    """Learns from replies that are right, drawn with a right and a wrong answer in sight.

    Of each group with both, a right row and a wrong one of the commonest wrong answer are shown
    beside the prompt (`with_two_answers`), and the policy replies once. A reply that is right is a
    row of the batch, under the prompt as it is; its second prompt is the one it was drawn from, for
    a teacher to read. Nothing else is learned from.

    Args:
      temperature: that log-probs and divergences of the replies are taken at, as a multiple of the
        one they were drawn with; `drawn_temperature` keeps that.
    Reads: outcome, Grade.answer, the responses' texts. Draws: one row for each mixed group. Writes:
      mask, temperature, drawn_temperature, second_tokens, second_length.
    Metrics: mixed_groups (share), kept_replies (share of the groups).
    """

    def apply(batch, actor, state, turn):
        nothing = batch.without(np.ones(len(batch), bool))
        pairs = contrast_pairs(batch)
        told = {"mixed_groups": len(pairs) / len(batch.groups), "kept_replies": 0.0}
        if not pairs:
            return nothing, state, told
        drawn = actor.grade(actor.draw(asked_about(batch, pairs, REQUEST), turn.key))
        right = np.flatnonzero(drawn.decided & (drawn.rollouts.outcome > RIGHT))
        if not len(right):
            return nothing, state, told
        drawn = drawn.take(right).renumbered()
        plain = [replace(batch.asks[pairs[place].right], samples=1) for place in right]
        tokens, length = actor.prompts(plain)
        rollouts = drawn.rollouts
        kind = rollouts.temperature.dtype
        replies = replace(drawn, asks=plain).with_rollouts(
            prompt_tokens=tokens,
            prompt_length=length,
            second_tokens=rollouts.prompt_tokens,
            second_length=rollouts.prompt_length,
            temperature=(temperature * rollouts.temperature).astype(kind),
            drawn_temperature=rollouts.temperature,
        )
        return replies, state, told | {"kept_replies": len(replies) / len(batch.groups)}

    view = replace(with_two_answers("", "", REQUEST), responses=2)
    return Stage(apply, views=(view,))


def ssb(temperature: Temperature = 2.0, teacher: str = "start") -> Recipe:
    """Forward KL at a temperature from the policy that was shown a right and a wrong answer.

    Args:
      teacher: whose weights the teacher has.
    """
    return Recipe(
        objective=objective_of_terms([statistic_penalty(temperature**2, "reverse_kl")]),
        experience=experience(stages=[bootstrap_replies(temperature)]),
        teacher=teacher,
    )


METHOD = Method(
    ssb,
    "Semantic Soft Bootstrapping: Long Context Reasoning in LLMs without Reinforcement Learning",
    "https://github.com/purbeshmitra/semantic-soft-bootstrapping",
    changes="surrogate, guidance",
    left_out="replies and logits made once, before training",
    reports="over GRPO, same model and data: 10.6 points on MATH500, 10 on AIME24",
    traps=(
        "only groups with a right and a wrong answer give a reply, and only a right reply is "
        "kept: else a step teaches nothing; theirs is offline, LoRA at rate 2e-4; without τ² the "
        "gradient shrinks"
    ),
)
