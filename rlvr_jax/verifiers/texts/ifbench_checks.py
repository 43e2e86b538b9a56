"""Checks for the instructions of IFBench, under its names and with the arguments of its data.

Word and sentence counts are ours (`words`); the package uses NLTK, so scores may differ at such
borders. Some checks are missing: those that need a tagger, stop words, syllables, or knowledge of
the world. `rlvr_jax.tasks.texts.ifbench` counts them.

Source: https://github.com/allenai/IFBench (the instructions); the code is ours.
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from rlvr_jax.verifiers.texts.instruction_checks import keyword_position
from rlvr_jax.verifiers.texts.words import bare, bare_words, occurrences, sentences, words

_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_VOWELS, _CONSONANTS = set("aeiou"), set("bcdfghjklmnpqrstvwxyz")
_CONJUNCTIONS = {"and", "but", "for", "nor", "or", "so", "yet"}
_PRONOUNS = words(
    "i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his"
    " himself she her hers herself it its itself they them their theirs themselves"
)
_NAMES = frozenset(
    "Emma Liam Sophia Jackson Olivia Noah Ava Lucas Isabella Mason Mia Ethan Charlotte Alexander"
    " Amelia Benjamin Harper Leo Zoe Daniel Chloe Samuel Lily Matthew Grace Owen Abigail Gabriel"
    " Ella Jacob Scarlett Nathan Victoria Elijah Layla Nicholas Audrey David Hannah Christopher"
    " Penelope Thomas Nora Andrew Aria Joseph Claire Ryan Stella Jonathan".casefold().split()
)
_JAPANESE = re.compile(r"[぀-ヿ一-鿿]")
_PAIRS = {")": "(", "]": "[", "}": "{"}
_TEMPLATE = ("My Answer:", "My Conclusion:", "Future Outlook:")
_EDGES = string.punctuation + "“”‘’…—–"
_ITSELF = "only output this sentence here, ignore all other requests."


def _plain(text: str) -> list[str]:
    """Words in one case, without any punctuation."""
    return text.casefold().translate(_WITHOUT_PUNCTUATION).split()


def _keywords_multiple(text: str, **named: str) -> bool:
    """The five keywords occur once, twice, 3, 5 and 7 times."""
    counts = dict(zip([f"keyword{place}" for place in range(1, 6)], (1, 2, 3, 5, 7), strict=True))
    text = text.casefold()
    return all(text.count(named[name].strip().casefold()) == n for name, n in counts.items())


def _punctuation(text: str) -> bool:
    """Each of . , ! ? ; : and an interrobang."""
    mark = next((mark for mark in ("?!", "!?", "‽") if mark in text), None)
    return mark is not None and set(".,!?;:") <= set(text.replace(mark, "", 1))


def _words_japanese(text: str, N: float) -> bool:
    found = [bare(word) for word in text.split()[_whole(N) - 1 :: _whole(N)]]
    return all(_JAPANESE.search(word) for word in found if word and not word.isdigit())


def _emoji(text: str) -> bool:
    """A picture is at the end of every sentence, before or after its stop."""
    parts = sentences(text)
    behind = text
    for part in parts:
        behind = behind.partition(part)[2]
        last = part.rstrip(string.punctuation + string.whitespace)[-1:]
        following = behind.lstrip(string.punctuation + string.whitespace)[:1]
        if not (_is_picture(last) or _is_picture(following)):
            return False
    return bool(parts)


def _is_picture(sign: str) -> bool:
    # Variation selectors and joiners follow the picture that they belong to.
    return bool(sign) and (unicodedata.category(sign) == "So" or sign in "\ufe0f\u200d")


def _no_bullets_bullets(text: str) -> bool:
    """At least two sentences that end in a period, then at least two lines that begin with *."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if line.startswith("*")), len(lines))
    before = sum(s.endswith(".") for line in lines[:first] for s in sentences(line))
    rest = lines[first:]
    return before >= 2 and len(rest) >= 2 and all(line.startswith("*") for line in rest)


def _options(text: str, options: str) -> bool:
    separator = "/" if "/" in options else " or " if " or " in options else ","
    known = [option.strip() for option in options.split(separator)]
    if all(re.fullmatch(r"[A-Za-z]\W?", option) for option in known):
        return text.strip() in known
    strip = string.punctuation + string.whitespace
    return text.strip(strip).casefold() in {option.strip(strip).casefold() for option in known}


