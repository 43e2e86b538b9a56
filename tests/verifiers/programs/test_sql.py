"""SQL: what is equal, what is refused, and that several databases have to agree."""

import sqlite3
from pathlib import Path

import check_cases
import pytest
from case_adapters.sql_verifier import verdict

from rlvr_jax.verifiers import WorkerPool
from rlvr_jax.verifiers.programs import sql_verifier
from rlvr_jax.verifiers.programs.result_tables import Table, cell, equal

SETUP = "create table t(a integer, b text); insert into t values (1,'x'),(2,'x'),(2,'y');"
SECONDS = 0.3


@pytest.fixture(params=["sqlite", "duckdb"])
def engine(request):
    if request.param == "duckdb":
        pytest.importorskip("duckdb", reason="the package duckdb is not installed")
    return request.param


def stage(sql, gold="select a from t", setup=SETUP, engine="sqlite", seconds=SECONDS):
    given = {"sql": gold, "setup": setup}
    return sql_verifier.check(sql, given, engine=engine, seconds=seconds).stage


def test_both_engines_say_what_the_cases_say(engine):
    for row in check_cases.rows(Path(__file__).parents[2] / "cases", "sql_verifier"):
        assert verdict(row["input"], row["gold"], engine) == row["verdict"], row["input"]


@pytest.mark.parametrize(
    ("sql", "in_sqlite", "in_duckdb"),
    (
        ("select 3/2", "1", "1.5"),
        ("select '2' = 2", "0", "1"),
        ("select count(*) from t where b = 2", "0", "error"),
        ("select count(*) from (select a, count(*) from t group by b)", "2", "error"),
        ("select 'X' like 'x'", "1", "0"),
        ("select cast('3x' as integer)", "3", "error"),
        ("select date('2024-01-31', '+1 day')", "'2024-02-01'", "error"),
        ("select printf('%d', 3)", "error", "'3'"),
    ),
)
def test_the_engines_differ_as_their_page_says(sql, in_sqlite, in_duckdb):
    pytest.importorskip("duckdb", reason="the package duckdb is not installed")
    for engine, value in {"sqlite": in_sqlite, "duckdb": in_duckdb}.items():
        gold = "select 1" if value == "error" else f"select {value}"
        wanted = "error" if value == "error" else "match"
        assert stage(sql, gold, engine=engine) == wanted


@pytest.mark.thorough
@pytest.mark.parametrize(
    "sql",
    (
        "select * from read_csv('/etc/passwd')",
        "select * from '/etc/passwd'",
        "select readfile('/etc/passwd')",
        "select load_extension('x')",
        "copy t to '/tmp/rlvr_jax_sql'",
        "vacuum into '/tmp/rlvr_jax_sql'",
        "attach '/tmp/rlvr_jax_sql' as x",
        "install httpfs",
        "insert into t values (3, 'z') returning a",
        "create temp table u as select 1",
        "update t set a = 1",
        "begin",
        "explain select a from t",
        "/* so */ EXPLAIN query plan select a from t",
        "values",
        "select ?",
        "select 1 \0",
        "select '\ud800'",
        "/* never closed",
        "-- nothing",
        "select printf('%.*c', 900000000, 'x')",
        "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n",
        "with recursive n(i) as (select 1 union all select i + 1 from n limit 20000) select i"
        " from n",
    ),
)
def test_what_reaches_out_or_does_not_end_is_an_error(sql, engine):
    assert stage(sql, engine=engine) == "error"


def test_what_is_nested_deeply_is_wrong(engine):
    # SQLite 3.40 gives up, that of Debian 13 reads it.
    wrong = ("error", "differs") if engine == "sqlite" else ("error",)
    assert stage("select " + "(" * 3000 + "1" + ")" * 3000, engine=engine) in wrong


