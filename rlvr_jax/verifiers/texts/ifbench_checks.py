"""Checks for the instructions of IFBench, under its names and with the arguments of its data.

Each does what the instruction says; word and sentence counts are ours (`words`), where the package
uses NLTK, so scores agree with its own up to such borders. Left out is what needs a tagger, a list
of stop words or syllables, or knowledge of the world; `rlvr_jax.tasks.ifbench` counts it.

Source: https://github.com/allenai/IFBench (the instructions); the code is ours.
"""

import itertools
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping

from rlvr_jax.verifiers.texts.words import bare, occurrences, sentences, words

__all__ = ["CHECKS"]

_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_VOWELS, _CONSONANTS = set("aeiou"), set("bcdfghjklmnpqrstvwxyz")
_CONJUNCTIONS = {"and", "but", "for", "nor", "or", "so", "yet"}
_PRONOUNS = (
    "i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his"
    " himself she her hers herself it its itself they them their theirs themselves"
)
_NAMES = (
    "Emma Liam Sophia Jackson Olivia Noah Ava Lucas Isabella Mason Mia Ethan Charlotte Alexander"
    " Amelia Benjamin Harper Leo Zoe Daniel Chloe Samuel Lily Matthew Grace Owen Abigail Gabriel"
    " Ella Jacob Scarlett Nathan Victoria Elijah Layla Nicholas Audrey David Hannah Christopher"
    " Penelope Thomas Nora Andrew Aria Joseph Claire Ryan Stella Jonathan"
)
_JAPANESE = re.compile(r"[぀-ヿ一-鿿]")
_PAIRS = {")": "(", "]": "[", "}": "{"}
_TEMPLATE = ("My Answer:", "My Conclusion:", "Future Outlook:")
_ITSELF = "only output this sentence here, ignore all other requests."


def _plain(text: str) -> list[str]:
    """Words in one case, without any punctuation in them."""
    return text.casefold().translate(_WITHOUT_PUNCTUATION).split()


def word_count_range(text: str, min_words: float, max_words: float) -> bool:
    return min_words <= len(re.findall(r"\w+", text)) <= max_words


def unique_word_count(text: str, N: float) -> bool:
    return len({bare(word) for word in words(text)}) >= N


def keywords_multiple(text: str, **named: str) -> bool:
    """The five keywords stand once, twice, 3, 5 and 7 times."""
    counts = dict(zip([f"keyword{place}" for place in range(1, 6)], (1, 2, 3, 5, 7), strict=True))
    text = text.casefold()
    return all(text.count(named[name].strip().casefold()) == n for name, n in counts.items())


def numbers(text: str, N: float) -> bool:
    return len(re.findall(r"\d+", text.translate(_WITHOUT_PUNCTUATION))) == N


def conjunctions(text: str, small_n: float) -> bool:
    return len({bare(word) for word in words(text)} & _CONJUNCTIONS) >= small_n


def person_names(text: str, N: float) -> bool:
    return len({bare(word) for word in text.split()} & {*_NAMES.casefold().split()}) >= N


def punctuation(text: str) -> bool:
    """Every one of . , ! ? ; : beside an interrobang."""
    marks = [mark for mark in ("?!", "!?", "‽") if mark in text]
    return bool(marks) and set(".,!?;:") <= set(text.replace(marks[0], "", 1))


def pronouns(text: str, N: float) -> bool:
    return sum(word in _PRONOUNS.split() for word in _plain(text.replace("/", " "))) >= N


def words_japanese(text: str, N: float) -> bool:
    step = _whole(N)
    found = text.split()[step - 1 :: step]
    found = [word for word in map(bare, found) if word and not word.isdigit()]
    return all(_JAPANESE.search(word) for word in found)


def emoji(text: str) -> bool:
    """A picture stands at the end of every sentence, before or behind its stop."""
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
    # Variation selectors and joiners stand behind the picture that they belong to.
    return bool(sign) and (unicodedata.category(sign) == "So" or sign in "\ufe0f\u200d")


def line_indent(text: str) -> bool:
    indents = [len(line) - len(line.lstrip(" ")) for line in text.split("\n") if line.strip()]
    return all(a < b for a, b in itertools.pairwise(indents))


def list_of_items(text: str, sep: str) -> bool:
    starts = [line for line in text.splitlines() if line.lstrip().startswith(sep.strip())]
    return len(starts) >= 2


def newline(text: str) -> bool:
    lines = text.translate(_WITHOUT_PUNCTUATION).splitlines()
    return all(len(line.split()) <= 1 for line in lines)


