"""Options: arguments of the function that makes a task, with values written as texts.

The annotation of its argument decides how an option is read: true or false, an integer, a number, a
text, or one of some texts. Options that a function passes on (`takes_options_of`) have the
annotations of the other function.
"""

import inspect
import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from rlvr_jax.arguments import choices_of, types_of

KINDS: dict[type, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a text",
}

_BORDER = re.compile(r",(?=\w+=)")
_TRUTH = {"true": True, "false": False}


def takes_options_of(other: Callable, leave_out: Iterable[str] = ()) -> Callable:
    """Marks a function whose **arguments are those of another function, such as a verifier's.

    Args:
      leave_out: arguments of the other function that this one does not take.
    """

    def mark(function: Callable) -> Callable:
        function.hands_on = {
            name: parameter
            for name, parameter in known_options(other).items()
            if name not in {*leave_out, "self"}
        }
        return function

    return mark


def known_options(source: Callable) -> dict[str, inspect.Parameter]:
    """The keyword arguments of a function, including those that it passes on."""
    parameters = inspect.signature(source, eval_str=True).parameters
    varied = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    named = {name: p for name, p in parameters.items() if p.kind not in varied}
    return named | getattr(source, "hands_on", {})


def parts_of(text: str) -> list[str]:
    """The parts of name=value,name=value. A comma ends a value only if a name and = follow, so that
    a value can be a sentence."""
    return _BORDER.split(text)


def pairs_of(texts: Iterable[str], what: str) -> dict[str, str]:
    """Reads texts of name=value or name=value,name=value.

    Args:
      what: name of the argument, for errors.
    Raises:
      ValueError: a part has no name, or a name occurs twice.
    """
    found: dict[str, str] = {}
    for part in [part for text in texts for part in parts_of(text)]:
        name, equals, value = part.partition("=")
        if not equals or not name:
            raise ValueError(f"{what} must be written name=value, got {part!r}")
        if name in found:
            raise ValueError(f"{what} must be given once, got {name} twice")
        found[name] = value
    return found


def read_option(task: str, name: str, text: str, parameter: inspect.Parameter | None) -> Any:
    """The value of an option that is written as a text.

    Args:
      task: name of the task, for errors.
      name: of the option.
      text: its value.
      parameter: the argument; None: of unknown kind; the text is read as JSON if possible.
    Raises:
      ValueError: the text is not such a value, or the argument cannot be written as a text.
    """
    if parameter is None:
        return _of_unknown_kind(text)
    annotation = parameter.annotation
    if annotation is parameter.empty:
        if type(parameter.default) not in KINDS:
            return _of_unknown_kind(text)
        annotation = type(parameter.default)
    if choices := choices_of(annotation):
        named = {str(choice): choice for choice in choices}
        if text not in named:
            raise ValueError(
                f"load: option {name} of task {task!r} must be one of {', '.join(named)}, got"
                f" {text!r}"
            )
        return named[text]
    kind, *others = types_of(annotation)
    if others or kind not in KINDS:
        raise ValueError(
            f"load: option {name} of task {task!r} must be given as an argument of load, not as a"
            f" text, got {text!r}"
        )
    try:
        return _TRUTH[text] if kind is bool else kind(text)
    except (ValueError, KeyError):
        raise ValueError(
            f"load: option {name} of task {task!r} must be {KINDS[kind]}, got {text!r}"
        ) from None


def _of_unknown_kind(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
