r"""One notation for answers: plain TeX. Never raises on text.

`normalise` removes sizes, spacing commands, text macros, decoration and Unicode operators, and uses
one name per symbol (`signs` holds the tables). Dollar signs of formulas are removed; a dollar sign
before a number remains as the currency. Patterns are linear in the text. Unicode's NFKC is not
linear, so callers pass at most MAX_CHARACTERS.
"""

import functools
import re
import unicodedata

from rlvr_jax.verifiers.maths.formulas.names import ACCENTS, PREFIXES, TOTALS
from rlvr_jax.verifiers.maths.signs import CHARACTERS, REWRITES, SIGNS, SUPERSCRIPT
from rlvr_jax.verifiers.nesting import closing

MAX_CHARACTERS = 512  # of an answer; a longer one is compared as text, and is never correct


@functools.lru_cache(maxsize=16384)
def normalise(text: str) -> str:
    r"""Writes an answer as plain TeX: ½ → 1/2, x² → x^{2}, \dfrac12 → \frac{1}{2}, \left( → (."""
    if _PLAIN.fullmatch(text):
        return text
    if not text.isascii():
        text = _REPEATED.sub(r"\\overline{\1}", text)  # NFKC would move the mark
        text = "".join(CHARACTERS.get(c) or _fraction(c) for c in text)
        text = SUPERSCRIPT.sub(_raised, text)
        text = unicodedata.normalize("NFKC", text.replace("°", r"\degree ")).replace("⁄", "/")
    text = _plain(_stripped(text))
    if "\\begin" not in text:
        text = re.sub(r"\\\\(?=[A-Za-z]{2})", r"\\", text)  # escaped twice
    for pattern, replacement in SIGNS:
        text = pattern.sub(replacement, text)
    text = _unboxed(text)
    text = _undecorated(text)
    for pattern, replacement in REWRITES:
        text = pattern.sub(replacement, text)
    text = _selections(_scripts(_arguments(text)))
    text = " ".join(text.split()).strip()
    text = re.match(r"(?:.*(?:\\[.,;:]|[^\s.,;:]))?", text).group()
    return _turned(_INTRODUCTION.sub("", text))


def _turned(text: str) -> str:
    """Writes ]0,1[ as (0,1), if the whole text is such intervals and signs that join them."""
    if not _TURNED.search(text) or not re.fullmatch(rf"(?:[^][]*?{_FRENCH.pattern})+[^][]*", text):
        return text
    return _FRENCH.sub(lambda m: f"{'[('[m[1] == ']']}{m[2]}{'])'[m[3] == '[']}", text)


_FRENCH = re.compile(r"([][])([^][,;]*[,;][^][,;]*)([][])")
_TURNED = re.compile(r"\][^][]*[,;]|[,;][^][]*\[")
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
_REPEATED = re.compile("(\\d)[̅̄]")
_INTRODUCTION = re.compile(
    r"^(?:(?:so|thus|hence|therefore)\b,?\s*)?(?:the\s+)?(?:final\s+|correct\s+)?"
    r"(?:answer|ans\.?|result|value|solution)\s*"
    r"(?:(?<=\s)(?:is|equals)\b\s*:?|:|(?:(?<=answer)|(?<=answer\s))=)\s*(?=\S)",
    re.IGNORECASE,
)


def _fraction(character: str) -> str:
    """½ → ' 1/2', the space for mixed numbers."""
    kind, *parts = unicodedata.decomposition(character).split() or [""]
    if kind != "<fraction>":
        return character
    return " " + "".join(chr(int(part, 16)) for part in parts).replace("⁄", "/")


def _raised(match: re.Match) -> str:
    return "^{" + unicodedata.normalize("NFKC", match.group()).replace("−", "-") + "}"


def _stripped(text: str) -> str:
    r"""Removes white space at the ends; of a TeX space, "\ ", a backslash would remain."""
    text = text.strip()
    while (len(text) - len(text.rstrip("\\"))) % 2:
        text = text[:-1].rstrip()
    return text