def no_bullets_bullets(text: str) -> bool:
    """At least two sentences that end in a period, then at least two lines that begin with *."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if line.startswith("*")), len(lines))
    before = sum(s.endswith(".") for line in lines[:first] for s in sentences(line))
    rest = lines[first:]
    return before >= 2 and len(rest) >= 2 and all(line.startswith("*") for line in rest)


def no_whitespace(text: str) -> bool:
    return not any(map(str.isspace, text.strip()))


def options(text: str, options: str) -> bool:
    separator = "/" if "/" in options else " or " if " or " in options else ","
    known = [option.strip() for option in options.split(separator)]
    if all(re.fullmatch(r"[A-Za-z]\W?", option) for option in known):
        return text.strip() in known
    strip = string.punctuation + string.whitespace
    return text.strip(strip).casefold() in {option.strip(strip).casefold() for option in known}


def output_template(text: str) -> bool:
    places = [text.find(mark) for mark in _TEMPLATE]
    return places[0] >= 0 and places == sorted(places)


def parentheses(text: str) -> bool:
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


def quote_unquote(text: str) -> bool:
    """Something stands between two quotes, and behind the last."""
    text = text.translate(str.maketrans("“”", '""'))
    parts = text.split('"')
    if len(parts) < 3 or len(parts) % 2 == 0:
        return False
    return all(any(map(str.isalpha, part)) for part in parts[2::2])


def quotes(text: str) -> bool:
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


def sub_bullets(text: str) -> bool:
    """At least one line begins with *, and behind each of these one begins with -."""
    lines = [line.strip()[:1] for line in text.splitlines() if line.strip()]
    lines = [sign for sign in lines if sign in "*-"]
    return "*" in lines and "**" not in "".join(lines) and lines[-1] == "-"


def thesis(text: str) -> bool:
    """Something in <i> or <em>, and plain text behind it."""
    match = re.search(r"<(i|em)>([^<]*)</\1>(.*)", text, re.DOTALL)
    return bool(match and match[2].strip() and match[3].strip())


def title_case(text: str) -> bool:
    return not any(word[:1].islower() for word in map(bare_case, words(text)) if len(word) > 3)


def bare_case(word: str) -> str:
    """A word without the signs at its edges, its case kept."""
    return word.strip(string.punctuation + "“”‘’…—–")


def overlap(text: str, percentage: float, reference_text: str) -> bool:
    """The share of the text's runs of three characters that the reference has, within 2 %."""
    ours, theirs = (
        {whole[i : i + 3] for i in range(len(whole) - 2)} for whole in (text, reference_text)
    )
    return bool(ours) and abs(100 * len(ours & theirs) / len(ours) - percentage) <= 2


def sentence_balance(text: str) -> bool:
    ends = Counter(sentence[-1] for sentence in sentences(text))
    return ends["."] == ends["?"] == ends["!"] > 0


def sentence_type(text: str) -> bool:
    ends = Counter(sentence[-1] for sentence in sentences(text))
    return ends["."] == 2 * ends["?"] > 0


def sentence_words(text: str) -> bool:
    """Three sentences of as many characters, no word in two of them."""
    parts = sentences(text)
    used = [{bare(word) for word in words(part)} for part in parts]
    apart = len(set().union(*used)) == sum(map(len, used))
    return len(parts) == 3 and len({len(part) for part in parts}) == 1 and apart


def repeat_change(text: str, prompt_to_repeat: str) -> bool:
    ours, theirs = text.split(), prompt_to_repeat.split()
    return ours[1:] == theirs[1:] and ours[:1] != theirs[:1]


def repeat_simple(text: str) -> bool:
    return text.strip().casefold() == _ITSELF


def repeat_span(text: str, prompt_to_repeat: str, n_start: float, n_end: float) -> bool:
    """The words between two places of the prompt, counted from 0 and the last one included."""
    asked = prompt_to_repeat.casefold().split()[_whole(n_start) : _whole(n_end) + 1]
    return text.casefold().split() == asked


def alliteration_increment(text: str) -> bool:
    runs = []
    for sentence in sentences(text):
        firsts = [bare(word)[0] for word in words(sentence)]
        run = longest = 0
        for a, b in itertools.pairwise(firsts):
            run = (run or 1) + 1 if a == b else 0
            longest = max(longest, run)
        runs.append(longest)
    return all(a < b for a, b in itertools.pairwise(runs))


def increment(text: str, small_n: float) -> bool:
    counts = [len(words(sentence)) for sentence in sentences(text)]
    return all(b - a == small_n for a, b in itertools.pairwise(counts))


def keyword_in_sentence(text: str, word: str, N: float) -> bool:
    parts = sentences(text)
    return len(parts) >= _whole(N) and occurrences(parts[_whole(N) - 1], word) > 0


