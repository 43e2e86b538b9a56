"""Prompts with instructions that can be checked, and texts that follow them.

A prompt requests a text about a subject and adds one to four instructions of different groups:
amount, content, ending, style. `_CONTRADICT` lists instructions that exclude each other. `compose`
returns the prompt, the checks, a text that follows all of them, and a text that does not.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

MOST = 4  # instructions of a prompt
_SUBJECTS = (
    "a garden in spring, a train at night, an old bridge, a market on the coast, a lost letter,"
    " the first snow, a small bakery, a mountain hut, a broken clock, a river in flood, a quiet"
    " library, a village feast, an empty theatre, a ship in fog, a school on a hill"
)
_FORMS = ("Write a short text about", "Describe", "Tell a story about", "Write a note about")
_WORDS = (
    "morning light falls over the wide roof while people walk past and talk about small things"
    " that nobody wrote down before the bell rang twice across the water near the old wall"
)
_KEYWORDS = "lantern copper orchard thunder pencil velvet harbour candle meadow marble"
_ENDINGS = ("That is all.", "The end.", "Who knows?", "See you soon.", "So it was.")
_MARKERS = ("P.S.", "Note:", "Later:")


class Composed(NamedTuple):
    """A prompt.

    Fields:
      prompt: its text.
      checks: in the form for `instruction_following`.
      gold: a text that follows all instructions.
      wrong: an incorrect text: too many sentences, paragraphs or points, or too few words.
    """

    prompt: str
    checks: list[dict[str, Any]]
    gold: str
    wrong: str


class _Draft:
    """The parts of the gold text.

    Fields:
      blocks: number of blocks and of words in each; `mark` is before each, `between` between two.
      whole: number of words of the whole text, if they are counted.
      keywords: words in the first block.
      first, last: lines around the blocks; `ending` closes the last block.
      finish: last change of the text.
    """

    def __init__(self, random: Random):
        self.random = random
        self.blocks, self.length, self.mark, self.between = 1, 8, "", "\n\n"
        self.whole = 0
        self.sentences = False
        self.keywords: list[str] = []
        self.first = self.last = self.ending = ""
        self.finish: list[Callable[[str], str]] = []

    def miss(self, random: Random) -> None:
        """Changes the amount by one, so it is incorrect; later choices use another generator."""
        self.random = random
        if self.whole:
            self.whole -= 1
        else:
            self.blocks += 1

    def text(self) -> str:
        around = " ".join([self.first, self.last, self.ending]).split()
        length = self.whole - len(around) if self.whole else self.length
        count = self.blocks - bool(self.ending and self.sentences)
        lines = [[self.random.choice(_WORDS.split()) for _ in range(length)] for _ in range(count)]
        # They replace words, so that no count changes.
        lines[0][1 : 1 + len(self.keywords)] = self.keywords
        parts = [f"{self.mark}{' '.join(line).capitalize()}." for line in lines]
        parts[-1] = f"{parts[-1]} {self.ending}".rstrip()
        lines = [self.first, self.between.join(parts), self.last]
        text = "\n".join(line for line in lines if line)
        for change in self.finish:
            text = change(text)
        return text


_Instruction = tuple[str, Sequence[Any]]  # words, arguments of the check


def compose(random: Random, count: int, amount: str = "") -> Composed:
    """Samples a prompt with `count` instructions (1 to `MOST`); the first one is about an amount.

    Args:
      random: source of all choices.
      count: number of instructions.
      amount: check of the first instruction, one of `AMOUNTS`; empty: any of them.
    """
    names = [amount or random.choice(AMOUNTS)]
    for group in random.sample((_CONTENTS, _ENDS, _STYLES), count - 1):
        fitting = [n for n in group if not any({n, m} in _CONTRADICT for m in names)]
        names.append(random.choice(fitting))
    draft = _Draft(random)
    known = {**_AMOUNTS, **_CONTENTS, **_ENDS, **_STYLES}
    instructions = [known[name](draft) for name in names]
    subject = f"{random.choice(_FORMS)} {random.choice(_SUBJECTS.split(', '))}."
    checks = [
        {"check": name, "arguments": list(given)}
        for name, (_, given) in zip(names, instructions, strict=True)
    ]
    gold = draft.text()
    draft.miss(Random(gold))
    text = " ".join([subject, *(words for words, _ in instructions)])
    return Composed(text, checks, gold, draft.text())


def _number_words(draft: _Draft) -> _Instruction:
    relation = draft.random.choice(("at least", "exactly"))
    number = draft.random.randint(20, 80)
    draft.whole = number
    return f"Use {relation} {number} words.", (relation, number)


def _number_sentences(draft: _Draft) -> _Instruction:
    number = draft.random.randint(3, 8)
    draft.blocks, draft.between, draft.sentences = number, " ", True
    return f"Write exactly {number} sentences.", ("exactly", number)


def _number_paragraphs(draft: _Draft) -> _Instruction:
    draft.blocks = draft.random.randint(3, 6)
    text = f"Write exactly {draft.blocks} paragraphs, with an empty line between two of them."
    return text, ("exactly", draft.blocks)


def _bullets(draft: _Draft) -> _Instruction:
    draft.blocks, draft.mark, draft.between = draft.random.randint(3, 8), "* ", "\n"
    text = f"Give exactly {draft.blocks} points, each on a line that begins with `* `."
    return text, (draft.blocks,)


def _keywords(draft: _Draft) -> _Instruction:
    draft.keywords = draft.random.sample(_KEYWORDS.split(), draft.random.randint(1, 3))
    listed = ", ".join(f"`{word}`" for word in draft.keywords)
    return f"Use each of these words: {listed}.", (draft.keywords,)


def _keyword_frequency(draft: _Draft) -> _Instruction:
    word, number = draft.random.choice(_KEYWORDS.split()), draft.random.randint(2, 4)
    draft.keywords = [word] * number
    return f"Use the word `{word}` exactly {number} times.", (word, "exactly", number)


def _forbidden(draft: _Draft) -> _Instruction:
    words = draft.random.sample(_KEYWORDS.split(), 2)
    return f"Use neither `{words[0]}` nor `{words[1]}`.", (words,)


def _end_phrase(draft: _Draft) -> _Instruction:
    draft.ending = draft.random.choice(_ENDINGS)
    return f"The last words must be `{draft.ending}`.", (draft.ending,)


def _postscript(draft: _Draft) -> _Instruction:
    marker = draft.random.choice(_MARKERS)
    draft.last = f"{marker} {draft.random.choice(_WORDS.split())}"
    return f"Add a last line that begins with `{marker}`.", (marker,)


def _title(draft: _Draft) -> _Instruction:
    draft.first = f"<<{draft.random.choice(_WORDS.split()).capitalize()}>>"
    return "Begin with a title in double angle brackets, as in <<title>>.", ()


def _finished(words: str, change: Callable[[str], str]) -> Callable[[_Draft], _Instruction]:
    """An instruction that a change of the whole text satisfies."""

    def instruction(draft: _Draft) -> _Instruction:
        draft.finish.append(change)
        return words, ()

    return instruction


_AMOUNTS = {
    "number_words": _number_words,
    "number_sentences": _number_sentences,
    "number_paragraphs": _number_paragraphs,
    "bullets": _bullets,
}
AMOUNTS = tuple(_AMOUNTS)
"""Checks of amounts."""
_CONTENTS = {
    "keywords": _keywords,
    "keyword_frequency": _keyword_frequency,
    "forbidden": _forbidden,
}
_ENDS = {
    "end_phrase": _end_phrase,
    "postscript": _postscript,
    "title": _title,
    "quoted": _finished('Put the whole text between double quotation marks (").', '"{}"'.format),
}
_STYLES = {
    "all_lower": _finished("Use lower-case letters only.", str.lower),
    "all_capitals": _finished("Use capital letters only.", str.upper),
    "no_comma": _finished("Do not use any comma.", str),  # words of a draft have none
}
_CONTRADICT = [
    {"number_sentences", "postscript"},  # "P.S." would count as one
    {"bullets", "quoted"},  # the first line would begin with the mark
    {"postscript", "all_lower"},
    {"postscript", "all_capitals"},
]
