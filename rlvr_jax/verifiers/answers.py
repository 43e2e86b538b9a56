"""The answer of a response: after the thinking, in a tag or in a fence.

If a response has several tags or fences, each function reads the last one that is closed. It
returns None if there is none. The time is linear in the length of the text.
"""

import re

# The line that opens a block holds the fence and a language; its rest is not part of the answer.
_FENCE = re.compile(r"(```|~~~)[^`\n]*\n(.*?)\1", re.DOTALL)


def after_thinking(response: str) -> str:
    """Returns the text after the last </think>; without one, the whole response."""
    return response.rpartition("</think>")[2]


def in_tag(response: str, tag: str = "answer") -> str | None:
    """Returns the text between the last </tag> and the <tag> before it, after the thinking."""
    text = after_thinking(response)
    end = text.rfind(f"</{tag}>")
    start = text.rfind(f"<{tag}>", 0, end) if end >= 0 else -1
    return text[start + len(tag) + 2 : end].strip() if start >= 0 else None


def in_fence(response: str) -> str | None:
    """Returns the content of the last fenced block (``` or ~~~), after the thinking."""
    blocks = _FENCE.findall(after_thinking(response))
    return blocks[-1][1].strip("\r\n") if blocks else None


def between(text: str, opened: str, closed: str) -> str | None:
    """Returns the text between two marks that each occur once in the text, in this order."""
    if text.count(opened) != 1 or text.count(closed) != 1:
        return None
    start, end = text.index(opened) + len(opened), text.index(closed)
    return text[start:end].strip() if start <= end else None