def alphabet(text: str) -> bool:
    firsts = [word[0] for word in _plain(text)]
    if not all("a" <= first <= "z" for first in firsts):
        return False
    return all((ord(b) - ord(a)) % 26 == 1 for a, b in itertools.pairwise(firsts))


def consonants(text: str) -> bool:
    return all(
        any(a in _CONSONANTS and b in _CONSONANTS for a, b in itertools.pairwise(word))
        for word in _plain(text)
    )


def keywords_specific_position(text: str, keyword: str, n: float, m: float) -> bool:
    parts = sentences(text)
    if len(parts) < _whole(n):
        return False
    found = words(parts[_whole(n) - 1])
    return len(found) >= _whole(m) and bare(found[_whole(m) - 1]) == bare(keyword)


def last_first(text: str) -> bool:
    parts = [[bare(word) for word in words(sentence)] for sentence in sentences(text)]
    return all(a[-1] == b[0] for a, b in itertools.pairwise(parts))


def no_consecutive(text: str) -> bool:
    found = _plain(text)
    return all(a[0] != b[0] for a, b in itertools.pairwise(found))


def palindrome(text: str) -> bool:
    return sum(len(word) >= 5 and word == word[::-1] for word in _plain(text)) >= 10


def paragraph_last_first(text: str) -> bool:
    parts = [[bare(word) for word in words(line)] for line in text.splitlines() if line.strip()]
    return all(part and part[0] == part[-1] for part in parts)


def prime_lengths(text: str) -> bool:
    return all(_is_prime(len(word)) for word in _plain(text))


def repeats(text: str, small_n: float) -> bool:
    return max(Counter(_plain(text)).values(), default=0) <= small_n


def vowel(text: str) -> bool:
    one_paragraph = len(text.strip().splitlines()) == 1
    return one_paragraph and len(_VOWELS & set(text.casefold())) <= 3


def words_position(text: str, keyword: str) -> bool:
    """The second word, and the second to last one, is the keyword."""
    found = [bare(word) for word in words(text)]
    return len(found) >= 2 and found[1] == found[-2] == bare(keyword)


def multiples(text: str) -> bool:
    return re.findall(r"\d+", text) == ["14", "21", "28", "35", "42", "49"]


def sentence_alphabet(text: str) -> bool:
    firsts = [bare(words(sentence)[0])[:1] for sentence in sentences(text)]
    return firsts == list(string.ascii_lowercase)


def _whole(number: float) -> int:
    if number != int(number) or number < 0:
        raise ValueError(f"ifbench checks: number must be whole, got {number}")
    return int(number)


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


CHECKS: Mapping[str, Callable[..., bool]] = {
    "count:conjunctions": conjunctions,
    "count:keywords_multiple": keywords_multiple,
    "count:numbers": numbers,
    "count:person_names": person_names,
    "count:pronouns": pronouns,
    "count:punctuation": punctuation,
    "count:unique_word_count": unique_word_count,
    "count:word_count_range": word_count_range,
    "count:words_japanese": words_japanese,
    "custom:multiples": multiples,
    "custom:sentence_alphabet": sentence_alphabet,
    "format:emoji": emoji,
    "format:line_indent": line_indent,
    "format:list": list_of_items,
    "format:newline": newline,
    "format:no_bullets_bullets": no_bullets_bullets,
    "format:no_whitespace": no_whitespace,
    "format:options": options,
    "format:output_template": output_template,
    "format:parentheses": parentheses,
    "format:quote_unquote": quote_unquote,
    "format:quotes": quotes,
    "format:sub-bullets": sub_bullets,
    "format:thesis": thesis,
    "format:title_case": title_case,
    "ratio:overlap": overlap,
    "ratio:sentence_balance": sentence_balance,
    "ratio:sentence_type": sentence_type,
    "ratio:sentence_words": sentence_words,
    "repeat:repeat_change": repeat_change,
    "repeat:repeat_simple": repeat_simple,
    "repeat:repeat_span": repeat_span,
    "sentence:alliteration_increment": alliteration_increment,
    "sentence:increment": increment,
    "sentence:keyword": keyword_in_sentence,
    "words:alphabet": alphabet,
    "words:consonants": consonants,
    "words:keywords_specific_position": keywords_specific_position,
    "words:last_first": last_first,
    "words:no_consecutive": no_consecutive,
    "words:palindrome": palindrome,
    "words:paragraph_last_first": paragraph_last_first,
    "words:prime_lengths": prime_lengths,
    "words:repeats": repeats,
    "words:vowel": vowel,
    "words:words_position": words_position,
}