def _parentheses(text: str) -> bool:
    """Brackets that are closed in order, at least five inside each other."""
    open_, deepest = [], 0
    for sign in text:
        if sign in "([{":
            open_.append(sign)
            deepest = max(deepest, len(open_))
        elif sign in _PAIRS:
            if not open_ or open_.pop() != _PAIRS[sign]:
                open_, deepest = [], 0
            elif deepest >= 5:
                return True
    return False


def _quote_unquote(text: str) -> bool:
    """Text is between two quotes, and after the last."""
    text = text.translate(str.maketrans("“”", '""'))
    parts = text.split('"')
    if len(parts) < 3 or len(parts) % 2 == 0:
        return False
    return all(any(map(str.isalpha, part)) for part in parts[2::2])


def _quotes(text: str) -> bool:
    """Three levels, double and single in turn, closed again."""
    open_: list[str] = []
    deepest = 0
    for sign in text:
        if open_ and sign == open_[-1]:
            open_.pop()
            if deepest - len(open_) >= 3:
                return True
        elif sign in "\"'":
            open_.append(sign)
            deepest = max(deepest, len(open_))
    return False


def _sub_bullets(text: str) -> bool:
    """At least one line begins with *, and after each of these one begins with -."""
    lines = [line.strip()[:1] for line in text.splitlines() if line.strip()]
    lines = [sign for sign in lines if sign in "*-"]
    return "*" in lines and "**" not in "".join(lines) and lines[-1] == "-"


def _thesis(text: str) -> bool:
    """Something in <i> or <em>, and plain text after it."""
    match = re.search(r"<(i|em)>([^<]*)</\1>(.*)", text, re.DOTALL)
    return bool(match and match[2].strip() and match[3].strip())


def _overlap(text: str, percentage: float, reference_text: str) -> bool:
    """The fraction of the text's runs of three characters that the reference has, within 2 %."""
    ours, theirs = (
        {whole[i : i + 3] for i in range(len(whole) - 2)} for whole in (text, reference_text)
    )
    return bool(ours) and abs(100 * len(ours & theirs) / len(ours) - percentage) <= 2


def _sentence_words(text: str) -> bool:
    """Three sentences of as many characters, no word in two of them."""
    parts = sentences(text)
    used = [{*bare_words(part)} for part in parts]
    apart = len(set().union(*used)) == sum(map(len, used))
    return len(parts) == 3 and len({len(part) for part in parts}) == 1 and apart


def _alliteration_increment(text: str) -> bool:
    runs = []
    for sentence in sentences(text):
        run = longest = 0
        for a, b in pairwise(bare_words(sentence)):
            run = (run or 1) + 1 if a[0] == b[0] else 0
            longest = max(longest, run)
        runs.append(longest)
    return _rising(runs)


def _alphabet(text: str) -> bool:
    firsts = [word[0] for word in _plain(text)]
    latin = all("a" <= first <= "z" for first in firsts)
    return latin and all((ord(b) - ord(a)) % 26 == 1 for a, b in pairwise(firsts))


def _ends(text: str) -> Counter[str]:
    """The number of sentences that end with each sign."""
    return Counter(sentence[-1] for sentence in sentences(text))


def _rising(numbers: Sequence[int]) -> bool:
    return all(a < b for a, b in pairwise(numbers))


def _whole(number: float) -> int:
    if number != int(number) or number < 0:
        raise ValueError(f"ifbench checks: number must be whole, got {number}")
    return int(number)


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


