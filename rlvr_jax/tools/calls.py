"""The form of calls in a response, and of the replies to them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


class Call(NamedTuple):
    """A call that was found.

    Fields:
      tool: name of the tool; "" for a malformed call.
      arguments: values by name, or a text.
      wrong: the fault of a malformed call, a sentence for the policy; else "".
    """

    tool: str
    arguments: Mapping[str, Any] | str = ""
    wrong: str = ""


@dataclass(frozen=True)
class Style:
    """A form of calls.

    Fields:
      find: (text) -> its first call, and the number of characters up to the end of the call. None
        if no call begins.
      stops: texts that end a call.
      wrap: (reply) -> its form in the response.
      role: role of a `Reply`.
      explain: (tools) -> instructions for the policy on how to call them.
      label: Python expression that makes this style.
      templated: whether chat templates that know tools may also explain this form.
    """

    find: Callable[[str], tuple[Call, int] | None]
    stops: tuple[str, ...]
    wrap: Callable[[str], str]
    role: str
    explain: Callable[[Sequence[Any]], str]
    label: str
    templated: bool = False


def calls_in(text: str, style: Style) -> list[Call]:
    """All calls of a text, in order, also malformed ones."""
    found = []
    while text and (first := style.find(text)) is not None:
        call, end = first
        found.append(call)
        text = text[end:]
    return found


def json_calls(tag: str = "tool_call", reply: str = "tool_response", role: str = "tool") -> Style:
    """Calls as JSON in a tag, as Hermes and Qwen write them:

        <tool_call>{"name": "python", "arguments": {"code": "print(1)"}}</tool_call>

    A tokenizer whose chat template explains tools with this tag explains them instead.

    Args:
      tag, reply: names of the tags of calls and, if `role` is "", of replies.
      role: role of the message of a reply; "": the reply is in the response.
    """
    begin, end = f"<{tag}>", f"</{tag}>"

    def read(body):
        try:
            call = json.loads(body)
        except (ValueError, RecursionError):
            return Call("", wrong=f"what stands in {begin} is not JSON")
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            return Call("", wrong=f'what stands in {begin} must have a "name"')
        arguments = call.get("arguments", {})
        if not isinstance(arguments, dict):
            return Call("", wrong='"arguments" must be an object')
        return Call(call["name"], arguments)

    def explain(tools):
        lines = [json.dumps(each.schema, ensure_ascii=False) for each in tools]
        example = f'{begin}{{"name": …, "arguments": {{…}}}}{end}'
        return f"You may call tools by writing {example}. The tools:\n" + "\n".join(lines)

    wrap = (lambda text: text) if role else _in_tag(reply)
    label = f"json_calls(tag={tag!r}, reply={reply!r}, role={role!r})"
    find = _between(begin, end, read)
    return Style(find, (end,), wrap, role, explain, label, templated=True)


def tags(tools: Mapping[str, str], reply: str = "output") -> Style:
    """Calls as a text in a tag, one tag per tool: <code>print(1)</code>.

    Args:
      tools: names of tools by their tags, such as {"code": "python"}.
      reply: tag of the replies, which are in the response.
    Raises:
      ValueError: there is no tag.
    """
    if not tools:
        raise ValueError("tags: tools must name a tag, got none")
    readers = [
        _between(f"<{tag}>", f"</{tag}>", lambda body, name=name: Call(name, body))
        for tag, name in tools.items()
    ]

    def find(text):
        found = [call for reader in readers if (call := reader(text))]
        return min(found, key=lambda call: call[1], default=None)

    def explain(known):
        of = {each.name: each for each in known}
        lines = [
            f"<{tag}>…</{tag}>: {of[name].description}" for tag, name in tools.items() if name in of
        ]
        return f"You may use, and will read the reply in <{reply}>:\n" + "\n".join(lines)

    stops = tuple(f"</{tag}>" for tag in tools)
    label = f"tags({dict(tools)!r}, reply={reply!r})"
    return Style(find, stops, _in_tag(reply), "", explain, label)


def fenced(language: str = "python", tool: str = "python", reply: str = "output") -> Style:
    """Calls of a tool as fenced blocks of a language; replies are blocks of the language
    `reply`."""
    return between(f"```{language}\n", "\n```", tool, f"\n```{reply}\n", "\n```\n")


def between(begin: str, end: str, tool: str, before: str, behind: str) -> Style:
    """Calls of one tool as a text between two marks, `begin` and `end`; a reply is between `before`
    and `behind`.

    Args:
      begin, end: marks around a call.
      tool: name of the tool.
      before, behind: texts before and after a reply.
    """

    def explain(tools):
        described = "; ".join(each.description for each in tools if each.name == tool)
        return f"What stands between {begin.strip()} and {end.strip()} goes to {tool}: {described}"

    find = _between(begin, end, lambda body: Call(tool, body))
    label = f"between({begin!r}, {end!r}, tool={tool!r}, before={before!r}, behind={behind!r})"
    return Style(find, (end,), lambda text: f"{before}{text}{behind}", "", explain, label)


def _between(begin: str, end: str, read: Callable[[str], Call]):
    def find(text):
        start = text.find(begin)
        if start < 0:
            return None
        stop = text.find(end, start + len(begin))
        if stop < 0:
            return Call("", wrong=f"{begin.strip()} is not closed by {end.strip()}"), len(text)
        return read(text[start + len(begin) : stop]), stop + len(end)

    return find


def _in_tag(name: str) -> Callable[[str], str]:
    return lambda text: f"\n<{name}>{text}</{name}>\n"
