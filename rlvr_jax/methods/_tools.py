"""Tools as hyperparameters of methods whose responses may be written in turns.

    @with_tools(("python",))
    def verltool(epsilon: Epsilon = 1e-6, *, tools: Tools) -> Recipe: ...

has the hyperparameters `epsilon` and those of `Tools`.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

from rlvr_jax.experience import branch_rounds, branch_turns, turns
from rlvr_jax.experience.parts import Draw
from rlvr_jax.tools import named_toolbox
from rlvr_jax.types import Recipe
from rlvr_jax.types.hyperparameters import (
    CallStyle,
    DescribeTools,
    MaxTurns,
    ReplyTokens,
    ToolNames,
)


@dataclass(frozen=True)
class Tools:
    """Tools that responses may call; false without any, and true with the task's environment."""

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


def with_tools(
    tools: Sequence[str] | None = (), max_turns: int | None = 8
) -> Callable[[Callable[..., Recipe]], Callable[..., Recipe]]:
    """Gives a recipe the hyperparameters of `Tools` in place of its parameter `tools`.

    Args:
      tools, max_turns: their defaults. Without `max_turns` the recipe has no such hyperparameter.
    """
    hints = get_type_hints(Tools, include_extras=True)
    known = vars(Tools(tools, max_turns=max_turns or 8))
    names = [name for name in known if max_turns or name != "max_turns"]

    def decorate(recipe: Callable[..., Recipe]) -> Callable[..., Recipe]:
        own = inspect.signature(recipe)
        kind = inspect.Parameter.KEYWORD_ONLY
        signature = own.replace(
            parameters=[each for each in own.parameters.values() if each.name != "tools"]
            + [
                inspect.Parameter(name, kind, default=known[name], annotation=hints[name])
                for name in names
            ]
        )

        @functools.wraps(recipe)
        def with_own(*arguments: Any, **named: Any) -> Recipe:
            bound = signature.bind(*arguments, **named)
            bound.apply_defaults()
            values = {name: bound.arguments.pop(name) for name in names}
            return recipe(**bound.arguments, tools=Tools(**values))

        with_own.__signature__ = signature
        with_own.__annotations__ = recipe.__annotations__ | {name: hints[name] for name in names}
        return with_own

    return decorate
