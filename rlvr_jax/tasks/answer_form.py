r"""The form in which a question requests its answer: in a box, on a separate line, after a mark.

    Put the final answer within \boxed{}.                            "box"
    The last line of your response should be "Answer: $Answer"       "line": DAPO-Math
    output the final answer after "####"                             "mark": GSM8K, in verl's form

A question without such a request gets the task's instruction.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from rlvr_jax.tasks.base import Prompt

__all__ = ["BOXED", "asked_form", "instructed", "joined", "marked_line", "written"]

BOXED = "\n\nPut the final answer within \\boxed{}."

MARK = "####"
# "Answer: $Answer", "Answer: <number>", after "Answer:"; not an "Answer:" that the text continues.
_LINE = re.compile(
    r"""(?i:\banswer)\**\s*:\s*\**\s*(?:\$|<|\[|\{|\.\.\.|…|[A-Z]\b|["'`”])"""
    r"""|["'`“]\**\s*(?i:(?:the\s|final\s)*answer)(?i:\sis)?\s*:"""
)


def asked_form(prompt: Prompt) -> str:
    """The form that the prompt or a message before it requests: "box", "line", "mark" or ""."""
    text = "\n".join([*(turn["content"] for turn in prompt.messages), prompt.text])
    if "\\boxed" in text or "\\fbox" in text:
        return "box"
    if _LINE.search(text):
        return "line"
    return "mark" if MARK in text else ""


def instructed(prompt: Prompt, instruction: str) -> Prompt:
    """The prompt with the instruction; one about a box is left out if a form is requested."""
    if "\\boxed" in instruction and asked_form(prompt):
        return prompt
    return replace(prompt, text=joined(prompt.text, instruction))


def joined(question: str, instruction: str) -> str:
    """A question and an instruction, as separate paragraphs unless there is space between them."""
    parted = not instruction or instruction[0].isspace() or question[-1:].isspace()
    return question + ("" if parted else "\n\n") + instruction


def written(answer: str, form: str, behind_thinking: bool = False) -> str:
    """A response that has an answer in a form; "" is a box.

    Args:
      behind_thinking: the response must end its thinking first.
    """
    shapes = {"line": f"Answer: {answer}", "mark": f"{MARK} {answer}"}
    response = shapes.get(form, f"\\boxed{{{answer}}}")
    return f"<think>\n</think>\n\n{response}" if behind_thinking else response


def marked_line(response: str) -> str:
    """The response, followed by a line "Answer: …" with the text after its last mark."""
    _, mark, end = response.rpartition(MARK)
    line = end.lstrip(" ").partition("\n")[0]
    return f"{response}\nAnswer: {line}" if mark and line.strip() else response


def needs_lines(forms: Sequence[str]) -> bool:
    """Whether answers on lines have to be read for these forms."""
    return bool({"line", "mark"} & {*forms})
