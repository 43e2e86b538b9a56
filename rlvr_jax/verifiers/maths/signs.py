r"""Tables of `notation`: Unicode's signs as TeX, and TeX's many commands for one thing as one."""

import re

# Signs and their commands, in one order.
_SIGNS = "αβγδεζηθικλμνξπρσςτυφχψωΓΔΘΛΞΠΣΥΦΨΩϕϵϑµ÷∞∪∩∅∈≠≡±∓ℓℏ∖∘∠△⟨⟩⌊⌋⌈⌉∑∏∫→∧∨"
_COMMANDS = """
alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma sigma tau
upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega phi epsilon
theta mu
div infty cup cap emptyset in ne equiv pm mp ell hbar setminus circ angle triangle langle rangle
lfloor rfloor lceil rceil sum prod int to land lor
"""
_BELOW = "₀₁₂₃₄₅₆₇₈₉ₙᵢⱼₖₘₐₓₜ"
CHARACTERS = {
    **{sign: f"\\{name} " for sign, name in zip(_SIGNS, _COMMANDS.split(), strict=True)},
    **{sign: rf"\mathbb{{{letter}}}" for sign, letter in zip("ℝℤℕℚℂ", "RZNQC", strict=True)},
    **{sign: f"_{{{index}}}" for sign, index in zip(_BELOW, "0123456789nijkmaxt", strict=True)},
    **dict.fromkeys("−–—‒﹣-‐‑", "-"),
    **dict.fromkeys("×✕", r"\times "),
    **dict.fromkeys("·⋅∙", r"\cdot "),
    **dict.fromkeys("≈≃≅", r"\approx "),
    **dict.fromkeys("≤≦⩽", r"\le "),
    **dict.fromkeys("≥≧⩾", r"\ge "),
    **dict.fromkeys("º˚", r"\degree "),
    **dict.fromkeys("′’", "'"),
    "″": "''",
    "∗": "*",
    "ᵀ": "^T",
    "∣": "|",
    "∶": ":",
    "℃": r"\degree C",
    "℉": r"\degree F",
    "∛": r"\sqrt[3]",
}
SUPERSCRIPT = re.compile("[⁰¹²³⁴-⁹⁺⁻ⁿⁱˣ]+")


def _compiled(*pairs: tuple[str, object]) -> list[tuple[re.Pattern[str], object]]:
    return [(re.compile(pattern), replacement) for pattern, replacement in pairs]


def _vector(match: re.Match) -> str:
    """<a, b> as (a, b), where nothing or a sign of equality is before it."""
    before = match.string[: match.start()].rstrip()
    return match[0] if before and before[-1] != "=" else f"({match[1]})"


# A line: the one name, and the commands that mean it.
_SYNONYMS = r"""
\frac dfrac tfrac cfrac nicefrac sfrac
\binom dbinom tbinom
| lvert rvert vert mid
\{ lbrace brace
\} rbrace
\le leq leqslant leqq
\ge geq geqslant geqq
< lt
> gt
( langle
) rangle
\ne neq
\approx thickapprox simeq approxeq doteq
\emptyset varnothing O
\infty infin
\to rightarrow longrightarrow
\setminus backslash smallsetminus
and land wedge
or lor vee
* ast star
\cdot cdotp centerdot bullet
\dots ldots cdots dots dotsc dotsb hdots
\epsilon varepsilon
\phi varphi
\theta vartheta
\rho varrho
\sigma varsigma
\pi varpi
\mu micro
\Omega ohm
\mathbb{R} R reals Reals
\mathbb{Z} Z
\mathbb{N} N
\mathbb{Q} Q
\mathbb{C} C
"""


def _spaced(one: str) -> str:
    """A name that letters may follow ends with a space, and a word begins with one."""
    if one.isalpha():
        return f" {one} "
    return f"{one} " if one[-1].isalpha() and one not in ("\\frac", "\\binom") else one


_NAMES_OF_ONE = {
    name: _spaced(one)
    for one, *names in map(str.split, filter(None, _SYNONYMS.splitlines()))
    for name in names
}
SIGNS = _compiled(
    (r"^([^$]*)(?<!\\)\$(?=\s*\.?\d)([^$]*)$", r"\1\\$\2"),  # a single one opens no formula
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
    (r"(?<![\d.,'])[1-9]\d{0,2}(?:(?:\{,\}\d{3})+|(?:\\,\d{3})+|(?:'\d{3})+)(?![\d'])",
     lambda match: re.sub(r"\{,\}|\\,|'", "", match.group())),  # between groups of three
    (rf"(?<!\\)\\[,;: ]|(?<!\\)\\[>]|(?<!\\)~|\\(?:q?quad|(?:thin|med|thick|en)?space){_WORD}"
     r"|&nbsp;", " "),
    (r"\\([A-Za-z]+)", lambda match: _NAMES_OF_ONE.get(match[1], match[0])),
    (r"<([^<>=]*,[^<>=]*)>", _vector),
    (r"\\%", "%"),
    (r"\s+", " "),  # below, a run of them would cost its square
    (r"\\\\\s*$|\\newline\s*$", ""),
    (rf"\\text(?:degree|cent|euro|sterling|yen){_WORD}|\\(?:euro|pounds|yen|cents?){_WORD}",
     lambda match: next(sign for name, sign in _MONEY.items() if name in match.group())),
    (r"\^\s*\{?\s*\\circ\s*\}?|\^?\s*\{?\\degrees?(?![A-Za-z])\}?"
     r"|(?<=\d)\s*\^\s*(?:\{\s*o\s*\}|o(?![A-Za-z]))", "°"),
    (r"°\s*([CF])(?![A-Za-z])", r"°\1"),
    (rf"\\prime{_WORD}\s*", "'"),
    (r"\^\s*\{\s*'[' ]*\}|\^\s*'+", lambda match: "'" * match.group().count("'")),
    (r"<=", r"\\le "),
    (r">=", r"\\ge "),
    (r"\\not\s*=", r"\\ne "),
    (r"(?<=\s)!=", r"\\ne "),
    (r"\.\.\.+", r"\\dots "),
    (r"\\(?:Bbb|mathbb)\s*(?:\{\s*([A-Z])\s*\}|([A-Z]))", r"\\mathbb{\1\2}"),
    (rf"\\in\s*([RZNQC]){_WORD}", r"\\in \\mathbb{\1}"),
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
