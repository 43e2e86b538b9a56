r"""Names of formulas: x, x_{1}, y', \vec{v}, AB, \mathcal{F}; and which of them are functions.

Case counts. Two lower-case letters next to each other are a product. Other letters next to each
other are a word, whose order counts. Bold and roman type are decoration, as are a bar, an arrow or
an angle over capital letters. Any other accent, prime or star is part of the name.
"""

import re


def words(text: str) -> frozenset[str]:
    """A table of words."""
    return frozenset(text.split())


# Functions of one number, or of a few.
ELEMENTARY = words(
    "sin cos tan cot sec csc arcsin arccos arctan arccot arcsec arccsc sinh cosh tanh coth sech"
    " csch arsinh arcosh artanh arcsinh arccosh arctanh log lg ln exp sqrt abs max min gcd lcm cis"
    " Re Im sgn sign floor ceil"
)
FUNCTIONALS = words("det dim deg Pr ker rank tr arg")
GREEK = words(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau upsilon"
    " phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)
SYMBOLS = GREEK | words("ell hbar partial nabla aleph imath jmath")
ACCENTS = words(
    "vec overrightarrow overleftarrow overleftrightarrow bar overline hat widehat tilde widetilde"
    " dot ddot check breve mathcal mathbb mathfrak mathscr overarc wideparen acute grave"
)
# Figures: \angle ABC is named by its letters.
PREFIXES = words("angle triangle measuredangle sphericalangle odot")
_OVER_CAPITALS = words(
    "vec overrightarrow overleftarrow overleftrightarrow bar overline widehat overarc wideparen"
)
_CAPITALS = re.compile(r"(?:[A-Z](?:_\{\w+\})?'*\s*)+")
# Inverse functions, which the power -1 means: \sin^{-1}.
INVERSE = {name: f"arc{name}" for name in words("sin cos tan cot sec csc")}
INVERSE |= {name: f"ar{name}" for name in words("sinh cosh tanh")}
# Letters of C(n, k): of other letters C and P are any function, or a point.
TOTALS = words("n m N M")
TAKEN = words("k r m n i j 0 1 2 3 4 5 6 7 8 9")
_ALWAYS = words("f g")
_OFTEN = words("h p q F G H P Q phi psi sigma zeta")


def is_decorated(command: str, inside: str) -> bool:
    r"""Whether a command over these letters only decorates them: \overline{AB}."""
    return command in _OVER_CAPITALS and bool(_CAPITALS.fullmatch(inside.strip()))


def applies(name: str, argument: str) -> bool:
    """Whether name(argument) is a value of a function and not a product.

    f, g and all names with a prime are functions. h, p, F, φ, … are functions if their argument is
    not a sum: h(R + r) is a height times a length.
    """
    base = name.partition("_")[0].rstrip("'").lstrip("\\")
    if base in _ALWAYS or name.endswith("'"):
        return True
    depth = 0
    for place, sign in enumerate(argument):
        depth += (sign in "([{") - (sign in ")]}")
        if sign in "+-" and depth == 0 and place:
            return False
    return base in _OFTEN


def split_letters(letters: str) -> list[tuple[str, str]]:
    """Reads letters as pairs of a kind (function, constant, symbol, word) and a name."""
    if letters in ELEMENTARY or letters in FUNCTIONALS:
        return [("function", letters)]
    if letters in SYMBOLS:
        return [("symbol", f"\\{letters}")]
    if len(letters) == 1:
        return [("constant" if letters in "ei" else "symbol", letters)]
    for name in ("arcsin", "arccos", "arctan", "sin", "cos", "tan", "log", "ln"):
        rest = letters.removeprefix(name)
        if rest != letters and len(rest) == 1 and rest.islower():
            return [("function", name), *split_letters(rest)]
    if len(letters) == 2 and letters.islower():
        return [part for letter in letters for part in split_letters(letter)]
    return [("word", letters)]
