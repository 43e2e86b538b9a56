"""Tools that a policy may call within its response, and environments made of tools.

    from rlvr_jax.tools import calculator, toolbox
    environment = toolbox(calculator())      # for the draw `turns(environment)`

`environment`: an `Environment` returns a `Reply` to each text of a policy. A `Game` has several
  players and returns `Replies`. `World` is either.
`calls`: forms of a call: JSON in tags, tags, fenced blocks.
`toolbox`: an environment of tools. `tool` makes a `Tool` from a function.
`python`, `calculator`, `search`, `sql`: tools. The sandbox, limited workers, or our own grammar
read
  the texts of models.
`code_steps` runs code after each reasoning step. `intercode` and `intercode_shell` have InterCode's
  episodes on a database and in a folder. `games` has repeated games of two players. `adapters`
  turns objects with `reset` and `step` into environments, and back.
"""

from rlvr_jax.tools.adapters import episode, stepped
from rlvr_jax.tools.base import Lost, Tool, ToolError, tool
from rlvr_jax.tools.calculator import calculator
from rlvr_jax.tools.calls import Style, between, fenced, json_calls, tags
from rlvr_jax.tools.code_steps import code_steps
from rlvr_jax.tools.environment import Environment, Game, Replies, Reply, World
from rlvr_jax.tools.games import repeated_game
from rlvr_jax.tools.named import named_toolbox
from rlvr_jax.tools.python import python
from rlvr_jax.tools.search import search
from rlvr_jax.tools.sql import sql
from rlvr_jax.tools.toolbox import toolbox

__all__ = [
    "Environment",
    "Game",
    "Lost",
    "Replies",
    "Reply",
    "Style",
    "Tool",
    "ToolError",
    "World",
    "between",
    "calculator",
    "code_steps",
    "episode",
    "fenced",
    "json_calls",
    "named_toolbox",
    "python",
    "repeated_game",
    "search",
    "sql",
    "stepped",
    "tags",
    "tool",
    "toolbox",
]
