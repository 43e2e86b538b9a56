"""Replies that the policy writes with a right and a wrong answer in sight, to be given without."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.choices.pairs import RIGHT, asked_about, contrast_pairs
from rlvr_jax.experience.stages.rewards.second_prompt import GIVES
from rlvr_jax.experience.views import with_two_answers
from rlvr_jax.types.hyperparameters import Positive
from rlvr_jax.types.parts import part

__all__ = ["bootstrap_replies"]

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
    Raises:
      ValueError: a temperature that is not positive; when called, answers that leave no room.
    Source: SSB, https://github.com/purbeshmitra/semantic-soft-bootstrapping.
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
