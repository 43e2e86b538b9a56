"""An environment of tools: finds a call in a text of the policy, runs it, and shows the result."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlvr_jax.tools.base import Lost, Tool, ToolError, as_text, awaited, in_time, shown
from rlvr_jax.tools.calls import Style, json_calls
from rlvr_jax.tools.environment import Reply


@dataclass(frozen=True)
class Toolbox:
    """An environment whose replies are results of tools; see `toolbox`."""

    tools: tuple[Tool, ...]
    style: Style
    most: int
    describe: bool
    stops: tuple[str, ...]
    label: str
    by_name: Mapping[str, Tool] = field(repr=False, compare=False)
    judges: bool = False

    def start(self, prompt: Any) -> tuple[Any, Sequence[Mapping[str, Any]]]:
        """No calls yet, and the tools of each name at the start."""
        described = self.style.explain(self.tools) if self.describe else ""
        messages: list[Mapping[str, Any]] = (
            [{"role": "system", "content": described}] if described else []
        )
        if described and self.style.templated:
            tools = [{"type": "function", "function": each.schema} for each in self.tools]
            messages = [{**messages[0], "tools": tools, "marks": self.style.stops}]
        return (0, dict.fromkeys(self.by_name)), messages

    def reply(self, state: Any, text: str) -> Reply:
        """The result of the called tool; None for a text without a call. A malformed call, a call
        of an unknown tool, and a call above the limit get a sentence as the reply."""
        calls, states = state
        found = self.style.find(text)
        if found is None:
            return Reply(state)
        call, _ = found
        counts = {"calls": 1.0, "malformed_calls": 0.0, "tool_errors": 0.0, "tool_timeouts": 0.0}
        if calls >= self.most:
            result, counts["calls"] = f"Error: no call is left of {self.most}.", 0.0
            return self._reply_of((calls, states), result, counts)
        wrong = call.wrong or self._wrong(call)
        if wrong:
            counts |= {"calls": 0.0, "malformed_calls": 1.0}
            return self._reply_of((calls + 1, states), f"Error: {wrong}.", counts)
        tool = self.by_name[call.tool]
        given = call.arguments
        if isinstance(given, str):
            first, schema = next(iter(tool.parameters.items()))
            given = {first: _read(given, schema)}
        own = states[tool.name]
        try:
            own, result = in_time(lambda: _run(tool, given, own), tool.seconds, f"tool {tool.name}")
        except ToolError as error:
            result, counts["tool_errors"] = f"Error: {error}", 1.0
        except TimeoutError:
            result = f"Error: {tool.name} took longer than {tool.seconds:g} seconds."
            counts["tool_timeouts"] = 1.0
        except Lost:
            return Reply((calls + 1, states), lost=True, done=True, info=counts)
        except (Exception, SystemExit) as error:  # the policy reads it, and the run continues
            result, counts["tool_errors"] = f"Error: {type(error).__name__}: {error}", 1.0
        return self._reply_of(
            (calls + 1, {**states, tool.name: own}), result, counts, tool.characters
        )

    def _wrong(self, call) -> str:
        tool = self.by_name.get(call.tool)
        if tool is None:
            return f"there is no tool {call.tool!r}, only {', '.join(self.by_name)}"
        if isinstance(call.arguments, Mapping):
            required = {name for name, each in tool.parameters.items() if "default" not in each}
            if not required <= call.arguments.keys() <= tool.parameters.keys():
                known = ", ".join(tool.parameters)
                return f"{tool.name} takes {known}, got {', '.join(call.arguments) or 'nothing'}"
        return ""

    def _reply_of(self, state, result: Any, counts, characters: int = 2000) -> Reply:
        text = as_text(result, characters)
        for stop in self.style.stops:
            # A reply must not look like the end of a call of the policy.
            text = text.replace(stop.strip(), stop.strip().replace("</", "< /"))
        return Reply(state, self.style.wrap(text), info=counts, role=self.style.role)


def _run(tool: Tool, arguments: Mapping[str, Any], state: Any) -> tuple[Any, str]:
    state, result = awaited(tool.run(arguments, state))
    return state, shown(result, tool.characters)


def _read(text: str, schema: Mapping[str, Any]) -> Any:
    """An argument of a call that is only a text: parsed as JSON unless the tool takes a text."""
    kinds = schema.get("type", "string")
    if "string" in ([kinds] if isinstance(kinds, str) else kinds):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def toolbox(
    *tools: Tool, style: Style | None = None, most: int = 8, describe: bool = True
) -> Toolbox:
    """An environment in which a policy may call tools.

    Args:
      tools: tools with different names.
      style: form of calls; None: `json_calls()`.
      most: largest number of calls in a response; further calls get a sentence as the reply.
      describe: add a system message with the tools and the form of calls. It requires a tokenizer
        with a chat template.
    Raises:
      ValueError: there are no tools, or two have the same name.

    Metrics: calls (calls of tools), malformed_calls (calls that cannot be read), tool_errors (calls
      that fail), tool_timeouts (calls that pass their limit).
    """
    if not tools:
        raise ValueError("toolbox: tools must be at least one, got none")
    names = [each.name for each in tools]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"toolbox: tools must have different names, got {sorted(twice)} twice")
    style = style or json_calls()
    label = f"toolbox({', '.join(names)}, style={style.label}, most={most}, describe={describe})"
    by_name = dict(zip(names, tools, strict=True))
    return Toolbox(tuple(tools), style, most, describe, style.stops, label, by_name)
