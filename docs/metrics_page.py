"""Writes metrics.md, the reference of all metrics of a run.

The metrics of every run are declared in rlvr_jax/analysis/metrics.toml. Those of a part are in its
docstring, after `Metrics:`, as `name (meaning), name, name (their meaning); those of the reward.`

python docs/metrics_page.py
"""

import ast
import functools
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rlvr_jax import methods
from rlvr_jax.analysis.metrics import Declared, declared, pattern_of
from rlvr_jax.types.parts import Part

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/metrics.md"
_SECTION = r"Metrics:(.*?)(?=\n *(?:Raises|Returns|Source|Example|Args|Reads|Writes)\b|\n *\n|\Z)"
_HEAD = """# Metrics

This page lists every name that can occur in `metrics.jsonl`, `held_out.jsonl` and `summary.json`
of a [run directory](run_directory.md). A line of `metrics.jsonl`, shortened:

    {"step": 3, "reward": 0.412, "entropy": 0.171, "length": 14.2, "gradient_norm": 0.388}

- Steps are counted from 1. Step 0 is the evaluation before the first step.
- `null` replaces a number that does not exist: a mean over nothing, a NaN or an infinity.
- Entropies and log-probs are in nats per response token. V is the size of the vocabulary.
- `<…>` is a placeholder: `<kind>` is a kind of prompts of the task, `<k>` the k of pass@k.
- If a part writes a name that exists already, its metric is `<part>/<metric>`,
  `objective/<metric>` or `batch/<metric>`.

[Healthy curves](#healthy-curves) is a guide to the curves of a report. The other sections are the
reference: [files](#metricsjsonl), [numbers of verifiers](#numbers-of-verifiers),
[counts of environments](#counts-of-environments), parts of [losses](#parts-of-the-library-losses),
[experiences](#parts-of-the-library-experiences) and [methods](#parts-of-methods).

This page is made by `python docs/metrics_page.py`.
"""
_HEALTHY = """## Healthy curves

A healthy curve is one of a run that learns. Steps are noisy: judge a mean of about ten steps.

| metric | healthy curve |
|---|---|"""
_PARTS_INTRO = """
A part writes its metrics in each step. Parts of an experience write `experience/<metric>`. The last
column lists the methods whose recipe has the part by default; – means that no recipe has it."""
FOLDERS = {
    "verifiers": "Numbers of verifiers",
    "tasks": "Numbers of tasks",
    "tools": "Counts of environments",
    "judges": "Judges",
    "objectives": "Parts of the library: losses",
    "experience": "Parts of the library: experiences",
    "methods": "Parts of methods",
}


class Documented(NamedTuple):
    """The metrics of a docstring: meanings by name, and references to those of others."""

    metrics: dict[str, str]
    others: tuple[str, ...]


class PartDoc(NamedTuple):
    """A function or class of the library with metrics.

    Fields:
      path: of its file, below rlvr_jax.
      prefix: of the names in `metrics.jsonl`.
    """

    path: str
    name: str
    prefix: str
    documented: Documented


def documented(docstring: str) -> Documented | None:
    """The metrics of a part's docstring; None if it has none.

    Raises:
      ValueError: a text that is not a list of names with meanings.
    """
    found = re.search(_SECTION, docstring, re.DOTALL)
    if found is None:
        return None
    text = " ".join(found[1].split()).removesuffix(".")
    if text == "none":
        return Documented({}, ())
    metrics: dict[str, str] = {}
    others = []
    waiting: list[str] = []
    for item, _ in re.findall(r"((?:[^,;()]|\((?:[^()]|\([^()]*\))*\))+)([,;]|$)", text):
        reference = re.fullmatch(r"(?:and )?those of (.+)", item.strip())
        whole = re.fullmatch(r"([a-z][\w<>]*(?:/[\w<>]+)*)(?: \((.+)\))?", item.strip())
        if reference:
            others.append(reference[1])
        elif whole is None:
            raise ValueError(f"Metrics: must list names with meanings, got {item.strip()!r}")
        else:
            waiting.append(whole[1])
            if whole[2]:
                metrics |= dict.fromkeys(waiting, whole[2])
                waiting = []
    if waiting:
        raise ValueError(f"Metrics: {', '.join(waiting)} must have a meaning in parentheses")
    return Documented(metrics, tuple(others))


@functools.cache
def parts() -> tuple[PartDoc, ...]:
    """All parts of the library with metrics, in the order of their files."""
    return tuple(one for folder in FOLDERS for one in _parts_of(folder))


def _parts_of(folder: str) -> Iterator[PartDoc]:
    for path in sorted((ROOT / "rlvr_jax" / folder).rglob("*.py")):
        text = path.read_text()
        if "Metrics:" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                continue
            try:
                found = documented(ast.get_docstring(node) or "")
            except ValueError as error:
                raise ValueError(f"{path.relative_to(ROOT)}, {node.name}: {error}") from None
            if found is not None:
                yield PartDoc(
                    str(path.relative_to(ROOT / "rlvr_jax")),
                    node.name,
                    _prefix(folder, node),
                    found,
                )


def _prefix(folder: str, node: ast.FunctionDef | ast.ClassDef) -> str:
    if folder in ("verifiers", "tasks"):
        return "info/"
    kind = ast.unparse(node.returns) if getattr(node, "returns", None) else ""
    of_loss = kind in ("Transform", "Surrogate", "Aggregation", "Objective")
    return "" if of_loss else "experience/"


def metrics_of(part: Any) -> set[str]:
    """Names of the metrics that a part and the parts in its arguments document."""
    known = {one.name: one.documented for one in parts()}
    return {name for maker in makers_of(part) for name in _names(maker, known)}


