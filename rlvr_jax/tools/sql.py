"""Queries on a database that they cannot change, as a tool."""

import functools
from typing import Any

from rlvr_jax.tools.base import Lost, Tool, ToolError
from rlvr_jax.verifiers.pool import WorkerPool
from rlvr_jax.verifiers.programs.sqlite_engine import FAILURES, run_sqlite

_MOST_ROWS, _MOST_BYTES = 50, 20_000


def sql(setup: str = "", file: str = "", seconds: float = 2.0, name: str = "sql") -> Tool:
    """A tool that answers one sqlite query with a table.

    Args:
      setup: trusted statements of the task that fill a database in memory.
      file: path of a database to read instead.
      seconds: time limit of a query (seconds).
      name: name of the tool.
    Raises:
      ValueError: both setup and file are given, or neither.
    """
    if bool(setup) == bool(file):
        raise ValueError("sql: exactly one of setup and file must be given")

    def run(arguments, state):
        result = _pool(seconds).map([[str(arguments["query"]), setup, file, seconds]])[0]
        if result.lost:
            raise Lost("sql")
        if result.timed_out:
            raise ToolError(f"the query took longer than {seconds:g} seconds")
        reply = result.value or {"error": result.error or "the query failed"}
        if "error" in reply:
            raise ToolError(reply["error"])
        return state, reply["table"]

    schema = {"query": {"type": "string"}}
    return Tool(name, "Runs one SQL query (sqlite) and shows its rows.", schema, run)


def answer(job: list[Any]) -> dict[str, str]:
    """Runs a job of a worker: [query, setup, file, seconds] -> its table, or its error."""
    query, setup, file, seconds = job
    try:
        table = run_sqlite(query, setup, file, seconds, _MOST_ROWS, _MOST_BYTES)
    except FAILURES as error:
        return {"error": str(error)}
    lines = [" | ".join("NULL" if x is None else str(x) for x in row) for row in table.rows]
    return {"table": "\n".join(lines) or "(no rows)"}


@functools.cache
def _pool(seconds: float) -> WorkerPool:
    # The engine stops itself; the pool ends an engine within a long instruction.
    return WorkerPool("rlvr_jax.tools.sql:answer", wall_seconds=seconds + 1, job_bytes=2**20)
