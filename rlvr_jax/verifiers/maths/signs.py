r"""Tables of `notation`: Unicode's signs as TeX, and TeX's many commands for one thing as one."""

from __future__ import annotations

import re

__all__ = ["CHARACTERS", "REWRITES", "SIGNS", "SUPERSCRIPT"]

_NAMES = """
alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma sigma tau
upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega phi epsilon
theta mu
"""
_GREEK = dict(zip("αβγδεζηθικλμνξπρσςτυφχψωΓΔΘΛΞΠΣΥΦΨΩϕϵϑµ", _NAMES.split(), strict=True))
CHARACTERS = {
    **{letter: f"\\{name} " for letter, name in _GREEK.items()},
    **dict.fromkeys("−–—‒﹣-‐‑", "-"),
    **dict.fromkeys("×✕", r"\times "),
    **dict.fromkeys("·⋅∙", r"\cdot "),
    **dict.fromkeys("≈≃≅", r"\approx "),
    **dict.fromkeys("≤≦⩽", r"\le "),
    **dict.fromkeys("≥≧⩾", r"\ge "),
    **{sign: f"_{{{index}}}" for index, sign in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    **{sign: f"_{{{index}}}" for index, sign in zip("nijkmaxt", "ₙᵢⱼₖₘₐₓₜ", strict=True)},
    "÷": r"\div ",
    "∗": "*",
    "∞": r"\infty ",
    "∪": r"\cup ",
    "∩": r"\cap ",
    "∅": r"\emptyset ",
    "∈": r"\in ",
    "≠": r"\ne ",
    "≡": r"\equiv ",
    "±": r"\pm ",
    "∓": r"\mp ",
    "ℝ": r"\mathbb{R}",
    "ℤ": r"\mathbb{Z}",
    "ℕ": r"\mathbb{N}",
    "ℚ": r"\mathbb{Q}",
    "ℂ": r"\mathbb{C}",
    "ℓ": r"\ell ",
    "ℏ": r"\hbar ",
    "ᵀ": "^T",
    "′": "'",
    "’": "'",
    "″": "''",
    "∖": r"\setminus ",
    "∣": "|",
    "∶": ":",
    **dict.fromkeys("º˚", r"\degree "),
    "℃": r"\degree C",
    "℉": r"\degree F",
    "∠": r"\angle ",
    "△": r"\triangle ",
    "⟨": r"\langle ",
    "⟩": r"\rangle ",
    "⌊": r"\lfloor ",
    "⌋": r"\rfloor ",
    "⌈": r"\lceil ",
    "⌉": r"\rceil ",
    "∑": r"\sum ",
    "∏": r"\prod ",
    "∫": r"\int ",
    "∛": r"\sqrt[3]",
    "→": r"\to ",
    "∧": r"\land ",
    "∨": r"\lor ",
}
SUPERSCRIPT = re.compile("[⁰¹²³⁴-⁹⁺⁻ⁿⁱˣ]+")


def _compiled(*pairs: tuple[str, object]) -> list[tuple[re.Pattern[str], object]]:
    return [(re.compile(pattern), replacement) for pattern, replacement in pairs]


def _joined(match: re.Match) -> str:
    """Digits in groups of three, without what separates the groups."""
    return re.sub(r"\{,\}|\\,|'", "", match.group())


def _primed(match: re.Match) -> str:
    return "'" * match.group().count("'")


SIGNS = _compiled(
    (r"^([^$]*)(?<!\\)\$(?=\s*\.?\d)([^$]*)$", r"\1\\$\2"),  # alone, it opens no formula
    (r"\\\$(?!\s*\.?\d)|(?<!\\)\$|\\\(|\\\)|(?<!\\)\\\[|(?<!\\)\\\]", ""),
    (r"\\\$", "$"),
)

_WORD = "(?![A-Za-z])"
REWRITES = _compiled(
    (rf"\\(?:displaystyle|textstyle|scriptstyle|limits|nolimits|left|right|middle|[Bb]igg?[lrm]?)"
     rf"{_WORD}\.?", ""),
    (rf"\\(?:large|Large|LARGE|huge|Huge|small|tiny|normalsize|nobreak|strut|mathstrut|hfill|bf|rm"
     rf"|it|sf|boldmath){_WORD}", " "),
    (r"\\(?:phantom|hphantom|vphantom|tag\*?|label|hspace\*?|vspace\*?)\s*\{[^{}]*\}", " "),
    (r"(?<!\\)\\!\s*", ""),
    (r"(?<![\d.,'])[1-9]\d{0,2}(?:(?:\{,\}\d{3})+|(?:\\,\d{3})+|(?:'\d{3})+)(?![\d'])", _joined),
    (rf"(?<!\\)\\[,;: ]|(?<!\\)\\[>]|(?<!\\)~|\\(?:q?quad|(?:thin|med|thick|en)?space){_WORD}"
     r"|&nbsp;", " "),
    (rf"\\(?:dfrac|tfrac|cfrac|nicefrac|sfrac){_WORD}", r"\\frac"),
    (rf"\\[dt]binom{_WORD}", r"\\binom"),
    (rf"\\(?:lvert|rvert|vert|mid){_WORD}", "|"),
    (r"\\%", "%"),
    (r"\s+", " "),  # below, a run of them would cost its square
    (r"\\\\\s*$|\\newline\s*$", ""),
    (rf"\\text(?:degree|cent|euro|sterling|yen){_WORD}|\\(?:euro|pounds|yen|cents?){_WORD}",
     lambda match: next(sign for name, sign in _MONEY.items() if name in match.group())),
    (r"\^\s*\{?\s*\\circ\s*\}?|\^?\s*\{?\\degrees?(?![A-Za-z])\}?"
     r"|(?<=\d)\s*\^\s*(?:\{\s*o\s*\}|o(?![A-Za-z]))", "°"),
    (r"°\s*([CF])(?![A-Za-z])", r"°\1"),
    (rf"\\prime{_WORD}\s*", "'"),
    (r"\^\s*\{\s*'[' ]*\}|\^\s*'+", _primed),
    (rf"\\l?brace{_WORD}", r"\\{"),
    (rf"\\rbrace{_WORD}", r"\\}"),
    (rf"\\(?:leq|leqslant|leqq){_WORD}|<=", r"\\le "),
    (rf"\\(?:geq|geqslant|geqq){_WORD}|>=", r"\\ge "),
    (rf"\\lt{_WORD}", "<"),
    (rf"\\gt{_WORD}", ">"),
    (rf"\\langle{_WORD}", "("),
    (rf"\\rangle{_WORD}", ")"),
    (r"(?:^|(?<==))\s*<([^<>=]*,[^<>=]*)>", r"(\1)"),
    (rf"\\neq{_WORD}|\\not\s*=|(?<=\s)!=", r"\\ne "),
    (rf"\\(?:thickapprox|simeq|approxeq|doteq){_WORD}", r"\\approx "),
    (rf"\\(?:varnothing|O){_WORD}", r"\\emptyset "),
    (rf"\\infin{_WORD}", r"\\infty "),
    (rf"\\(?:rightarrow|longrightarrow){_WORD}", r"\\to "),
    (rf"\\(?:backslash|smallsetminus){_WORD}", r"\\setminus "),
    (rf"\\land{_WORD}|\\wedge{_WORD}", " and "),
    (rf"\\lor{_WORD}|\\vee{_WORD}", " or "),
    (rf"\\(?:ast|star){_WORD}", "*"),
    (rf"\\(?:cdotp|centerdot|bullet){_WORD}", r"\\cdot "),
    (rf"\\(?:ldots|cdots|dots|dotsc|dotsb|hdots){_WORD}|\.\.\.+", r"\\dots "),
    (rf"\\var(epsilon|phi|theta|rho|sigma|pi){_WORD}", r"\\\1"),
    (rf"\\(?:micro){_WORD}", r"\\mu "),
    (rf"\\(?:ohm){_WORD}", r"\\Omega "),
    (r"\\(?:Bbb|mathbb)\s*(?:\{\s*([A-Z])\s*\}|([A-Z]))", r"\\mathbb{\1\2}"),
    (rf"\\(?:R|reals|Reals){_WORD}", r"\\mathbb{R}"),
    (rf"\\([ZNQC]){_WORD}|(?<=\\in)\s*([RZNQC]){_WORD}", r"\\mathbb{\1\2}"),
    (r"\^\s*(?:\\top|\\intercal|\{\s*(?:\\top|\\intercal|T)\s*\})(?![A-Za-z])", "^T"),
    (r"\(\s*\\?(?:p|b)?mod(?:ulo)?\s*\{?\s*(\w+)\s*\}?\s*\)|\\p?mod\s*(?:\{\s*(\w+)\s*\}|(\d+))"
     r"|\bmod(?:ulo)?\s+(\d+)$", r" \\mod{\1\2\3\4}"),
    (r"\*\*", "^"),
    (r"\+/?-", r"\\pm "),
    (r"\s+\^", "^"),
    (r"(?<![A-Za-z\\])pi(?![A-Za-z])", r"\\pi "),
    (r"(?<![A-Za-z\\])sqrt\s*(?=\()", r"\\sqrt"),
)  # fmt: skip
_MONEY = {"degree": "°", "cent": "¢", "euro": "€", "sterling": "£", "pounds": "£", "yen": "¥"}