def _names(maker: str, known: dict[str, Documented]) -> set[str]:
    if maker not in known:
        return set()
    own = set(known[maker].metrics)
    for other in known[maker].others:
        own |= _names(other.strip("`"), known)
    return own


def makers_of(part: Any) -> set[str]:
    """Names of the makers of a part and of all parts in its arguments."""
    found: set[str] = set()
    if isinstance(part, Part) and part.made:
        found.add(part.made.maker.__name__)
        for _, value in part.made.arguments:
            found |= makers_of(value)
    elif isinstance(part, dict):
        found |= {name for value in part.values() for name in makers_of(value)}
    elif isinstance(part, list | tuple):
        found |= {name for value in part for name in makers_of(value)}
    return found


@functools.cache
def _users() -> dict[str, list[str]]:
    """Methods by the makers of their recipes."""
    users: dict[str, list[str]] = {}
    for method in methods.names():
        recipe = methods.recipe(method, **methods.method(method).small)
        own = (recipe.objective, recipe.critic)
        if recipe.experience is not None:
            own += tuple(recipe.experience.parts.values())
        for maker in makers_of(own):
            users.setdefault(maker, []).append(method)
    # A part that refers to the metrics of another one is a user of them.
    for one in parts():
        for other in one.documented.others:
            known = users.setdefault(other.strip("`"), [])
            known += [user for user in users.get(one.name, []) if user not in known]
    return users


def names() -> list[str]:
    """All names of `metrics.jsonl`, with placeholders."""
    core = [name for one in declared() for name in one.names if not name.endswith("/<metric>")]
    return core + [_full(one, name) for one in parts() for name in one.documented.metrics]


def _full(one: PartDoc, name: str) -> str:
    return name if name.startswith("info/") else one.prefix + name


def unknown(written: Iterable[str], listed: Iterable[str] | None = None) -> list[str]:
    """Written metrics that are not among the listed ones; None: those of the page."""
    patterns = [pattern_of(name) for name in (names() if listed is None else listed)]
    return [name for name in written if not any(one.fullmatch(name) for one in patterns)]


def metrics_page() -> str:
    """The page."""
    lines = [_HEAD, _HEALTHY]
    lines += [f"| {_code(one)} | {one.healthy} |" for one in declared() if one.healthy]
    lines += ["", "## `metrics.jsonl`", "", "Each line has `step`.", ""]
    lines += ["| key | unit | range | content | in lines of |", "|---|---|---|---|---|"]
    lines += [_row(one, one.lines) for one in declared()]
    for name in ("held_out", "summary"):
        suffix = "jsonl" if name == "held_out" else "json"
        lines += ["", f"## `{name}.{suffix}`", ""]
        lines += ["| key | unit | range | content |", "|---|---|---|---|"]
        lines += [_row(one) for one in declared(name)]
    for folder, title in FOLDERS.items():
        lines += _section(folder, title)
    return "\n".join([*lines, ""])


def _code(one: Declared) -> str:
    return ", ".join(f"`{name}`" for name in one.names)


def _row(one: Declared, *more: str) -> str:
    return f"| {' | '.join([_code(one), one.unit, one.range or '–', one.meaning, *more])} |"


def _section(folder: str, title: str) -> Iterator[str]:
    own = [one for one in parts() if one.path.startswith(folder + "/") and one.documented.metrics]
    if not own:
        return
    yield from ("", f"## {title}")
    if folder in _INTROS:
        yield from ("", _INTROS[folder])
    if folder in ("verifiers", "tasks", "tools", "judges"):
        yield from _table(own, "written by", lambda one: f"`{_theme(one)}`")
        return
    for theme in dict.fromkeys(_theme(one) for one in own):
        yield from ("", f"### {theme.replace('_', ' ').capitalize()}")
        yield from _table([one for one in own if _theme(one) == theme], "part", _part, _methods)


def _theme(one: PartDoc) -> str:
    """The folder of a part; of a verifier, task or tool its module."""
    path = one.path.removesuffix(".py").split("/")
    return path[1] if path[0] in ("objectives", "experience", "methods") else path[-1]


def _part(one: PartDoc) -> str:
    return f"`{one.name}`"


def _methods(one: PartDoc) -> str:
    users = sorted(_users().get(one.name, []))
    return ", ".join(f"`{user}`" for user in users) if len(users) <= 6 else f"{len(users)} methods"


def _table(own: list[PartDoc], column: str, *cells: Callable[[PartDoc], str]) -> Iterator[str]:
    more = ["methods"] * (len(cells) - 1)
    yield from ("", f"| {' | '.join(['metric', 'meaning', column, *more])} |")
    yield "|---" * (3 + len(more)) + "|"
    for one in own:
        by_meaning: dict[str, list[str]] = {}
        for name, meaning in one.documented.metrics.items():
            of = "fraction " * (meaning.startswith("of ") and "fraction" in name)
            by_meaning.setdefault(of + meaning, []).append(f"`{_full(one, name)}`")
        for meaning, named in by_meaning.items():
            row = [", ".join(named), meaning.replace("|", "\\|")]
            yield f"| {' | '.join([*row, *(cell(one) or '–' for cell in cells)])} |"


_INTROS = {
    "verifiers": "A verifier reports numbers with a grade. Their means are `info/<name>` in steps"
    "\nand `held_out/info/<name>` in evaluations.",
    "tasks": "These tasks report further numbers. A custom task reports the numbers of its grades.",
    "tools": "An environment counts events of its replies. Their sums over the step are"
    "\n`experience/<name>`.",
    "judges": "With `--judge`, the counts of a step are `experience/<name>`.",
    "objectives": _PARTS_INTRO.strip(),
}


if __name__ == "__main__":
    PAGE.write_text(metrics_page())
