"""Settings of tasks: annotated types that carry range and description, and their checks.

    @task
    def operators(seed: SplitSeed = 0, response_tokens: ResponseTokens = 20) -> Task: ...

`python -m rlvr_jax.tasks operators` prints the settings with description and range.
"""

import difflib
import functools
import inspect
import types
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from rlvr_jax.ranges import Count, NonNegativeInt, OpenUnit, Range, is_whole
from rlvr_jax.tasks.base import Task

__all__ = ["AnswerAfter", "DropContradictions", "HeldOut", "HeldOutFraction", "Instruction"]
__all__ += ["Kind", "ResponseTokens", "Seed", "Size", "SplitSeed", "TestSize"]
__all__ += ["checked", "described", "kind_of", "task"]

Size = Annotated[Count, "train prompts"]
TestSize = Annotated[Count, "test prompts"]
Seed = Annotated[int, "seed of the prompts"]
SplitSeed = Annotated[NonNegativeInt, "seed of the split"]
ResponseTokens = Annotated[Count, "tokens of a response at most"]
HeldOut = Annotated[Literal["test", "dev"], "test prompts; dev: for choosing settings"]
AnswerAfter = Annotated[str | None, "mark before the answer; None: ####, a box or the whole cell"]
HeldOutFraction = Annotated[OpenUnit, "fraction of the questions in test, by a hash of their words"]
Instruction = Annotated[str, "added to a question; not a second request for a form of the answer"]
DropContradictions = Annotated[bool, "drop questions with different answers, an error otherwise"]

KINDS: dict[type, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a text",
}


class Kind(NamedTuple):
    """The description of a setting by its annotation.

    Fields:
      type: without `Annotated` and None; a union where several types remain.
      optional: None is allowed.
      choices: the values that are allowed, empty for any: those of a Literal, or a tuple in
        `Annotated`.
      extras: the metadata of `Annotated`.
    """

    type: Any
    optional: bool
    choices: tuple[Any, ...]
    extras: tuple[Any, ...]


def kind_of(annotation: Any) -> Kind:
    """Reads an annotation."""
    extras: list[Any] = []
    if get_origin(annotation) is Annotated:
        annotation, *extras = get_args(annotation)
    members = [annotation]
    if get_origin(annotation) in (Union, types.UnionType):
        members = [member for member in get_args(annotation) if member is not types.NoneType]
    only = members[0] if len(members) == 1 else annotation
    choices = next((extra for extra in extras if isinstance(extra, tuple)), ())
    if get_origin(only) is Literal:
        choices, only = get_args(only), type(get_args(only)[0])
    optional = types.NoneType in get_args(annotation)
    return Kind(only, optional, choices, tuple(extras))


def described(parameter: inspect.Parameter) -> str:
    """Name, default, description and range of a setting."""
    kind = kind_of(parameter.annotation)
    words = [extra for extra in kind.extras if isinstance(extra, str)]
    words += [str(extra) for extra in kind.extras if isinstance(extra, Range)]
    words += [_listed(kind.choices)] if kind.choices else []
    default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
    return f"{parameter.name}{default}{': ' if words else ''}{', '.join(words)}"


def task(maker: Callable[..., Task]) -> Callable[..., Task]:
    """Makes a task once for each choice of settings; see `checked`."""
    return functools.cache(checked(maker))


def checked(maker: Callable[..., Task]) -> Callable[..., Task]:
    """Checks settings against their annotations; of min_x and max_x the first is not larger.

    Raises:
      ValueError: when called, a setting of another type or out of its range.
    """
    signature = inspect.signature(maker, eval_str=True)
    name = maker.__name__

    @functools.wraps(maker)
    def make(*given: Any, **named: Any) -> Task:
        bound = signature.bind(*given, **named)
        bound.apply_defaults()
        settings = bound.arguments
        for setting, value in settings.items():
            if signature.parameters[setting].kind is not inspect.Parameter.VAR_KEYWORD:
                _check(name, setting, value, kind_of(signature.parameters[setting].annotation))
        for low in settings:
            high = low.replace("min_", "max_", 1)
            if low.startswith("min_") and settings[low] > settings[high]:
                raise ValueError(
                    f"{name}: {low} must be at most {high} {settings[high]}, got {settings[low]}"
                )
        return maker(*bound.args, **bound.kwargs)

    make.__signature__ = signature  # type: ignore[attr-defined]
    return make


def _check(task: str, name: str, value: Any, kind: Kind) -> None:
    if value is None and kind.optional:
        return
    wanted, hint = "", ""
    ranges = [extra for extra in kind.extras if isinstance(extra, Range)]
    if kind.choices:
        if value not in kind.choices:
            wanted = _listed(kind.choices)
            close = difflib.get_close_matches(str(value), map(str, kind.choices), n=1)
            hint = f"; closest: {close[0]}" if close else ""
    elif not _is_a(value, kind.type):
        wanted = KINDS[kind.type]
    elif any(value not in one for one in ranges):
        wanted = " and ".join(map(str, ranges))
    if wanted:
        raise ValueError(f"{task}: {name} must be {wanted}, got {value!r}{hint}")


def _is_a(value: Any, kind: type) -> bool:
    if kind is float:
        return isinstance(value, float) or is_whole(value)
    return is_whole(value) if kind is int else isinstance(value, kind)


def _listed(choices: tuple[Any, ...]) -> str:
    *others, last = map(repr, choices)
    return f"{', '.join(others)} or {last}"
