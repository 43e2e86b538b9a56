"""Databases of the questions: a table of things, a table of their events, and the rows."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

_FEWEST, _MOST = 8, 14  # rows of the first table; the second has twice as many


class Theme(NamedTuple):
    """The names and the contents of two tables.

    Fields:
      things, events: names of the tables; an event belongs to a thing by the column `link`.
      names: names of things, separated by blanks, each used once.
      group, groups: a column of things and its values.
      numbers: two columns of things, each with its smallest and largest value.
      label, labels: a column of events and its values.
      amount: a column of events with its smallest and largest value.
    """

    things: str
    events: str
    link: str
    names: str
    group: str
    groups: Sequence[str]
    numbers: Sequence[tuple[str, int, int]]
    label: str
    labels: Sequence[str]
    amount: tuple[str, int, int]


THEMES = (
    Theme(
        *("products", "sales", "product_id"),
        "lamp desk chair shelf rug mirror clock vase stool bench frame basket candle curtain",
        *("category", ("furniture", "light", "decoration")),
        (("price", 5, 400), ("stock", 0, 90)),
        *("city", ("Bern", "Lyon", "Turin", "Ghent")),
        ("quantity", 1, 12),
    ),
    Theme(
        *("books", "loans", "book_id"),
        "Harbour Winter Compass Lantern Orchard Mirage Thistle Quarry Meadow Anchor Tempest Ember"
        " Willow Saffron",
        *("genre", ("novel", "history", "poetry")),
        (("pages", 80, 900), ("year", 1950, 2024)),
        *("reader", ("Ada", "Ben", "Cleo", "Dan")),
        ("days", 1, 40),
    ),
    Theme(
        *("animals", "feedings", "animal_id"),
        "Bruno Kira Milo Nala Otto Pepe Rita Sami Tara Uma Vito Wanda Xeno Yuki",
        *("species", ("bear", "lynx", "otter")),
        (("weight", 5, 300), ("age", 1, 25)),
        *("food", ("fish", "fruit", "grain", "meat")),
        ("grams", 50, 2000),
    ),
    Theme(
        *("ships", "voyages", "ship_id"),
        "Aurora Beagle Calypso Dorado Esther Fortuna Gloria Hera Isis Juno Kestrel Luna Maia"
        " Nereid",
        *("type", ("ferry", "tanker", "trawler")),
        (("length", 20, 330), ("built", 1970, 2022)),
        *("port", ("Bilbao", "Cork", "Gdynia", "Split")),
        ("days", 1, 60),
    ),
    Theme(
        *("pupils", "marks", "pupil_id"),
        "Anna Boris Carla David Elena Felix Greta Hugo Irma Jonas Klara Leon Mara Nils",
        *("class", ("red", "green", "blue")),
        (("height", 110, 190), ("age", 7, 16)),
        *("subject", ("art", "chess", "maths", "music")),
        ("points", 0, 100),
    ),
)


def schema(theme: Theme) -> str:
    """The statements that make the two empty tables."""
    first, second = (name for name, _, _ in theme.numbers)
    return (
        f"CREATE TABLE {theme.things} (id INTEGER PRIMARY KEY, name TEXT, {theme.group} TEXT,"
        f" {first} INTEGER, {second} INTEGER);\n"
        f"CREATE TABLE {theme.events} (id INTEGER PRIMARY KEY, {theme.link} INTEGER,"
        f" {theme.label} TEXT, {theme.amount[0]} INTEGER);"
    )


def filled(theme: Theme, random: Random) -> str:
    """The statements that fill both tables with rows; some things have no events."""
    count = random.randint(_FEWEST, _MOST)
    things = [
        (i, name, random.choice(theme.groups), *(random.randint(a, b) for _, a, b in theme.numbers))
        for i, name in enumerate(random.sample(theme.names.split(), count), 1)
    ]
    busy = random.sample(range(1, count + 1), count - random.randint(1, 3))
    events = [
        (i, random.choice(busy), random.choice(theme.labels), random.randint(*theme.amount[1:]))
        for i in range(1, 2 * count + 1)
    ]
    tables = ((theme.things, things), (theme.events, events))
    rows = [f"INSERT INTO {name} VALUES {', '.join(map(repr, lines))};" for name, lines in tables]
    return "\n".join([schema(theme), *rows])