@pytest.mark.thorough
def test_one_instruction_that_takes_minutes_is_stopped_by_the_worker():
    # Looks for half a million letters in a million: every place matches up to the last letter.
    sql = (
        "with recursive s(x) as (select 'a' union all select x || x from s limit 20)"
        " select instr(x, substr(x, 1, length(x) / 2) || 'b') from s"
    )
    gold = {"sql": "select 1", "setup": SETUP}
    with WorkerPool("rlvr_jax.verifiers.checks:run", wall_seconds=0.5, job_bytes=2**20) as pool:
        check = {"check": "rlvr_jax.verifiers.programs.sql_verifier:check"}
        (result,) = pool.map([[check, sql, gold]])
    assert result.timed_out


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("sql", "wanted"),
    (
        ("select a from t order by a", True),
        ("select a from t ORDER\n  BY a limit 2", True),
        ("select a from t order/**/by a", True),
        ("select a from (select a from t order by a)", False),
        ("select 'order by a' from t", False),
        ("select a from t -- order by a", False),
        ("select a from t /* order by a */", False),
        ('select a as "x order by y" from t', False),
        ("select 'it''s' from t order by 1", True),
        ("select sum(a) over (order by b) from t", False),
        ("select a from t union select 3 order by 1", True),
        ("select a as border by_ from t", False),
    ),
)
def test_an_order_is_asked_for_outside_of_quotes_comments_and_brackets(sql, wanted):
    assert sql_verifier.is_ordered(sql) is wanted


def test_every_database_of_the_gold_has_to_agree(engine):
    setups = [SETUP, SETUP.replace("(2,'y')", "(5,'y')")]
    assert stage("select a from t", setup=setups, engine=engine) == "match"
    assert stage("select 1 union all select 2 union all select 2", engine=engine) == "match"
    written = "select 1 union all select 2 union all select 2"
    assert stage(written, setup=setups, engine=engine) == "differs"


def test_a_database_can_be_a_file_that_stays_as_it_was(tmp_path):
    path = tmp_path / "t.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(SETUP)
    connection.close()
    before = path.read_bytes()
    gold = {"sql": "select a from t", "file": str(path)}
    assert sql_verifier.check("select a from t", gold).outcome == 1.0
    assert sql_verifier.check("delete from t", gold).stage == "error"
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "gold", (None, "select 1", {}, {"sql": "select 1"}, {"sql": "selct", "setup": SETUP})
)
def test_a_gold_that_cannot_be_run_is_no_verdict(gold):
    assert sql_verifier.check("select 1", gold).outcome is None


def test_the_last_closed_fence_behind_the_thinking_counts():
    fence = "```sql\nselect 1\n```"
    for text, wanted in (
        (f"{fence} and ```SQL\nselect 2\n```", "select 2"),
        (f"{fence} and ```sql\nselect 2", "select 1"),
        ("```sqlite\nselect 1\n```", None),
        (f"<think>{fence}", None),
        (f"<think>no</think>{fence}", "select 1"),
        (f"<answer>select 2</answer>{fence}", "select 1"),
    ):
        assert sql_verifier.extract(text) == wanted


def test_an_unknown_engine_is_refused():
    with pytest.raises(ValueError, match="engine must be 'sqlite' or 'duckdb', got 'mysql'"):
        stage("select 1", engine="mysql")


@pytest.mark.parametrize(
    ("gold", "found", "wanted"),
    (
        ([(1,)], [(1.0,)], True),
        ([(1,)], [("1",)], False),
        ([(None,)], [("",)], False),
        ([(b"a",)], [("a",)], False),
        ([(0.1234564999,)], [(0.1234565001,)], True),  # rounding has a border between the two
        ([(1234567,)], [(1234568,)], False),
        ([(1e300,)], [(1e300 * (1 + 1e-9),)], True),
        ([(1, "a"), (2, "b")], [(2, "b"), (1, "a")], True),
        ([(1,), (1,), (2,)], [(1,), (2,), (2,)], False),
        ([(True,)], [(1,)], True),
        ([(float("inf"),)], [(float("inf"),)], True),
        ([(float("inf"),)], [(1e308,)], False),
    ),
)
def test_rows_are_a_multiset_of_values(gold, found, wanted):
    tables = [Table(1, [tuple(map(cell, row)) for row in rows]) for rows in (gold, found)]
    assert equal(*tables, ordered=False) is wanted
