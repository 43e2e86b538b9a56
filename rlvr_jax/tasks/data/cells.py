"""Cells: the values of a column, as the text, the messages or the answers of a prompt.

Values are those of JSON, of tables and of numpy. None, an empty text and NaN count as missing. A
value of another kind than required raises `ValueError`, whose text is the plural of its kind.
"""

import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from rlvr_jax.verifiers.maths.extract import boxes

# A number beyond it remains in its notation, such as 1e999999.
_MOST_ZEROS = 1000
_ROLES = {"human": "user", "gpt": "assistant", "bot": "assistant", "function": "tool"}
# Further fields of a message that a chat template may show.
_FURTHER = ("tool_calls", "tool_call_id", "name", "reasoning_content", "reasoning", "thinking")
_READ = (*_FURTHER, "function_call", "role", "content", "from", "value")
_MARK = "####"
_TAGGED = re.compile(r"<answer>((?:(?!<answer>).)*?)</answer>", re.IGNORECASE | re.DOTALL)


def plain(value: Any) -> Any:
    """The value as JSON: numbers of numpy and decimals become Python's, bytes become text."""
    if hasattr(value, "tolist"):  # scalars and arrays of numpy
        value = value.tolist()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def text(value: Any) -> str | None:
    """A text or a number as text; None if it is missing."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bytes):
        value = value.decode()
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, (int, float, Decimal)):
        return _number(value)
    if not isinstance(value, str):
        raise ValueError(f"{type(value).__name__}s")
    value.encode()  # half a character is not a text
    return value if value.strip() else None


def answers(value: Any) -> str | list[str] | None:
    """An answer, or several of which each is correct; None if it is missing.

    Several answers are a list, or a text that is a list of texts in JSON.
    """
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, str) and value.lstrip().startswith('["'):
        value = _parsed(value, list)
    if not isinstance(value, (list, tuple)):
        return text(value)
    found = [found_text for part in value if (found_text := text(part)) is not None]
    return found[0] if len(found) == 1 else found or None


def final_part(answer: str, mark: str | None = None) -> tuple[str | None, str]:
    r"""The answer at the end of a solution, and how it was found.

    The text after the last `####`, else in the last <answer>…</answer>, else the whole text. If
    that has a \boxed{…}, the answer is in its last one.

    Args:
      mark: text before the answer, at its last occurrence. The answer is None if it is missing.
    """
    marked = _MARK if mark is None else mark
    _, found, end = answer.rpartition(marked)
    if found:
        return end.strip(), f"after {marked}"
    if mark is not None:
        return None, ""
    tagged = [part for part in _TAGGED.findall(answer) if part.strip()]
    answer = tagged[-1] if tagged else answer
    boxed = [box for box in boxes(answer) or () if box.strip()]
    if boxed:
        return boxed[-1], "in the last box"
    return answer.strip(), "in the last <answer>" if tagged else ""


class Chat(NamedTuple):
    """Messages, split at the user's last one.

    Fields:
      before: the messages before it.
      question: its text; None if there is no message of a user.
      behind: the messages after it.
      unread: names of fields of messages that are not read.
    """

    before: list[dict[str, Any]]
    question: str | None
    behind: list[dict[str, Any]]
    unread: list[str]


def messages(value: Any) -> Chat:
    """The messages of a chat. A text is a user's message, unless it is a list of messages in JSON.

    Messages are {"role": …, "content": …} or {"from": …, "value": …}; contents are texts, or lists
    of text parts. Tool calls, names and reasoning stay in the form that chat templates read.
    """
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, str) and value.lstrip().startswith("[{"):
        value = _parsed(value, list)
    if isinstance(value, (str, bytes)) or value is None:
        return Chat([], text(value), [], [])
    if not isinstance(value, (list, tuple)) or not all(isinstance(t, Mapping) for t in value):
        raise ValueError(f"{type(value).__name__}s")
    turns = [_turn(turn) for turn in value]
    unread = sorted(
        {name for turn in value for name, content in turn.items() if name not in _READ and content}
    )
    users = [number for number, turn in enumerate(turns) if turn["role"] == "user"]
    if not users:
        return Chat(turns, None, [], unread)
    last = users[-1]
    return Chat(turns[:last], text(turns[last]["content"]), turns[last + 1 :], unread)


def steps(value: Any) -> tuple[str, ...]:
    """The steps of a solution: a list of texts, or the lines of a text with their ends. White space
    alone is part of a step."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, (list, tuple)):
        texts = (part if isinstance(part, str) else text(part) for part in value)
        return tuple(part for part in texts if part)
    return tuple((text(value) or "").splitlines(keepends=True))


def level(value: Any) -> int | float | None:
    """The difficulty of a question: a number, or the number in a text such as "Level 5"."""
    shown = text(value)
    if shown is None:
        return None
    digits = "".join(sign if sign.isdigit() or sign == "." else " " for sign in shown).split()
    try:
        (number,) = (float(part) for part in digits)
    except ValueError:
        raise ValueError("texts without one number") from None
    return int(number) if number.is_integer() else number


def _turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    role, content = turn.get("role", turn.get("from")), turn.get("content", turn.get("value"))
    if isinstance(content, (list, tuple)):
        parts = [part if isinstance(part, Mapping) else {"text": part} for part in content]
        if any(part.get("type", "text") != "text" for part in parts):
            raise ValueError("messages with parts that are not text")
        content = "".join(text(part.get("text")) or "" for part in parts)
    if not isinstance(role, str):
        raise ValueError("messages without a role")
    further = {name: plain(turn[name]) for name in _FURTHER if turn.get(name)}
    if isinstance(call := turn.get("function_call"), Mapping):
        further["tool_calls"] = [{"type": "function", "function": plain(call)}]
    if "tool_calls" in further:
        further["tool_calls"] = [_tool_call(call) for call in further["tool_calls"]]
    return {"role": _ROLES.get(role, role), "content": text(content) or "", **further}


def _tool_call(call: Any) -> dict[str, Any]:
    """A call with its arguments as an object; some data sets write them as JSON in a text."""
    function = call.get("function", call) if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise ValueError("messages with tool_calls without a name")
    arguments = function.get("arguments", {})
    if isinstance(arguments, str):
        arguments = _parsed(arguments, dict)
    outer = call if "function" in call else {"type": "function"}
    return {**outer, "function": {**function, "arguments": arguments}}


def _parsed(value: str, kind: type) -> Any:
    """The JSON value of a text, if it is of a kind; else the text."""
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return found if isinstance(found, kind) else value


def _number(value: int | float | Decimal) -> str:
    """Digits without an exponent, as many as in the original notation."""
    if isinstance(value, int):
        return str(value)
    number = value if isinstance(value, Decimal) else Decimal(repr(value))
    if not number.is_finite():
        raise ValueError("infinite numbers")
    return str(number) if abs(number.adjusted()) > _MOST_ZEROS else format(number, "f")
