"""Reflections: the report of a policy about its own episode, read from a text."""

import json
from typing import NamedTuple

__all__ = ["Reflection", "json_reflection"]


class Reflection(NamedTuple):
    """A policy's report about its episode.

    Fields:
      completed, total: numbers of sub-tasks, total at least 1.
      success: whether the policy believes that the episode succeeded.
      lesson: text for later episodes; "": none.
    """

    completed: int
    total: int
    success: bool
    lesson: str


def json_reflection(text: str) -> Reflection | None:
    """The reflection in the outermost braces of a text.

        {"subtasks": [{"name": "…", "done": true}], "success": true, "lesson": "…"}

    Returns:
      None if the text has no such object.
    """
    begin, end = text.find("{"), text.rfind("}")
    try:
        found = json.loads(text[begin : end + 1]) if begin >= 0 else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("subtasks"), list):
        return None
    done = [one.get("done") if isinstance(one, dict) else None for one in found["subtasks"]]
    success, lesson = found.get("success"), found.get("lesson", "")
    flags = [*done, success]
    if not done or not all(isinstance(flag, bool) for flag in flags) or not isinstance(lesson, str):
        return None
    return Reflection(sum(done), len(done), success, lesson.strip())
