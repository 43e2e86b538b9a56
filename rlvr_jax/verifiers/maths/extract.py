r"""Finds the final answer of a response. Never raises on text.

The answer is in \boxed{…} after the thinking; without a box, the options decide. A response may
have several boxes and spellings. `spellings` returns all of them, and each must be correct.
`final_answer` returns the last one if all are equal without a worker. Patterns are linear in the
text.
"""

import re
from typing import Literal, get_args

from rlvr_jax.verifiers.maths.comparison import Rules
from rlvr_jax.verifiers.maths.notation import MAX_CHARACTERS, normalise
from rlvr_jax.verifiers.maths.parsing import parse_answer
from rlvr_jax.verifiers.maths.prose import option_letters
from rlvr_jax.verifiers.nesting import closing

Boxes = Literal["each", "joined", "last"]
BOXES = get_args(Boxes)

_MAX_SPELLINGS = 4  # a response with more has not decided, and each costs a comparison
_MAX_JOINED = 16
_DIGITS = r"(?:\d[\d,]*(?:\.\d+)?|\.\d+)"
_SIGN = r"[-−–‐‑]?"  # all that `normalise` reads as minus, except the long dash
_BOX = re.compile(
    r"\\(?:boxed|fbox|framebox(?:\s*\[[^]\n]{0,40}\]){0,2})(?:\s*(?P<brace>\{)"
    rf"|\s*(?P<bare>{_SIGN}(?:{_DIGITS}|(?P<command>\\(?:[dt]?frac|sqrt|pi|text(?:bf|rm)?|mathrm)"
    r"(?![A-Za-z])))))"
)
# After a number or a command without braces: more would belong to the answer.
_MORE = re.compile(r"[\w{/^_!(]|\s*\\[A-Za-z]")
_ARGUMENTS = {"frac": 2, "dfrac": 2, "tfrac": 2, "pi": 0}
_PHRASE = re.compile(
    r"(?i:\b(?:answer|option|choice)s?\b(?:\s+(?:is|are))?)\s*+[:：]?\s*+\**+\s*+"
    r"(?:\(([A-Za-z])\)|([A-HJ-Z](?:\s*(?:,|and)?\s*[A-Z])*)(?![\w']))"
)
_LINE = re.compile(
    r"^[^\w\n]*(?:(?:so|thus|hence|therefore),?\s+)?(?:the\s+)?(?:final\s+|correct\s+)?answer"
    r"(?:[\s*]+is(?![A-Za-z])[\s*]*[:=：]?|[\s*]*+[:=：])[ \t*]*+(\n\s*+[^\n]*|[^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_FORMULA = re.compile(r"(?<![\\$])\$([^$\n]{1,400})\$(?!\$)|\\\(([^\n]{1,400}?)\\\)")
_SPECIAL = re.compile(r"<\|[\w/]{1,40}\|>|</s>|<eos>|<end_of_turn>|</answer>")
_SENTENCE = re.compile(r"[.*]+(?:\s+(?=[A-Z])|$)")
_FRACTION = r"\\[dt]?frac\s*(?:\{\s*-?\d+\s*\}\s*\{\s*-?\d+\s*\}|\d\s*\d)"
_NUMBER = re.compile(
    rf"(?:(?<![\w.]){_SIGN}(?:\d++\s*+)?)?{_FRACTION}|(?<![\w.]){_SIGN}{_DIGITS}(?:/\d+)?"
)


def boxes(text: str) -> list[str] | None:
    r"""Returns the contents of all outer \boxed{…}, \fbox{…}, \framebox{…}; None if one is open.

    A number or a command with its arguments may do without braces: \boxed 5, \boxed\frac12.
    """
    found, position = [], 0
    while match := _BOX.search(text, position):
        position = match.end()
        if match["bare"]:
            end = position
            if match["command"]:
                end = _after_arguments(text, position, match["command"][1:])
            if end < 0 or _MORE.match(text, end):
                continue
            found.append(text[match.start("bare") : end].rstrip(","))
            position = end
            continue
        end = closing(text, match.end() - 1)
        if end < 0:
            return None
        found.append(text[match.end() : end].strip())
        position = end + 1
    return found


def _after_arguments(text: str, position: int, command: str) -> int:
    """The end of the arguments of a command; -1 if one of them is not closed."""
    for _ in range(_ARGUMENTS.get(command, 1)):
        argument = re.compile(r"\s*(\{|\w|\\[A-Za-z]+)").match(text, position)
        if argument is None:
            return -1
        position = argument.end()
        if argument[1] == "{":
            position = closing(text, argument.end() - 1) + 1
            if not position:
                return -1
    return position


def spellings(
    response: str,
    *,
    boxes: Boxes = "each",
    choice: bool = False,
    answer_line: bool = False,
    last_number: bool = False,
    require_think: bool = False,
) -> list[str]:
    """Returns the answer of a response, each spelling once; empty if it has none.

    Reads the text after the last </think>. There is no answer if the thinking does not end or a box
    is not closed. Empty boxes only repeat the instruction. Without a box, the options decide.

    Args:
      response: text of the response.
      boxes: how several boxes count. "each": each must be correct. "last": only the last one.
        "joined": they are one list, unless each by itself is correct.
      choice: take the letters of the last phrase like "the answer is (A)", also after boxes that
        hold no letters.
      answer_line: take the rest of the last line that starts with "Answer:" (the next line if it is
        empty), or of the last sentence like "the answer is 5". Without one, take the only formula
        of the last line.
      last_number: take the last number; any text with a number then has an answer.
      require_think: a response without </think> has no answer.
    """
    _, think, answer = response.rpartition("</think>")
    if (require_think and not think) or "<think>" in answer:
        return []
    found = _all_boxes(answer)
    if found is None:
        return []
    pairs = [(box if len(box) > MAX_CHARACTERS else normalise(box), box) for box in found]
    pairs = [(spelling, box) for spelling, box in pairs if spelling]
    plain = dict(pairs)
    phrases = _PHRASE.findall(answer) if choice else []
    letters = option_letters("".join(phrases[-1])) if phrases else ""
    if plain and boxes == "last":
        return [pairs[-1][1]]
    if plain and not (letters and not any(map(option_letters, plain))):
        most = _MAX_JOINED if boxes == "joined" else _MAX_SPELLINGS
        return list(plain.values()) if len(plain) <= most else []
    if letters:
        return [letters]
    if answer_line and (line := _answer_line(answer)):
        return [line]
    if last_number and (numbers := _NUMBER.findall(answer)):
        return [numbers[-1].rstrip(",")]
    return []


_all_boxes = boxes


def _answer_line(answer: str) -> str:
    lines = _LINE.findall(answer)
    line = lines[-1] if lines else answer.rstrip().rpartition("\n")[2]
    line = _SPECIAL.sub("", line).strip(" \t\r\n*`")
    formulas = _FORMULA.findall(line)
    if len(formulas) == 1 and (not lines or re.search(r"\w", _FORMULA.sub("", line))):
        return "".join(formulas[0]).strip()
    return _SENTENCE.split(line, maxsplit=1)[0].strip(" *`") if lines else ""


def final_answer(response: str, **options: bool | str) -> str | None:
    """Returns the answer of a response, with the options of `spellings`; None if it has none.

    Several boxes must agree, as a response that lists two answers has not decided.
    """
    return agreed(spellings(response, **options))


def agreed(found: list[str]) -> str | None:
    """Returns the last spelling if all are equal, as far as no worker is needed."""
    if not found:
        return None
    values = [parse_answer(spelling, choice=False, grouped=True) for spelling in found]
    last = values[-1]
    same = [v and last and Rules().equal(v, last, lambda key: False) for v in values[:-1]]
    return found[-1] if all(same) else None