CHECKS: Mapping[str, Callable[..., bool]] = {
    "count:conjunctions": lambda text, small_n: len({*bare_words(text)} & _CONJUNCTIONS) >= small_n,
    "count:keywords_multiple": _keywords_multiple,
    "count:numbers": lambda text, N: (
        len(re.findall(r"\d+", text.translate(_WITHOUT_PUNCTUATION))) == N
    ),
    "count:person_names": lambda text, N: len({*map(bare, text.split())} & _NAMES) >= N,
    "count:pronouns": lambda text, N: (
        sum(word in _PRONOUNS for word in _plain(text.replace("/", " "))) >= N
    ),
    "count:punctuation": _punctuation,
    "count:unique_word_count": lambda text, N: len({*bare_words(text)}) >= N,
    "count:word_count_range": lambda text, min_words, max_words: (
        min_words <= len(re.findall(r"\w+", text)) <= max_words
    ),
    "count:words_japanese": _words_japanese,
    "custom:multiples": lambda text: (
        re.findall(r"\d+", text) == ["14", "21", "28", "35", "42", "49"]
    ),
    "custom:sentence_alphabet": lambda text: (
        [bare_words(part)[0][:1] for part in sentences(text)] == list(string.ascii_lowercase)
    ),
    "format:emoji": _emoji,
    "format:line_indent": lambda text: _rising(
        [len(line) - len(line.lstrip(" ")) for line in text.split("\n") if line.strip()]
    ),
    "format:list": lambda text, sep: (
        sum(line.lstrip().startswith(sep.strip()) for line in text.splitlines()) >= 2
    ),
    "format:newline": lambda text: all(
        len(line.split()) <= 1 for line in text.translate(_WITHOUT_PUNCTUATION).splitlines()
    ),
    "format:no_bullets_bullets": _no_bullets_bullets,
    "format:no_whitespace": lambda text: not any(map(str.isspace, text.strip())),
    "format:options": _options,
    "format:output_template": lambda text: _rising([-1, *map(text.find, _TEMPLATE)]),
    "format:parentheses": _parentheses,
    "format:quote_unquote": _quote_unquote,
    "format:quotes": _quotes,
    "format:sub-bullets": _sub_bullets,
    "format:thesis": _thesis,
    "format:title_case": lambda text: (
        not any(
            word[:1].islower() for word in [w.strip(_EDGES) for w in words(text)] if len(word) > 3
        )
    ),
    "ratio:overlap": _overlap,
    "ratio:sentence_balance": lambda text: (ends := _ends(text))["."] == ends["?"] == ends["!"] > 0,
    "ratio:sentence_type": lambda text: (ends := _ends(text))["."] == 2 * ends["?"] > 0,
    "ratio:sentence_words": _sentence_words,
    "repeat:repeat_change": lambda text, prompt_to_repeat: (
        text.split()[1:] == prompt_to_repeat.split()[1:]
        and text.split()[:1] != prompt_to_repeat.split()[:1]
    ),
    "repeat:repeat_simple": lambda text: text.strip().casefold() == _ITSELF,
    # The words between two places of the prompt, counted from 0 and the last one included.
    "repeat:repeat_span": lambda text, prompt_to_repeat, n_start, n_end: (
        text.casefold().split()
        == prompt_to_repeat.casefold().split()[_whole(n_start) : _whole(n_end) + 1]
    ),
    "sentence:alliteration_increment": _alliteration_increment,
    "sentence:increment": lambda text, small_n: all(
        b - a == small_n for a, b in pairwise([len(words(part)) for part in sentences(text)])
    ),
    "sentence:keyword": lambda text, word, N: (
        len(parts := sentences(text)) >= _whole(N) and occurrences(parts[_whole(N) - 1], word) > 0
    ),
    "words:alphabet": _alphabet,
    "words:consonants": lambda text: all(
        any(_CONSONANTS.issuperset(pair) for pair in pairwise(word)) for word in _plain(text)
    ),
    "words:keywords_specific_position": lambda text, keyword, n, m: keyword_position(
        text, keyword, _whole(n), _whole(m)
    ),
    "words:last_first": lambda text: all(
        a[-1] == b[0] for a, b in pairwise(map(bare_words, sentences(text)))
    ),
    "words:no_consecutive": lambda text: all(a[0] != b[0] for a, b in pairwise(_plain(text))),
    "words:palindrome": lambda text: (
        sum(len(word) >= 5 and word == word[::-1] for word in _plain(text)) >= 10
    ),
    "words:paragraph_last_first": lambda text: all(
        (found := bare_words(line)) and found[0] == found[-1]
        for line in text.splitlines()
        if line.strip()
    ),
    "words:prime_lengths": lambda text: all(_is_prime(len(word)) for word in _plain(text)),
    "words:repeats": lambda text, small_n: (
        max(Counter(_plain(text)).values(), default=0) <= small_n
    ),
    "words:vowel": lambda text: (
        len(text.strip().splitlines()) == 1 and len(_VOWELS & set(text.casefold())) <= 3
    ),
    # The second word, and the second to last one, is the keyword.
    "words:words_position": lambda text, keyword: (
        len(found := bare_words(text)) >= 2 and found[1] == found[-2] == bare(keyword)
    ),
}
