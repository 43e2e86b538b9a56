"""Tasks: the questions a policy is trained on, how they are picked, and how answers are graded.

`load(name)` gives a `Task`: prompts of two splits, a function that grades responses, a budget. The
name says where it comes from:

    brackets, operators, arithmetic, gsm8k     built in (`names()` lists them)
    arithmetic:hard                            the same with harder questions
    reasoning_gym:chain_sum                    a generator of the package reasoning-gym
    jsonl:path/to/questions.jsonl              a file of mathematics questions
    tfds:name                                  a data set of TensorFlow Datasets
    package.module:name                        yours: a Task, or a function that returns one

The words before `:` in lines two to five are reserved: a module of yours with such a name is never
looked for. A task of your own is a `Task`; `graded_one_by_one` makes its `verify` from a function
of one prompt and one response, `mathematics.mathematics` the whole task from a list of questions.

`Batches` orders the prompts, `self_check` grades known answers before the first step.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rlvr_jax.tasks.base import Grade, Prompt, Response, Task, graded_one_by_one
from rlvr_jax.tasks.batches import Batches
from rlvr_jax.tasks.selfcheck import SelfCheck, self_check

__all__ = [
    "Batches",
    "Grade",
    "Prompt",
    "Response",
    "SelfCheck",
    "Task",
    "graded_one_by_one",
    "load",
    "names",
    "self_check",
]

# Name of the task, which is also the name of its function, and the module it is in.
_BUILT_IN = {
    "arithmetic": "arithmetic",
    "brackets": "brackets",
    "gsm8k": "tfds",
    "hinted_brackets": "hinted_brackets",
    "operators": "operators",
}
# What may stand before `:`; the module and its function have the same name.
_PREFIXES = {
    "arithmetic": "arithmetic:hard",
    "jsonl": "jsonl:path/to/file.jsonl",
    "reasoning_gym": "reasoning_gym:chain_sum",
    "tfds": "tfds:name",
}
# Modules that tasks import when they are loaded, and what installs them.
_PACKAGES = {
    "array_record": "array_record",
    "importlib_resources": "importlib_resources",
    "math_verify": "math-verify",
    "reasoning_gym": "reasoning-gym",
    "tensorflow": "tensorflow",
    "tensorflow_datasets": "tensorflow-datasets",
}


def names() -> tuple[str, ...]:
    """The built-in tasks that need nothing after their name."""
    return tuple(sorted(_BUILT_IN))


def load(name: str, **options: Any) -> Task:
    """Makes the task of a name.

    Args:
      name: as described at the top of this module.
      **options: arguments of the function that makes the task, e.g. `size` and `seed`.
    Raises:
      ValueError: unknown name (with the closest known ones); an option the task does not have or
        does not accept; a package that is not installed (with the command that installs it);
        something else than a Task under a user's name.
    """
    prefix, colon, rest = name.partition(":")
    if not colon:
        if name not in _BUILT_IN:
            raise ValueError(_unknown(name))
        return _make(name, _function(name, _BUILT_IN[name], name), options)
    if not prefix or not rest:
        raise ValueError(f"load: name must have text on both sides of ':', got {name!r}")
    if prefix in _PREFIXES:
        return _make(name, _function(name, prefix, prefix), options, rest)
    return _make(name, _user_object(name, prefix, rest), options)


def _function(name: str, module: str, function: str) -> Callable[..., Task]:
    with _needs(name):
        return getattr(importlib.import_module(f"rlvr_jax.tasks.{module}"), function)


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
    except TypeError as error:
        raise ValueError(_wrong_options(name, source, options, len(arguments), error)) from None
    with _needs(name):
        task = source(*arguments, **options)
    if not isinstance(task, Task):
        raise ValueError(f"load: {name!r} must return a Task, got {type(task).__name__}")
    return task


@contextlib.contextmanager
def _needs(name: str) -> Iterator[None]:
    """Turns the missing package of a task into a sentence that names the command to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _PACKAGES:
            raise
        raise ValueError(
            f"load: task {name!r} needs the package {_PACKAGES[missing]}, which is not installed:"
            f" run `pip install {_PACKAGES[missing]}`"
        ) from error


def _user_object(name: str, module: str, attribute: str) -> Any:
    """What a user's module has under a name; the current directory is searched first."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A module that the user's module misses is the user's own traceback.
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise ValueError(_unknown(name, f"no module {module!r} can be imported")) from None
    finally:
        sys.path.remove(here)
    if not hasattr(found, attribute):
        close = difflib.get_close_matches(attribute, dir(found), n=3)
        hint = f"; closest: {', '.join(close)}" if close else ""
        raise ValueError(f"load: module {module!r} must have {attribute!r}, which it has not{hint}")
    return getattr(found, attribute)


def _unknown(name: str, reason: str = "no built-in task has this name") -> str:
    known = [*names(), *_PREFIXES.values()]
    prefixes = {example.partition(":")[0]: example for example in _PREFIXES.values()}
    close = difflib.get_close_matches(name, names(), n=3, cutoff=0.5)
    head = name.partition(":")[0]
    close += [prefixes[p] for p in difflib.get_close_matches(head, prefixes, n=1, cutoff=0.7)]
    hint = f"; closest: {', '.join(close)}" if close else ""
    return (
        f"load: name must be one of {', '.join(known)} or module:name of your own, got {name!r}"
        f" ({reason}){hint}"
    )


def _wrong_options(name: str, source: Callable, options: dict, skip: int, error: TypeError) -> str:
    known = list(inspect.signature(source).parameters)[skip:]
    wrong = [option for option in options if option not in known]
    if not wrong:
        return f"load: options of task {name!r} do not fit: {error}"
    close = [match for option in wrong for match in difflib.get_close_matches(option, known, n=1)]
    hint = f"; closest: {', '.join(close)}" if close else ""
    listed = ", ".join(known) or "(none)"
    return f"load: options of task {name!r} must be among {listed}, got {', '.join(wrong)}{hint}"