def _plain(text: str) -> str:
    """Removes Markdown emphasis and the tag of an answer around the whole text: **5**, `5`, "5"."""
    for mark in ("<answer>", "**", "__", "`", '"', "*", "“", "'"):
        end = {"“": "”", "<answer>": "</answer>"}.get(mark, mark)
        inside = text[len(mark) : -len(end)]
        if text.startswith(mark) and text.endswith(end) and inside and mark not in inside:
            text = inside.strip()
    return text


def _unboxed(text: str) -> str:
    r"""Writes \boxed{5} as 5 and 19 \boxed{18} as 19 (18): nothing is dropped."""
    while (box := _BOX.search(text)) and (end := closing(text, box.end())) >= 0:
        inside = text[box.end() + 1 : end]
        alone = not (text[: box.start()] + text[end + 1 :]).strip(" \n.")
        text = inside if alone else f"{text[: box.start()]}({inside}){text[end + 1 :]}"
    return text


_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s*(?=\{)")
# Commands for the look of their last argument, and the number of arguments before it.
_LOOK = re.compile(
    r"\\(?:(?P<text>text(?:bf|it|rm|normal|sf|tt|up|md|sc)?|math(?:bf|it|rm|sf|tt|normal)|mbox|hbox"
    r"|operatorname\*?|emph|boldsymbol|pmb|bm|rm|bf)|(?P<none>underline|uline|ensuremath)"
    r"|(?P<one>textcolor|colorbox|color|bbox|raisebox))(?![A-Za-z])\s*(?:\[[^][]*\]\s*)?(?=\{)"
)


_UNIT_VECTOR = r"\s*[ijk]\s*"
_BARE_LETTER = re.compile(
    r"(\\(?:math(?:bf|it|rm|sf|tt|normal)|boldsymbol|pmb|bm))(?:\s+([A-Za-z])|\s*(\\[A-Za-z]+))"
)


def _undecorated(text: str) -> str:
    r"""Leaves the content of \text{…}, \mathbf{…}, \underline{…}, \textcolor{red}{…}, …"""
    text = _BARE_LETTER.sub(r"\1{\2\3}", text)
    pieces, position = [], 0
    while match := _LOOK.search(text, position):
        opening = match.end()
        pieces.append(text[position : match.start()])
        end = closing(text, opening)
        if end < 0:
            pieces.append(match.group())
            position = opening
            continue
        if match["one"]:
            after = re.compile(r"\s*").match(text, end + 1).end()
            opening, end = (
                (after, closing(text, after)) if text[after : after + 1] == "{" else (end, end)
            )
            if end < opening:
                position = after
                continue
        inside = text[opening + 1 : end]
        if match["text"] and re.fullmatch(_UNIT_VECTOR, inside) and "b" in match["text"][-3:]:
            inside = f"\\hat{{{inside.strip()[-1]}}}"  # \mathbf{i}
        elif match["text"]:
            inside = f" {inside} "
        # The content is looked at as well: it follows.
        text, position = inside + text[end + 1 :], 0
    return "".join([*pieces, text[position:]])


def _arguments(text: str) -> str:
    r"""Puts braces around the arguments of \frac and \sqrt: \frac12 → \frac{1}{2}."""
    if "\\" not in text and "√" not in text:
        return text
    text = re.sub(r"\\sqrt\s*([0-9A-Za-z])", r"\\sqrt{\1}", text)
    text = re.sub(r"\\sqrt\s*(\\[A-Za-z]+)", r"\\sqrt{\1}", text)
    text = re.sub(r"(?:√|\\sqrt)\s*\(([^()]*)\)", r"\\sqrt{\1}", text)
    text = re.sub(r"√\s*(\d+(?:\.\d+)?|[A-Za-z])", r"\\sqrt{\1}", text)
    text = re.sub(r"√\s*(\{)", r"\\sqrt\1", text)
    text = re.sub(r"\\(frac|binom)\s*([0-9A-Za-z])\s*([0-9A-Za-z])", r"\\\1{\2}{\3}", text)
    text = re.sub(r"\\(frac|binom)\s*([0-9A-Za-z])\s*(\\[A-Za-z]+)", r"\\\1{\2}{\3}", text)
    text = re.sub(r"\\(frac|binom)\s*([0-9A-Za-z])\s*\{", r"\\\1{\2}{", text)
    text = re.sub(r"\\(frac|binom)\s*(\\[A-Za-z]+)\s*([0-9A-Za-z])", r"\\\1{\2}{\3}", text)
    text = re.sub(r"\\(overline|bar)\s*(\d)(?!\d)", r"\\\1{\2}", text)
    text = _FIGURE.sub(r"\\\1 \2", _ACCENT.sub(r"\\\1{\2\3\4}", text))
    position = 0
    while match := _SECOND.search(text, position):
        position = match.end()
        end = closing(text, position - 1)
        if end >= 0 and (bare := re.compile(r"\s*([0-9A-Za-z]|\\[A-Za-z]+)").match(text, end + 1)):
            text = f"{text[: end + 1]}{{{bare[1]}}}{text[bare.end() :]}"
    return text


_SECOND = re.compile(r"\\(?:frac|binom)\s*\{")
_ACCENT = re.compile(
    rf"\\({'|'.join(sorted(ACCENTS, key=len, reverse=True))})"
    r"(?:\s+([A-Za-z])|\s*(\\[A-Za-z]+)|\s*\{\s*(\\?[A-Za-z]+)\s*\})"
)
_FIGURE = re.compile(rf"\\({'|'.join(PREFIXES)})\s*\{{\s*([^{{}}]*)\s*\}}")


def _scripts(text: str) -> str:
    r"""Puts braces around scripts of one character, also in \log_28 and a_na_k: x_1 → x_{1}."""
    text = re.sub(r"\\log\s*_\s*([0-9A-Za-z])", r"\\log_{\1}", text)
    text = re.sub(r"(?<!\\)_\s*([0-9A-Za-z])(?:(?![0-9A-Za-z])|(?=[A-Za-z]_))", r"_{\1}", text)
    return re.sub(r"\^\s*(\d)(?![0-9A-Za-z.])", r"^{\1}", text)


_PART = r"(?:\{\s*(\w+)\s*\}|(\d+|[A-Za-z]))"
_COUNT = r"(?:\{\s*(\d+)\s*\}|(\d))"
# A script on a base, as in x_6C_2, belongs to the base.
_BASELESS = r"(?:\{\s*\}\s*|(?:^|(?<=[-+*/=(,\[{])|(?<=\\cdot)|(?<=\\times))\s*)"
_SINGLE = r"(?<![A-Za-z\\_^])"
_SELECTED = re.compile(
    rf"(?:{_BASELESS}[_^]\s*{_PART}|\{{\s*[_^]\s*{_PART}\s*\}})\s*([CP])\s*_\s*{_PART}"
)
_BELOW = re.compile(
    rf"{_SINGLE}([CPA])\s*(?:_\s*{_COUNT}\s*\^\s*{_COUNT}|\^\s*{_COUNT}\s*_\s*{_COUNT})(?!\w)"
)
_CHOOSE = re.compile(r"(?<!\w)(\w+)\s+choose\s+(\w+)(?!\w)")


def _selections(text: str) -> str:
    r"""Writes {}^6C_2, _6P_2, C_6^2 and 6 choose 2 as \binom{n}{k} or a quotient of factorials.

    A selection takes at most as many as there are, so C_1^2 remains a square. `formulas.symbols`
    reads C(6,2).
    """
    if not re.search(r"[CPA]|choose", text):
        return text
    text = _SELECTED.sub(_sided, text)
    text = _BELOW.sub(_scripted, text)
    return _CHOOSE.sub(lambda match: _selection(match[0], "C", *match.groups()), text)


def _sided(match: re.Match) -> str:
    total, kind, taken = filter(None, match.groups())
    return _selection(match[0], kind, total, taken)


def _scripted(match: re.Match) -> str:
    """C_6^2, in either order of the scripts: the lower one is the larger one."""
    kind, *counts = filter(None, match.groups())
    below, above = counts if match[0][1:].strip()[0] == "_" else counts[::-1]
    return match[0] if below == above else _selection(match[0], kind, below, above)


def _selection(text: str, kind: str, total: str, taken: str) -> str:
    if total.isdigit() and taken.isdigit():
        known = int(total) >= int(taken)
    else:
        known = total.isdigit() or total in TOTALS
    if not known:
        return text
    if kind == "C":
        return rf"\binom{{{total}}}{{{taken}}}"
    return rf"\frac{{{total}!}}{{({total}-{taken})!}}"
