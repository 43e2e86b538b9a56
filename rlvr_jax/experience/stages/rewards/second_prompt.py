"""A second prompt, after which responses are scored as well."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience.asks import View
from rlvr_jax.experience.parts import Stage
from rlvr_jax.types.parts import part

__all__ = ["second_prompt", "without_prompt"]

GIVES = frozenset({"second_tokens", "second_length"})


@part(writes=GIVES)
def second_prompt(view: View) -> Stage:
    """Says after which other prompt each response is scored: that of a view of its own prompt.

    Args:
      view: such as `hide_words(0.6)`.
    Writes: second_tokens, second_length.
    """

    def apply(batch, actor, state, turn):
        del turn
        asks = [replace(ask, view=view) for ask in batch.asks]
        tokens, length = actor.prompts(asks)
        return batch.with_rollouts(second_tokens=tokens, second_length=length), state, {}

    return Stage(apply, reads=view.reads, views=(view,))


@part(writes=GIVES)
def without_prompt() -> Stage:
    """Says that responses are also scored as texts of their own, behind a start token alone.

    The start token is the one that all prompts of the batch begin with (of a chat template, or the
    beginning of a sequence); where they begin otherwise, the last one of the row's prompt.

    Writes: second_tokens, second_length.
    Source: https://github.com/Trae1ounG/Pretrain_Space_RLVR, where it is the chat's start token.
    """

    def apply(batch, actor, state, turn):
        del actor, turn
        prompts, length = batch.rollouts.prompt_tokens, batch.rollouts.prompt_length
        first = prompts[:, :1]
        last = np.take_along_axis(prompts, length[:, None] - 1, axis=1)
        start = first if (first == first[0]).all() else last
        return (
            batch.with_rollouts(second_tokens=start, second_length=np.ones_like(length)),
            state,
            {},
        )

    return apply
