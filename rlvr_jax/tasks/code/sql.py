"""SQL: questions about small generated databases; the rows of a query are compared.

    kinds: filter, aggregate, group, join, top

A prompt shows the tables without their rows. The gold query and the answer run on three fillings of
the tables (`verifiers.programs.sql_verifier`), so a query that writes out one result is incorrect.
A question is used only if it has rows that differ between the fillings.
`meta["level"]` is 1 for one table, 2 for grouping, 3 for two tables.
"""

from random import Random
from typing import Annotated, Literal

from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.checked import verifier_of
from rlvr_jax.tasks.code.sql_themes import THEMES, Theme, filled, schema
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.tasks.settings import Seed
from rlvr_jax.verifiers.programs.sqlite_engine import run_sqlite

__all__ = ["sql"]

INSTRUCTION = "Answer with one SQL query in a ```sql block."
_FILLINGS = 3
_SETS = 12  # fillings per theme, of which prompts use some
_LEVELS = {"filter": 1, "aggregate": 1, "top": 1, "group": 2, "join": 3}
# Enough for any correct query on a dozen rows.
_LIMITS = (1.0, 1000, 100_000)
_ENGINE_MB = {"sqlite": 1024, "duckdb": 4096}  # address space; DuckDB's library takes half of it


@generated(response_tokens=160)
def sql(
    engine: Annotated[Literal["sqlite", "duckdb"], "duckdb is a package"] = "sqlite",
    seed: Seed = 0,
) -> Generated:
    """Questions about databases of five themes.

    Raises:
      ModuleNotFoundError: DuckDB is not installed.
    """
    if engine == "duckdb":
        import duckdb  # noqa: F401 - required before the first question

    fillings = Random(f"sql databases {seed}")
    databases = {
        theme.things: [[filled(theme, fillings) for _ in range(_FILLINGS)] for _ in range(_SETS)]
        for theme in THEMES
    }

    def draw(random: Random, kind: str) -> Prompt:
        while True:
            theme = random.choice(THEMES)
            setup = random.choice(databases[theme.things])
            question, query = _QUESTIONS[kind](theme, random)
            results = [run_sqlite(query, one, "", *_LIMITS).rows for one in setup]
            if all(results) and any(rows != results[0] for rows in results):
                break
        return Prompt(
            text=f"{schema(theme)}\n\n{question}\n{INSTRUCTION}",
            answer={"sql": query, "setup": setup},
            kind=kind,
            gold=f"```sql\n{query}\n```",
            meta={"level": _LEVELS[kind]},
        )

    return Generated(
        draw,
        list(_QUESTIONS),
        verify=verifier_of(
            "rlvr_jax.verifiers.programs.sql_verifier",
            {"engine": engine},
            wall_seconds=5.0,
            memory_mb=_ENGINE_MB[engine],
            processes=64 if engine == "duckdb" else 0,  # DuckDB starts several for each database
        ),
        answers=True,
        derived=("meta",),
    )


def _condition(theme: Theme, random: Random) -> tuple[str, str]:
    """A condition on a thing: (in words, in SQL)."""
    if random.random() < 0.3:
        value = random.choice(theme.groups)
        return f"whose {theme.group} is {value}", f"{theme.group} = '{value}'"
    name, least, largest = random.choice(theme.numbers)
    bound = random.randint(least + (largest - least) // 5, largest - (largest - least) // 5)
    words, sign = random.choice((("above", ">"), ("below", "<"), ("at least", ">=")))
    return f"whose {name} is {words} {bound}", f"{name} {sign} {bound}"


def _filter(theme: Theme, random: Random) -> tuple[str, str]:
    words, condition = _condition(theme, random)
    shown = random.choice(theme.numbers)[0]
    return (
        f"List the name and the {shown} of all {theme.things} {words}.",
        f"SELECT name, {shown} FROM {theme.things} WHERE {condition}",
    )


def _aggregate(theme: Theme, random: Random) -> tuple[str, str]:
    words, condition = _condition(theme, random)
    if random.random() < 0.3:
        return (
            f"How many {theme.things} are there {words}?",
            f"SELECT COUNT(*) FROM {theme.things} WHERE {condition}",
        )
    name = random.choice(theme.numbers)[0]
    called, function = random.choice(
        (("average", "AVG"), ("largest", "MAX"), ("smallest", "MIN"), ("total", "SUM"))
    )
    return (
        f"What is the {called} {name} of the {theme.things} {words}?",
        f"SELECT {function}({name}) FROM {theme.things} WHERE {condition}",
    )


def _top(theme: Theme, random: Random) -> tuple[str, str]:
    words, condition = _condition(theme, random)
    name = random.choice(theme.numbers)[0]
    called, order = random.choice((("largest", "DESC"), ("smallest", "ASC")))
    return (
        f"List the name of all {theme.things} {words}, the one with the {called} {name} first, and"
        " by name where it is the same.",
        f"SELECT name FROM {theme.things} WHERE {condition} ORDER BY {name} {order}, name",
    )


def _group(theme: Theme, random: Random) -> tuple[str, str]:
    called, function = random.choice((("average", "AVG"), ("largest", "MAX"), ("total", "SUM")))
    least = random.randint(1, 3)
    if random.random() < 0.5:
        table, column, name = theme.things, theme.group, random.choice(theme.numbers)[0]
        words, condition = _condition(theme, random)
    else:
        table, column = theme.events, theme.label
        name, smallest, largest = theme.amount
        bound = random.randint(smallest, (smallest + largest) // 2)
        words, condition = f"whose {name} is above {bound}", f"{name} > {bound}"
    return (
        f"Look at the {table} {words}. For each {column} that at least {least} of them have, give"
        f" the {column} and their {called} {name}.",
        f"SELECT {column}, {function}({name}) FROM {table} WHERE {condition} GROUP BY {column}"
        f" HAVING COUNT(*) >= {least}",
    )


def _join(theme: Theme, random: Random) -> tuple[str, str]:
    amount, least, largest = theme.amount
    on = f"{theme.things}.id = {theme.events}.{theme.link}"
    joined = f"{theme.things} JOIN {theme.events} ON {on}"
    label = random.choice(theme.labels)
    form = random.randrange(3)
    if form == 0:
        bound = random.randint(least + (largest - least) // 4, largest - (largest - least) // 4)
        return (
            f"For each row of {theme.events} with {theme.label} {label} and more than {bound}"
            f" {amount}, give the name from {theme.things} and the {amount}.",
            f"SELECT name, {amount} FROM {joined} WHERE {theme.label} = '{label}'"
            f" AND {amount} > {bound}",
        )
    words, condition = _condition(theme, random)
    if form == 1:
        return (
            f"For each of the {theme.things} {words} that has {theme.events}, give the name and the"
            f" total {amount}.",
            f"SELECT name, SUM({amount}) FROM {joined} WHERE {condition}"
            f" GROUP BY {theme.things}.id, name",
        )
    return (
        f"List the name of all {theme.things} {words} that have no {theme.events} with"
        f" {theme.label} {label}.",
        f"SELECT name FROM {theme.things} WHERE {condition} AND id NOT IN"
        f" (SELECT {theme.link} FROM {theme.events} WHERE {theme.label} = '{label}')",
    )


_QUESTIONS = {
    "filter": _filter,
    "aggregate": _aggregate,
    "top": _top,
    "group": _group,
    "join": _join,
}
