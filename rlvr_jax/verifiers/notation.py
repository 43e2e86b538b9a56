r"""One notation for answers: plain TeX. Never raises on text.

`normalise` removes sizes, spacing commands, text macros and Unicode operators, and leaves one name
per symbol. Dollar signs of formulas go; one before a number stays as the currency it is. Patterns
are linear in the text; Unicode's NFKC is not, so callers give it no more than MAX_CHARACTERS.
"""

from __future__ import annotations

import re
import unicodedata

from rlvr_jax.verifiers.nesting import closing

__all__ = ["MAX_CHARACTERS", "compact", "normalise"]

MAX_CHARACTERS = 512  # of an answer; a longer one is compared as it stands, and is never right


def normalise(text: str) -> str:
    r"""Writes an answer as plain TeX: ½ → 1/2, x² → x^{2}, \dfrac12 → \frac{1}{2}, \left( → (."""
    text = "".join(_CHARACTERS.get(c) or _fraction(c) for c in text)
    text = _SUPERSCRIPT.sub(_raised, text)
    text = unicodedata.normalize("NFKC", text.replace("°", r"\degree ")).replace("⁄", "/")
    for pattern, replacement in _SIGNS:
        text = pattern.sub(replacement, text)
    text = _unboxed(text)
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    text = _scripts(_arguments(text))
    text = " ".join(text.split()).strip()
    return re.match(r"(?:.*(?:\\[.,;:]|[^\s.,;:]))?", text).group()


def compact(text: str) -> str:
    """Removes the spaces that TeX does not need behind a command, and signs of currency."""
    text = text.replace("$", "")
    return re.sub(r"(\\[A-Za-z]+)\s+(?=[A-Za-z])|\s+", lambda m: f"{m[1]} " if m[1] else "", text)


def _fraction(character: str) -> str:
    """½ → ' 1/2', the space for mixed numbers."""
    kind, *parts = unicodedata.decomposition(character).split() or [""]
    if kind != "<fraction>":
        return character
    return " " + "".join(chr(int(part, 16)) for part in parts).replace("⁄", "/")


def _raised(match: re.Match) -> str:
    return "^{" + unicodedata.normalize("NFKC", match.group()).replace("−", "-") + "}"


def _unboxed(text: str) -> str:
    r"""Writes \boxed{5} as 5 and 19 \boxed{18} as 19 (18): nothing is dropped."""
    while (box := _BOX.search(text)) and (end := closing(text, box.end())) >= 0:
        inside = text[box.end() + 1 : end]
        alone = not (text[: box.start()] + text[end + 1 :]).strip(" \n.")
        text = inside if alone else f"{text[: box.start()]}({inside}){text[end + 1 :]}"
    return text


def _arguments(text: str) -> str:
    r"""Puts braces around the arguments of \frac and \sqrt: \frac12 → \frac{1}{2}."""
    text = re.sub(r"\\sqrt\s*([0-9A-Za-z])", r"\\sqrt{\1}", text)
    text = re.sub(r"\\sqrt\s*(\\[A-Za-z]+)", r"\\sqrt{\1}", text)
    text = re.sub(r"√\s*\(([^()]*)\)", r"\\sqrt{\1}", text)
    text = re.sub(r"√\s*(\d+|[A-Za-z])", r"\\sqrt{\1}", text)
    text = re.sub(r"\\frac\s*([0-9A-Za-z])\s*([0-9A-Za-z])", r"\\frac{\1}{\2}", text)
    text = re.sub(r"\\frac\s*([0-9A-Za-z])\s*\{", r"\\frac{\1}{", text)
    return re.sub(r"\\frac\s*(\{[^{}]*\})\s*([0-9A-Za-z])", r"\\frac\1{\2}", text)


def _scripts(text: str) -> str:
    r"""Puts braces around scripts of one character: x_1 → x_{1}; \log_28 has one as well."""
    text = re.sub(r"\\log\s*_\s*([0-9A-Za-z])", r"\\log_{\1}", text)
    text = re.sub(r"(?<!\\)_\s*([0-9A-Za-z])(?![0-9A-Za-z])", r"_{\1}", text)
    return re.sub(r"\^(\d)(?![0-9A-Za-z])", r"^{\1}", text)


_BOX = re.compile(r"\\(?:boxed|fbox)\s*(?=\{)")
_CHARACTERS = {
    **dict.fromkeys("−–—‒﹣-‐‑", "-"),
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
    "≈": r"\approx ",
    "≤": r"\le ",
    "≥": r"\ge ",
    "≠": r"\ne ",
    "±": r"\pm ",
    "ℝ": r"\mathbb{R}",
    "ᵀ": "^T",
    "′": "'",
}
_SUPERSCRIPT = re.compile("[⁰¹²³⁴-⁹⁺⁻ⁿ]+")
_SIGNS = [
    (re.compile(pattern), replacement)
    for pattern, replacement in [
        (r"^([^$]*)(?<!\\)\$(?=\s*\.?\d)([^$]*)$", r"\1\\$\2"),  # alone, it opens no formula
        (r"\\\$(?!\s*\.?\d)|(?<!\\)\$|\\\(|\\\)|(?<!\\)\\\[|(?<!\\)\\\]", ""),
        (r"\\\$", "$"),
    ]
]
_REWRITES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in [
        (r"\\(?:displaystyle|textstyle|limits|left|right|[Bb]igg?[lr]?)(?![A-Za-z])\.?", ""),
        (r"(?<!\\)\\!|\{,\}|(?<=\d)\\,(?=\d{3})", ""),
        (r"(?<!\\)\\[,;: ]|(?<!\\)~|\\q?quad(?![A-Za-z])|&nbsp;", " "),
        (r"\\(?:text(?:bf|it|rm|normal|sf|tt|up)?|math(?:bf|it|rm)|mbox|operatorname)"
         r"\s*\{([^{}]*)\}", r" \1 "),
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
        (r"\\neq(?![A-Za-z])|\\not\s*=|(?<=\s)!=", r"\\ne "),
        (r"\\varnothing(?![A-Za-z])", r"\\emptyset "),
        (r"\\infin(?![A-Za-z])", r"\\infty "),
        (r"\^\s*(?:\\top|\\intercal|\{\s*(?:\\top|\\intercal|T)\s*\})(?![A-Za-z])", "^T"),
        (r"\*\*", "^"),
        (r"\s+\^", "^"),
    ]
]  # fmt: skip
