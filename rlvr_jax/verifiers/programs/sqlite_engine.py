"""One query on a database that the query cannot change, in the sqlite of the standard library.

The layers of protection:

- The database is in memory or opened with `mode=ro&immutable=1`.
- An authorizer allows reading, recursion, and functions that are neither large nor reach outside.
- The engine's limits are low, a handler stops the query at a deadline, and rows and bytes of the
  result are bounded.

One instruction of sqlite can run for minutes (LIKE with many %), so the process also needs a time
limit: a `WorkerPool`.
"""

import functools
import sqlite3
import time

from rlvr_jax.verifiers.programs.result_tables import Table, fetched

# Warning: several statements; ValueError: a null character; UnicodeError: half of a pair.
FAILURES = (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError)
_ALLOWED = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_REFUSED = {
    *("load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"),  # reach outside
    *("randomblob", "zeroblob", "printf", "format"),  # make large values, in one instruction
}
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 1_000_000,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 500,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_STEPS = 1000  # instructions between two looks at the clock


def run_sqlite(
    sql: str, setup: str, file: str, seconds: float, max_rows: int, max_bytes: int
) -> Table:
    """The rows of one query; raises one of `FAILURES` if it is refused, fails or exceeds a limit.

    Args:
      sql: the query; one statement.
      setup: statements that fill the database, run without limits: they are the task's.
      file: path of a database to read instead; "" for one in memory.
      seconds: time after which the query is stopped.
      max_rows, max_bytes: of the result.
    """
    if file:
        connection = sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)
    else:
        connection = sqlite3.connect(":memory:")
        connection.deserialize(_filled(setup))
    try:
        connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        connection.execute("pragma temp_store = memory")
        for limit, value in _LIMITS.items():
            connection.setlimit(limit, value)
        connection.set_authorizer(_authorize)
        deadline = time.monotonic() + seconds
        connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
        cursor = connection.execute(sql)
        if cursor.description is None:
            raise ValueError("run_sqlite: sql must be a query")
        columns = len(cursor.description)
        return fetched("run_sqlite", columns, cursor, max_rows, max_bytes)
    finally:
        connection.close()


@functools.lru_cache(maxsize=64)
def _filled(setup: str) -> bytes:
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(setup)
        # An empty database has no bytes; a table and its end make some.
        connection.executescript("create table _(x); drop table _;")
        return connection.serialize()
    finally:
        connection.close()


def _authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    if action not in _ALLOWED:
        return sqlite3.SQLITE_DENY
    refused = action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _REFUSED
    return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK
