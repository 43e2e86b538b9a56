"""SQL: a query is run, and its rows are compared by value with those of the correct query.

The answer is the last ```sql fence after the last </think>, else the last <answer>…</answer>
there. It is correct if the number of columns and the rows are equal. Rows are compared as a
multiset, or as a sequence if the gold query has an ORDER BY outside quotes, comments and brackets.
A query that is refused, fails or exceeds a limit (2 s, 10,000 rows, 1 MB) is an error: the grade is
0, marked in `info` and `stage`. The paper's −1 for it is `reward = outcome − sql_error`. If the
gold query fails, the answer is ungraded.

One small result is easy to guess, so a gold may list several databases: the rows must agree on all.
BIRD's metric compares sets, where DISTINCT has no effect.

A query runs in this process, within the engine's limits. Grade in a `WorkerPool`, because a single
instruction of an engine can take minutes. DuckDB needs threads there (`processes=64`).

Sources: Databricks, "A State-of-the-Art SQL Reasoning Model using RLVR" (the reward);
https://github.com/snowflakedb/ArcticTraining (execution).
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rlvr_jax.verifiers.answers import in_tag
from rlvr_jax.verifiers.fences import behind_thinking, last_fence
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.programs import duckdb_engine, sqlite_engine
from rlvr_jax.verifiers.programs.result_tables import Table, equal

_MAX_ROWS, _MAX_BYTES = 10_000, 1_000_000
_MAX_CHARACTERS = 100_000
# In this order: quotes hide comments, comments hide quotes.
_HIDDEN = re.compile(
    r"'(?:[^']|'')*+(?:'|$)|\"(?:[^\"]|\"\")*+(?:\"|$)|`[^`]*(?:`|$)|\[[^\]]*(?:\]|$)"
    r"|--[^\n]*|/\*.*?(?:\*/|$)",
    re.DOTALL,
)


def extract(response: str) -> str | None:
    """The query of a response, None without one."""
    answer = behind_thinking(response)
    if answer is None:
        return None
    fenced = last_fence(answer, "sql")
    return in_tag(answer) if fenced is None else fenced


def check(
    sql: str, gold: Mapping[str, Any], *, engine: str = "sqlite", seconds: float = 2.0
) -> Grade:
    """1 if the query's rows equal the gold query's on every database, else 0.

    Args:
      sql: the query.
      gold: "sql", the gold query, and the databases. Either "setup": the statements that fill a
        database, or a list of such texts. Or "file": a path, or a list of paths.
      engine: "sqlite" or "duckdb"; without its package the answer is ungraded.
      seconds: time for all databases together (seconds), and again for the gold query.
    Raises:
      ValueError: the engine is unknown.

    Metrics: sql_error (1 for a query that fails or passes a limit).
    """
    if engine not in ("sqlite", "duckdb"):
        raise ValueError(f"sql_verifier: engine must be 'sqlite' or 'duckdb', got {engine!r}")
    databases = _databases(gold)
    if databases is None:
        return Grade(None, stage="gold")
    run, failures = sqlite_engine.run_sqlite, sqlite_engine.FAILURES
    try:
        if engine == "duckdb":
            run, failures = duckdb_engine.run_duckdb, duckdb_engine.failures()
    except ModuleNotFoundError:
        return Grade(None, answer=sql, stage="no engine")
    try:
        wanted = _tables(run, gold["sql"], databases, seconds)
    except failures:
        return Grade(None, answer=sql, stage="gold")
    if len(sql) > _MAX_CHARACTERS or not _is_text(sql) or not _is_query(sql):
        return Grade(0.0, answer=sql, stage="error", info={"sql_error": 1.0})
    try:
        found = _tables(run, sql, databases, seconds)
    except failures:
        return Grade(0.0, answer=sql, stage="error", info={"sql_error": 1.0})
    ordered = is_ordered(gold["sql"])
    match = all(equal(*pair, ordered) for pair in zip(wanted, found, strict=True))
    return Grade(
        float(match), answer=sql, stage="match" if match else "differs", info={"sql_error": 0.0}
    )


def is_ordered(sql: str) -> bool:
    """Whether a query has an ORDER BY outside quotes, comments and brackets."""
    depth = 0
    outside = []
    for sign in _HIDDEN.sub(" ", sql):
        depth += (sign == "(") - (sign == ")")
        outside.append(sign if depth == 0 else " ")
    return re.search(r"\border\s+by\b", "".join(outside), re.IGNORECASE) is not None


def _is_query(sql: str) -> bool:
    """Whether a text has a statement to run, which is not only explained as sqlite would do."""
    words = _HIDDEN.sub(" ", sql).split(maxsplit=1)
    return bool(words) and words[0].lower() != "explain"


def _is_text(text: str) -> bool:
    """Whether an engine can read a text: no unpaired surrogates and no null characters."""
    return not any("\ud800" <= sign <= "\udfff" or sign == "\0" for sign in text)


def _databases(gold: Any) -> list[tuple[str, str]] | None:
    """(setup, file) of each database; None if the gold has none."""
    if not isinstance(gold, Mapping) or not isinstance(gold.get("sql"), str):
        return None
    setups, files = _texts(gold.get("setup", ())), _texts(gold.get("file", ()))
    databases = [(setup, "") for setup in setups] + [("", file) for file in files]
    known = all(isinstance(text, str) for pair in databases for text in pair)
    return databases if databases and known else None


def _texts(value: Any) -> Sequence[Any]:
    return [value] if isinstance(value, str) else value if isinstance(value, Sequence) else []


def _tables(
    run: Callable[..., Table], sql: str, databases: Sequence[tuple[str, str]], seconds: float
) -> list[Table]:
    deadline = time.monotonic() + seconds
    return [
        run(sql, setup, file, max(deadline - time.monotonic(), 0.001), _MAX_ROWS, _MAX_BYTES)
        for setup, file in databases
    ]
