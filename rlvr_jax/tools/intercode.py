"""InterCode's SQL environment: queries until the action "submit", which has the reward."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_jax.tools.base import Lost, Tool, ToolError
from rlvr_jax.tools.environment import Reply, before_stop
from rlvr_jax.tools.sql import sql
from rlvr_jax.verifiers.texts.intercode import sql_reward


@dataclass(frozen=True)
class SqlEpisodes:
    """The environment of `sql_episodes`; its state is the last table that was shown."""

    gold_of: Callable[[Any], str]
    tool: Tool
    stops: tuple[str, ...]
    label: str
    judges: bool = True

    def start(self, prompt: Any) -> tuple[Any, Sequence[Mapping[str, str]]]:
        """The gold query, and no table."""
        return (self.gold_of(prompt), None), []

    def reply(self, state: Any, text: str) -> Reply:
        """The rows of a query, or its error. "submit" ends the episode with the reward of the last
        table, "skip" ends it without. If the gold query fails, the response is ungraded."""
        gold, shown = state
        action = before_stop(text, self.stops).strip()
        if action == "skip":
            return Reply(state, done=True, reward=0.0, outcome=0.0)
        submitted = action.startswith("submit")
        try:
            table = self.tool.run({"query": gold if submitted else action}, None)[1]
        except Lost:
            return Reply(state, done=True, lost=True)
        except ToolError as error:
            if submitted:
                return Reply(state, done=True, lost=True, info={"gold_errors": 1.0})
            return Reply((gold, None), f"Error: {error}\n", reward=0.0, info={"errors": 1.0})
        if submitted:
            reward = 0.0 if shown is None else sql_reward(shown.split("\n"), table.split("\n"))
            return Reply(state, done=True, reward=reward, outcome=float(reward == 1))
        return Reply((gold, table), f"{table}\n", reward=0.0, info={"actions": 1.0})


def sql_episodes(
    gold_of: Callable[[Any], str], setup: str = "", file: str = "", stop: str = "\n"
) -> SqlEpisodes:
    """Episodes of queries on one database.

    Args:
      gold_of: (prompt) -> the query with the expected rows.
      setup, file: the database, as for `sql`.
      stop: text that ends an action.
    Raises:
      ValueError: as `sql`.

    Metrics: actions (queries that run), errors (queries that fail), gold_errors (episodes whose
      gold query fails).
    """
    tool = sql(setup, file)
    return SqlEpisodes(gold_of, tool, (stop,), f"sql_episodes({file or 'setup'})")
