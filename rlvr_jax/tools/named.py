"""Tools and ways to call them by name, for command lines."""

import functools
from collections.abc import Callable, Sequence

from rlvr_jax.own import own
from rlvr_jax.tools.base import Tool, tool
from rlvr_jax.tools.calculator import calculator
from rlvr_jax.tools.calls import Style, fenced, json_calls, tags
from rlvr_jax.tools.python import python
from rlvr_jax.tools.search import search
from rlvr_jax.tools.sql import sql
from rlvr_jax.tools.toolbox import Toolbox, toolbox

_TOOLS: dict[str, Callable[[], Tool]] = {"calculator": calculator, "python": python}
_WITH_PATH: dict[str, Callable[[str], Tool]] = {"search": search, "sql": lambda p: sql(file=p)}
_TAGS = {"code": "python", "search": "search", "sql": "sql", "calculator": "calculator"}


def named_toolbox(
    tools: Sequence[str] | None, style: str = "json", most: int = 8, describe: bool = True
) -> Toolbox | None:
    """An environment of tools by name; None for None, if the task has an environment.

    Args:
      tools: each is "python", "calculator", "search:CORPUS" (`read_corpus`), "sql:DATABASE" (a
        sqlite file), or "module:name" of a custom `Tool` or function.
      style: "json" (`json_calls`), "tags" (`<code>`, `<search>`, `<sql>`, `<calculator>`, and a tag
        for each custom tool) or "fenced" (only python).
      most, describe: as for `toolbox`.
    Raises:
      ValueError: a tool or the style is unknown.
    """
    if tools is None:
        return None
    own = _built_in if set(tools) <= _TOOLS.keys() else _named
    return own(tuple(tools), style, most, describe)


def _named(tools: tuple[str, ...], style: str, most: int, describe: bool) -> Toolbox:
    made = [_tool(name) for name in tools]
    styles = {
        "json": json_calls,
        "tags": lambda: tags(
            {tag: name for tag, name in _TAGS.items() if name in [each.name for each in made]}
            | {each.name: each.name for each in made if each.name not in _TAGS.values()}
        ),
        "fenced": fenced,
    }
    if style not in styles:
        raise ValueError(f"tools: style must be one of {', '.join(styles)}, got {style!r}")
    chosen: Style = styles[style]()
    return toolbox(*made, style=chosen, most=most, describe=describe)


_built_in = functools.cache(_named)
"""Equal arguments return the same toolbox, so methods with equal hyperparameters are equal."""


def _tool(name: str) -> Tool:
    if name in _TOOLS:
        return _TOOLS[name]()
    prefix, _, rest = name.partition(":")
    if prefix in _WITH_PATH and rest:
        return _WITH_PATH[prefix](rest)
    if not rest:
        known = [*_TOOLS, *(f"{each}:PATH" for each in _WITH_PATH), "a custom module:name"]
        raise ValueError(f"tools: a tool must be one of {', '.join(known)}, got {name!r}")
    found = own("tools", name)
    return found if isinstance(found, Tool) else tool(found)
