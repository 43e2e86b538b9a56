"""From a response to the few characters that are its answer, in one notation. Never raises on text.

`final_answer` finds the answer, `normalise` writes it as plain TeX: no dollar signs, sizes, spacing
commands, text macros or Unicode operators, one name per symbol. Patterns are linear in the text.
Unicode's NFKC, a part of `normalise`, is not: `final_answer` gives it no more than MAX_CHARACTERS.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["MAX_CHARACTERS", "boxes", "final_answer", "normalise"]

MAX_CHARACTERS = 512  # of an answer; a longer one is compared as it stands, and is never right
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_PHRASE = re.compile(
    r"(?i:\b(?:answer|option|choice)\b(?:\s+is)?)\s*+:?\s*+\**+\s*+"
    r"(?:\(([A-Za-z])\)|([A-HJ-Z])(?![\w']))"
)
_LINE = re.compile(
    r"^[^\w\n]*(?:the\s+)?(?:final\s+)?answer\s*[:=](.*)$", re.IGNORECASE | re.MULTILINE
)
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:/\d+)?")


def boxes(text: str) -> list[str] | None:
    r"""Returns the contents of all outermost \boxed{…} and \fbox{…}; None if one is not closed."""
    found, position = [], 0
    while match := _BOX.search(text, position):
        end = _closing(text, match.end() - 1)
        if end < 0:
            return None
        found.append(text[match.end() : end].strip())
        position = end + 1
    return found


def final_answer(
    response: str,
    *,
    choice: bool = False,
    answer_line: bool = False,
    last_number: bool = False,
    require_think: bool = False,
) -> str | None:
    r"""Returns what a response gives as its answer, or None if it gives none.

    Looks behind the last </think> for boxes. Several boxes have to agree, as a response that lists
    two answers has not chosen; an unclosed box is no answer. Without a box the options decide.

    Args:
      choice: take the letter of the last phrase like "the answer is (A)".
      answer_line: take the rest of the last line that starts with "Answer:".
      last_number: take the last number; anything with a number in it then counts as an answer.
      require_think: a response without </think> has no answer.
    """
    _, think, answer = response.rpartition("</think>")
    if require_think and not think:
        return None
    found = boxes(answer)
    if found is None:
        return None
    if found:
        written = {box if len(box) > MAX_CHARACTERS else normalise(box) for box in set(found)}
        return found[-1] if found[-1] and len(written) == 1 else None
    if choice and (letters := _PHRASE.findall(answer)):
        return "".join(letters[-1]).upper()
    if answer_line and (lines := _LINE.findall(answer)):
        return lines[-1].strip() or None
    if last_number and (numbers := _NUMBER.findall(answer)):
        return numbers[-1].rstrip(",")
    return None


def normalise(text: str) -> str:
    r"""Writes an answer as plain TeX: ½ → 1/2, x² → x^{2}, \dfrac12 → \frac{1}{2}, \left( → (."""
    text = "".join(_CHARACTERS.get(c) or _fraction(c) for c in text)
    text = _SUPERSCRIPT.sub(_raised, text)
    text = unicodedata.normalize("NFKC", text.replace("°", r"\degree ")).replace("⁄", "/")
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    text = _arguments(text)
    text = " ".join(text.split()).strip()
    return re.match(r"(?:.*(?:\\[.,;:]|[^\s.,;:]))?", text).group()


def _closing(text: str, opening: int) -> int:
    """Returns the place of the brace that closes the one at `opening`, -1 without."""
    depth = 0
    for match in _BRACE.finditer(text, opening):  # \{ and \} are characters
        depth += {"{": 1, "}": -1}.get(match.group(), 0)
        if not depth:
            return match.start()
    return -1


def _fraction(character: str) -> str:
    """½ → ' 1/2', the space for mixed numbers."""
    kind, *parts = unicodedata.decomposition(character).split() or [""]
    if kind != "<fraction>":
        return character
    return " " + "".join(chr(int(part, 16)) for part in parts).replace("⁄", "/")


def _raised(match: re.Match) -> str:
    return "^{" + unicodedata.normalize("NFKC", match.group()).replace("−", "-") + "}"


def _arguments(text: str) -> str:
    r"""Puts braces around the arguments of \frac and \sqrt: \frac12 → \frac{1}{2}."""
    text = re.sub(r"\\sqrt\s*([0-9A-Za-z])", r"\\sqrt{\1}", text)
    text = re.sub(r"\\sqrt\s*(\\[A-Za-z]+)", r"\\sqrt{\1}", text)
    text = re.sub(r"√\s*\(([^()]*)\)", r"\\sqrt{\1}", text)
    text = re.sub(r"√\s*(\d+|[A-Za-z])", r"\\sqrt{\1}", text)
    text = re.sub(r"\\frac\s*([0-9A-Za-z])\s*([0-9A-Za-z])", r"\\frac{\1}{\2}", text)
    text = re.sub(r"\\frac\s*([0-9A-Za-z])\s*\{", r"\\frac{\1}{", text)
    return re.sub(r"\\frac\s*(\{[^{}]*\})\s*([0-9A-Za-z])", r"\\frac\1{\2}", text)


_CHARACTERS = {
    **dict.fromkeys("−–—‒﹣-", "-"),
    **dict.fromkeys("×✕", r"\times "),
    **dict.fromkeys("·⋅∙", r"\cdot "),
    "÷": r"\div ",
    "∗": "*",
    "π": r"\pi ",
    "θ": r"\theta ",
    "∞": r"\infty ",
    "∪": r"\cup ",
    "∩": r"\cap ",
    "∅": r"\emptyset ",
    "∈": r"\in ",
    "≤": r"\le ",
    "≥": r"\ge ",
    "≠": r"\ne ",
    "±": r"\pm ",
    "ℝ": r"\mathbb{R}",
    "ᵀ": "^T",
    "′": "'",
}
_SUPERSCRIPT = re.compile("[⁰¹²³⁴-⁹⁺⁻ⁿ]+")
_REWRITES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in [
        (r"\\\$|\$|\\\(|\\\)|(?<!\\)\\\[|(?<!\\)\\\]", ""),
        (r"\\(?:displaystyle|textstyle|limits|left|right|[Bb]igg?[lr]?)(?![A-Za-z])\.?", ""),
        (r"(?<!\\)\\!|\{,\}|(?<=\d)\\,(?=\d{3})", ""),
        (r"(?<!\\)\\[,;: ]|(?<!\\)~|\\q?quad(?![A-Za-z])|&nbsp;", " "),
        (r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mbox|operatorname)\s*\{([^{}]*)\}",
         r" \1 "),
        (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
        (r"\\%", "%"),
        (r"\s+", " "),  # below, a run of them would cost its square
        (r"\^\s*\{?\s*\\circ\s*\}?|\^?\s*\{?\\degrees?(?![A-Za-z])\}?", "°"),
        (r"\\l?brace(?![A-Za-z])", r"\\{"),
        (r"\\rbrace(?![A-Za-z])", r"\\}"),
        (r"\\(?:leq|leqslant)(?![A-Za-z])|<=", r"\\le "),
        (r"\\(?:geq|geqslant)(?![A-Za-z])|>=", r"\\ge "),
        (r"\\lt(?![A-Za-z])", "<"),
        (r"\\gt(?![A-Za-z])", ">"),
        (r"\\neq(?![A-Za-z])", r"\\ne "),
        (r"\\varnothing(?![A-Za-z])", r"\\emptyset "),
        (r"\\infin(?![A-Za-z])", r"\\infty "),
        (r"\^\s*(?:\\top|\\intercal|\{\s*(?:\\top|\\intercal|T)\s*\})(?![A-Za-z])", "^T"),
        (r"\*\*", "^"),
        (r"\s+\^", "^"),
    ]
]  # fmt: skip
