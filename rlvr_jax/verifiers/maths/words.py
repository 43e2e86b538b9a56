"""Words after a number: those that name the counted things, and those that change the number.

"apples" or "cups of sugar" after a number do not change its value. These words do: another number
or scale (million, half), an operator (squared, times), a comparison (more, at least), a hedge
(about, or so), a time of day. So does a word that connects it to something else (or, if, not).
"""

import re
from collections.abc import Mapping

_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve"
NUMBER_WORDS = {name: value for value, name in enumerate(_NUMBERS.split())}
SCALES = {
    "hundred": 100,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "lakh": 10**5,
    "crore": 10**7,
    "dozen": 12,
    "万": 10**4,
    "亿": 10**8,
}
# Line by line: numbers, operators, comparisons, hedges, times of day, connectives and negations.
_TABLE = """
thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty
seventy eighty ninety score gross half halves third thirds quarter quarters fourth fourths fifth
fifths sixth sixths seventh eighth eighths ninth tenth tenths hundredth hundredths thousandth
thousandths fraction once twice thrice double triple quadruple zillion bn mn first infinity infinite
infinitely
plus minus times over divided multiplied squared cubed square cube root power factorial modulo mod
raised added subtracted sum difference product quotient negative positive percentile inverse
reciprocal base exponent log remainder doubled tripled halved negated
more less fewer greater larger smaller bigger higher lower above below under beyond exceeding most
least maximum minimum max min up upwards between within equal equals than after before until past
about approximately approx roughly around nearly almost circa maybe perhaps probably possibly likely
guess estimate estimated estimates unsure so ish something some rounded
am pm noon midnight clock oclock o'clock morning afternoon evening night
or and if when where unless but then thus because since not no none never nor neither wrong
incorrect false is are was be isn't aren't except without else either versus vs instead excluding to
through however assuming
"""
_CHANGING = frozenset(
    [name + end for name in (*NUMBER_WORDS, *SCALES) for end in ("", "s")] + _TABLE.split()
)
# They do not name counted things.
_FILLERS = frozenset(["a", "an", "the", "of", "in", "total", "all"])
_PLURALS = """
people/person persons/person men/man women/woman children/child feet/foot mice/mouse geese/goose
teeth/tooth vertices/vertex indices/index dice/die halves/half leaves/leaf loaves/loaf knives/knife
"""
_IRREGULAR = dict(pair.split("/") for pair in _PLURALS.split())


def singular(word: str) -> str:
    """A noun without its plural ending, precise enough to separate dogs from gods."""
    word = word if len(word) < 3 and not word.isascii() else word.lower()
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and re.search(r"(?:s|x|z|ch|sh)es$", word):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and word[-2] not in "su" else word


def counted(pieces: list[str], units: Mapping[str, str]) -> str:
    """The name of the counted things, after "~"; "" if the words may change the number.

    Args:
      pieces: words and signs, as written.
      units: canonical names of units, which may be among the words ("kg of sugar").
    """
    words = [piece.strip(".") for piece in pieces]
    if any(not re.fullmatch(r"[^\W\d_]+(?:[-'][^\W\d_]+)*|/", word) for word in words):
        return ""
    lowered = [word.lower() for word in words]
    if any(part in _CHANGING for word in lowered for part in [word, *word.split("-")]):
        return ""
    if re.search(r"\b[ap] m\b", " ".join(lowered)):
        return ""
    # A single letter is a name, except an article and a unit. Two letters require a longer word.
    long = [word for word in words if len(word) > 2 or not word.isascii()]
    short = [word for word in words if len(word) == 1 and word.isascii() and word not in "a/"]
    if not long or any(word not in units for word in short):
        return ""
    named = ["per" if w == "/" else singular(units.get(w, w)) for w in words]
    return "~" + " ".join(word for word in named if word not in _FILLERS)
