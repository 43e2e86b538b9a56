"""Tools: actions of a policy while it answers, and environments that are made of them.

`environment`: an `Environment` answers texts of a policy; `Reply` is one answer. `Game` has several
  players; `Replies` are its answers. `World` is either.
`calls`: forms of a call: JSON in tags, tags, fenced blocks.
`toolbox`: an environment of tools; `Tool`, and `tool`, which makes one of a function.
`python`, `calculator`, `search`, `sql`: tools. Texts of models run in the sandbox, in limited
  workers, or through a grammar of ours.
`code_steps`: reasoning in steps, whose code is run after each of them.
`intercode`, `intercode_shell`: InterCode's episodes on a database and in a folder.
`games`: two players who choose at the same time, again and again.
`adapters`: objects with `reset` and `step` as environments, and the other way round.
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
