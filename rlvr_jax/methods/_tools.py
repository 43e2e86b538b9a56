"""Tools as hyperparameters: what methods that may be drawn in turns share."""

from __future__ import annotations

from collections.abc import Sequence

from rlvr_jax.experience import turns
from rlvr_jax.experience.parts import Draw
from rlvr_jax.tools import named_toolbox

__all__ = ["named_turns"]


def named_turns(
    tools: Sequence[str] | None, style: str, limit: int, reply_tokens: int, describe: bool
) -> Draw | None:
    """A draw in turns with tools that are named; None where none is: a response is one text.

    Args:
      tools: names (`named_toolbox`); None: the task has an environment.
      style, describe: as for `named_toolbox`.
      limit, reply_tokens: as for `turns`.
    """
    if tools is not None and not len(tools):
        return None
    return turns(named_toolbox(tools, style, limit, describe), limit, reply_tokens)
