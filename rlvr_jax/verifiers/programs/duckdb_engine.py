"""One query on a database that the query cannot change, in DuckDB (the package `duckdb`).

The layers of protection:

- a separate database in memory, without access to files, network and extensions; locked settings;
- one statement, which must be a SELECT;
- bounds on memory, threads, and rows and bytes of the result; an interrupt at a deadline.

One query may match on DuckDB and fail on sqlite. In DuckDB `/` of integers is a fraction (sqlite:
3/2 = 1). A column has a type, and a comparison of a text with a number casts or fails (sqlite: they
differ). A column outside of GROUP BY fails (sqlite: takes some row). LIKE is case-sensitive
(sqlite: not for ASCII). '3x' is not an integer (sqlite: reads 3). Dates have other functions.
PRINTF works (our sqlite refuses it).
"""

import itertools
import threading

from rlvr_jax.verifiers.programs.result_tables import Table, fetched

_MEMORY = "256MB"
_FETCHED = 256  # rows per fetch


def failures() -> tuple[type[BaseException], ...]:
    """Errors that `run_duckdb` raises for a query; imports the package."""
    import duckdb

    return (duckdb.Error, ValueError, OverflowError, MemoryError, RuntimeError)


def run_duckdb(
    sql: str, setup: str, file: str, seconds: float, max_rows: int, max_bytes: int
) -> Table:
    """The rows of one query; arguments as in `run_sqlite`, for files of DuckDB.

    Args:
      sql, setup, file, seconds, max_rows, max_bytes: as for `run_sqlite`.
    Raises:
      ModuleNotFoundError: `pip install duckdb`.
      One of `failures`: the query is refused, fails, or exceeds a limit.
    """
    import duckdb

    connection = duckdb.connect(
        file or ":memory:",
        read_only=bool(file),
        config={"threads": 1, "memory_limit": _MEMORY, "temp_directory": ""},
    )
    timer = threading.Timer(seconds, connection.interrupt)
    try:
        if setup:
            connection.execute(setup)
        connection.execute("set enable_external_access = false; set lock_configuration = true")
        statements = connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise ValueError("run_duckdb: sql must be one SELECT")
        timer.start()
        result = connection.execute(statements[0])
        chunks = iter(lambda: result.fetchmany(_FETCHED), [])
        rows = itertools.chain.from_iterable(chunks)
        return fetched("run_duckdb", len(result.description), rows, max_rows, max_bytes)
    finally:
        timer.cancel()
        connection.close()
