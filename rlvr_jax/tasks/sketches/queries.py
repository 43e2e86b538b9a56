r"""Queries: questions about one table, in episodes of InterCode.

    prompt    name;age>30?                              also: name;town=Ba,age>30?
    actions   SELECT name FROM people WHERE age>30       the reply: Ba\nKo\nLi\n
              submit                                     the reward of the last table

An action is a line. The environment (`rlvr_jax.tools.intercode`) replies with the rows of a query
or its error. The reward compares the last table with that of the gold query. It is the fraction of
common rows times the rank correlation of their order. A question may request an order by age (`:`).

The base model writes one of five conditions with another number or column, and mostly submits the
first table.
"""

from functools import cache
from random import Random

from rlvr_jax.tasks.base import Prompt, Response
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.tasks.grading import one_by_one
from rlvr_jax.tasks.sketches.words import BASE_MODEL, NAMES
from rlvr_jax.tools.intercode import SqlEpisodes, sql_episodes
from rlvr_jax.verifiers.grade import Grade

__all__ = ["queries", "query_of", "table"]

ROWS, TOWNS = 16, 4


@cache
def table() -> list[tuple[str, int, str]]:
    """The rows of the table: name, age, town."""
    random = Random("queries")
    names = random.sample(NAMES, ROWS + TOWNS)
    towns, ages = names[ROWS:], random.sample(range(10, 80), ROWS)
    return [(name, age, random.choice(towns)) for name, age in zip(names[:ROWS], ages, strict=True)]


@generated(response_tokens=96, size=300, test_size=50)
def queries() -> Generated:
    """Questions of two kinds in equal numbers: a condition on the age, or on town and age.

    The outcome is 1 for the rows of the gold query in its order. A response that is not played has
    the reward 0. Replies count as tokens of a response.
    """
    return Generated(
        _prompt,
        ("age", "town"),
        verify=_unplayed,
        base_model=BASE_MODEL,
        environment=environment(),
    )


@cache
def environment() -> SqlEpisodes:
    """The episodes; the gold query is the answer of a prompt."""
    rows = ",".join(f"('{name}',{age},'{town}')" for name, age, town in table())
    setup = f"CREATE TABLE people (name TEXT, age INT, town TEXT); INSERT INTO people VALUES {rows}"
    return sql_episodes(gold_of, setup)


def gold_of(prompt: Prompt) -> str:
    """The gold query of a prompt."""
    return prompt.answer


def query_of(column: str, condition: str, ordered: bool) -> str:
    """A query of one column with a condition."""
    return f"SELECT {column} FROM people WHERE {condition}{' ORDER BY age' if ordered else ''}"


def _prompt(random: Random, kind: str) -> Prompt:
    shown = gold = f"age{random.choice('<>')}{random.randint(20, 70)}"
    if kind == "town":
        town = random.choice(sorted({town for _, _, town in table()}))
        shown, gold = f"town={town},{shown}", f"town='{town}' AND {gold}"
    column, ordered = random.choice(("name", "age", "town")), random.random() < 0.5
    text = f"{column};{shown}{':' if ordered else ''}?"
    return Prompt(text, query_of(column, gold, ordered), kind)


@one_by_one
def _unplayed(prompt: Prompt, response: Response) -> Grade:
    return Grade(0.0)
