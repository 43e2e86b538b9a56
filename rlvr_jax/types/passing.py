"""Recipes that take the arguments of a part and pass them on.

    @arguments_of(risk_sensitive, credit=spread_credit)
    def riskpo(clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.28, **risk: Any) -> Recipe:
        return Recipe(clipped_objective(clip_low, clip_high, advantage=risk_sensitive(**risk)))

`riskpo` has the parameters of `risk_sensitive`, then its own. If the maker is in another file, such
as `clipped_objective`, its parameters follow those of the recipe. Types, defaults and descriptions
are written once, at the maker.
"""

import functools
import inspect
import re
from collections.abc import Callable, Collection
from typing import Any, TypeVar, get_type_hints

F = TypeVar("F", bound=Callable[..., Any])


def arguments_of(
    maker: Callable[..., Any], *names: str, into: str = "", **defaults: Any
) -> Callable[[F], F]:
    """Gives a recipe parameters of a part, which it receives as its keyword arguments (`**`).

    Args:
      maker: of the part, or a composition.
      into: a parameter of the recipe that gets the made object instead; the maker's parameters are
        then keywords only.
      names: parameters of the maker; none: all that the recipe does not have itself.
      defaults: in the recipe, where they differ from those of the maker; their parameters are
        taken, whether they are in `names` or not.
    """
    chosen = {*names, *defaults}

    def decorate(recipe: F) -> F:
        own = inspect.signature(recipe)
        fixed = [
            each
            for each in own.parameters.values()
            if each.kind is not each.VAR_KEYWORD and each.name != into
        ]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        kind = inspect.Parameter.KEYWORD_ONLY if into else kind
        taken = [
            each.replace(kind=kind, default=defaults.get(name, each.default))
            for name, each in inspect.signature(maker).parameters.items()
            if (name in chosen if names else name not in own.parameters or name == into)
        ]
        order = [*taken, *fixed] if maker.__module__ == recipe.__module__ else [*fixed, *taken]
        whole = own.replace(parameters=sorted(order, key=lambda each: each.kind))

        @functools.wraps(recipe)
        def passing(*positional: Any, **named: Any) -> Any:
            bound = whole.bind(*positional, **named)
            bound.apply_defaults()
            values = bound.arguments
            if into:
                values[into] = maker(**{name: values.pop(name) for name in shared})
            return recipe(**values)

        shared = {each.name for each in taken}
        hints = get_type_hints(maker, include_extras=True)
        hints = {name: hints[name] for name in shared if name in hints}
        others = {name: hint for name, hint in recipe.__annotations__.items() if name != into}
        passing.__annotations__ = {**hints, **others}
        passing.__signature__ = whole  # type: ignore[attr-defined]
        passing.__doc__ = _with_arguments(inspect.getdoc(recipe) or "", maker, shared)
        return passing  # type: ignore[return-value]

    return decorate


def _with_arguments(text: str, maker: Callable[..., Any], names: Collection[str]) -> str:
    """A docstring with the lines of the maker's docstring about some of its arguments."""
    _, _, body = (inspect.getdoc(maker) or "").partition("Args:\n")
    entries = re.findall(r"^  ([\w, ]+): (.*(?:\n    .*)*)", body, re.MULTILINE)
    lines = [f"  {head}: {rest}\n" for head, rest in entries if {*head.split(", ")} <= {*names}]
    before, section, after = text.partition("Args:\n")
    if not lines:
        return text
    if not section:
        before = f"{before}\n\n"
    return f"{before}Args:\n{''.join(lines)}{after}"
