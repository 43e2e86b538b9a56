"""Tools as hyperparameters of methods whose responses may be written in turns.

    @arguments_of(Tools, into="tools", tools=("python",))
    def verltool(epsilon: Epsilon = 1e-6, *, tools: Tools) -> Recipe: ...

has the hyperparameters `epsilon` and those of `Tools`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rlvr_jax.experience import branch_rounds, branch_turns, turns
from rlvr_jax.experience.parts import Draw
from rlvr_jax.tools import named_toolbox
from rlvr_jax.types.hyperparameters import (
    CallStyle,
    DescribeTools,
    MaxTurns,
    ReplyTokens,
    ToolNames,
)


@dataclass(frozen=True)
class Tools:
    """Tools that responses may call; false without tools, true with the task's environment."""

    tools: ToolNames = ()
    style: CallStyle = "json"
    max_turns: MaxTurns = 8
    reply_tokens: ReplyTokens = 512
    describe: DescribeTools = True

    def __bool__(self) -> bool:
        return self.tools is None or len(self.tools) > 0

    def draw(self, make: Callable[..., Draw] = turns, **options: Any) -> Draw:
        """A draw in turns with these tools, made by `turns` or by a draw with its arguments."""
        world = named_toolbox(self.tools, self.style, self.max_turns, self.describe)
        return make(world, limit=self.max_turns, reply_tokens=self.reply_tokens, **options)

    def branching_draw(self, round_tokens: int, **options: Any) -> Draw:
        """A draw that forks responses: `branch_turns`, without tools `branch_rounds`."""
        if self:
            return self.draw(branch_turns, **options)
        return branch_rounds(round_tokens, **options)
