"""Tools as hyperparameters: what methods that may be drawn in turns share."""

from collections.abc import Sequence
from typing import Any

from rlvr_jax.experience import branch_rounds, branch_turns, turns
from rlvr_jax.experience.parts import Draw
from rlvr_jax.tools import named_toolbox


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


def named_branches(
    tools: Sequence[str] | None,
    style: str,
    limit: int,
    reply_tokens: int,
    describe: bool,
    round_tokens: int,
    **branches: Any,
) -> Draw:
    """A draw of rows that fork after a round, which ends where a tool is called.

    Args:
      tools: names (`named_toolbox`); none: a round ends after `round_tokens`; None: the task has an
        environment.
      style, describe: as for `named_toolbox`.
      limit, reply_tokens: as for `branch_turns`.
      branches: what `branch_rounds` and `branch_turns` share.
    """
    if tools is not None and not len(tools):
        return branch_rounds(round_tokens, **branches)
    world = named_toolbox(tools, style, limit, describe)
    return branch_turns(world, limit, reply_tokens, **branches)
