"""Instructions: neighbours of the published cases, IFBench's checks, and hostile texts in time."""

import inspect

import pytest
from own_cpu import own_cpu

from rlvr_jax.verifiers.texts import instruction_following
from rlvr_jax.verifiers.texts.instruction_following import followed

FIVE = {f"keyword{place}": letter for place, letter in enumerate("vwxyz", 1)}
BOUND = 0.25  # seconds of CPU for one check of any text; most take a few milliseconds


@pytest.mark.parametrize(
    ("check", "arguments", "text", "wanted"),
    (
        ("number_words", ["less than", 3], "a b", 1),
        ("number_words", ["less than", 3], "a b c", 0),
        ("number_words", ["at most", 3], "a b c", 1),
        ("number_words", ["about", 3], "a b c", None),
        ("number_words", [3], "a b c", None),
        ("number_words", ["exactly", "2"], "a b", None),
        ("number_words", ["exactly", 2], "né – 7", 2 == 2),
        ("number_sentences", ["exactly", 1], "No stop", 1),
        ("number_sentences", ["exactly", 2], "Hm... well. !!", 2 == 2),
        ("number_paragraphs", ["exactly", 2], "\n\na\n\n\n\nb\n", 1),
        ("paragraph_first_word", [1, "Hello"], "(hello) you", 1),
        ("paragraph_first_word", [0, "a"], "a", 0),
        ("first_word", ["yes"], "Yes, it is", 1),
        ("last_word", ["end"], "This is the End!", 1),
        ("unique_words", [], "a B c", 1),
        ("unique_words", [], "a b A.", 0),
        ("unique_words", ["at least", 2], "a b A.", 1),
        ("letter_frequency", ["é", "exactly", 2], "É é", 1),
        ("letter_frequency", ["ab", "exactly", 2], "ab", None),
        ("keywords", [["New York", "c++"]], "new york and C++ too", 1),
        ("keywords", ["cat"], "cat", None),
        ("keywords", [[]], "cat", None),
        ("keyword_frequency", ["a.b", "exactly", 1], "a.b axb", 1),
        ("keyword_position", ["cat", 2, 3], "One. This is cat. Two.", 1),
        ("keyword_position", ["cat", 3, 1], "One. cat.", 0),
        ("forbidden", [["cat"]], "the cat's", 0),
        ("bullets", [1], "*\ta", 1),
        ("bullets", [0], "* ", 1),
        ("bullets", [1], "  * a", 1),
        ("bullets", ["1"], "* a", None),
        ("highlights", [1], "***a***", 1),
        ("highlights", [2], "**a b** *c*", 1),
        ("highlights", [1], "** **", 0),
        ("highlights", [1], "**a\nb**", 0),
        ("sections", ["Part", 2], "Part 1\nPart2\nx Part 3", 1),
        ("sections", ["Part", 3], "Part 1\nPart2\nx Part 3", 0),
        ("title", [], "<< >> <<x>>", 1),
        ("title", [], "<<a\nb>>", 0),
        ("json", [], "[1, 2]", 1),
        ("json", [], "```\n{}\n```\n", 1),
        ("json", [], "{'a': 1}", 0),
        ("json", [], "[NaN]", 0),
        ("json", [], "[" + "9" * 5000 + "]", 1),
        ("json", [], "[" * 9000, 0),
        ("placeholders", [2], "[a] [ ] [b]", 1),
        ("placeholders", [1], "[a", 0),
        ("two_responses", [], "a****** ", 0),
        ("repeat_prompt", ["Say hi."], "\nSay hi. Hi", 1),
        ("repeat_prompt", ["Say hi."], "say hi. Hi", 0),
        ("quoted", [], '"', 0),
        ("quoted", [], ' "a b"\n', 1),
        ("no_comma", [], "a\u3001b", 0),
        ("one_of", [["yes", "no"]], " no ", 1),
        ("one_of", [["yes", "no"]], "no..", 0),
        ("all_lower", [], "ab ß", 1),
        ("capital_words", ["at least", 2], "A1 22 B", 1),
    ),
)
def test_rules_hold_beside_the_published_cases(check, arguments, text, wanted):
    assert followed(check, arguments, text) == wanted


@pytest.mark.parametrize(
    ("check", "arguments", "right", "wrong"),
    (
        ("count:keywords_multiple", FIVE, "v ww xxx yyyyy zzzzzzz", "v w xxx yyyyy zzzzzzz"),
        ("count:numbers", {"N": 2.0}, "1,000 and 2.5", "1 000 and 2.5"),
        ("count:conjunctions", {"small_n": 3.0}, "And so, but.", "And so and so"),
        ("count:person_names", {"N": 2.0}, "Emma met Noah.", "Emma met Emma."),
        ("count:punctuation", {}, "a, b; c: d. e! f? g?!", "a, b; c: d. e! f?"),
        ("count:pronouns", {"N": 2.0}, "she/her", "she sang"),
        ("count:words_japanese", {"N": 2.0}, "a 猫 b ネコ", "a 猫 b c"),
        ("count:word_count_range", {"min_words": 2.0, "max_words": 3.0}, "a b", "a b c d"),
        ("count:unique_word_count", {"N": 2.0}, "a b a", "a A a."),
        ("format:emoji", {}, "One 😀. Two! 😀", "One 😀. Two!"),
        ("format:line_indent", {}, "a\n b\n  c", "a\n b\n c"),
        ("format:list", {"sep": "-->"}, "--> a\n--> b", "--> a\nb"),
        ("format:newline", {}, "a\nb", "a b"),
        ("format:no_bullets_bullets", {}, "A. B.\n* c\n* d", "A.\n* c\n* d"),
        ("format:no_whitespace", {}, "abc", "a b"),
        ("format:options", {"options": "yes/no/maybe"}, "Maybe.", "yes or no"),
        ("format:options", {"options": "a), b), c)"}, "a)", "A"),
        ("format:output_template", {}, "My Answer: a My Conclusion: b Future Outlook: c",
         "My Conclusion: b My Answer: a Future Outlook: c"),
        ("format:parentheses", {}, "([{(([]))}])", "[(({}))]"),
        ("format:quote_unquote", {}, '"a" b "c" d', '"a" "c" d'),
        ("format:quotes", {}, "\"a 'b \"c\" d' e\"", "\"a 'b' c\""),
        ("format:sub-bullets", {}, "* a\n - b\n* c\n - d", "* a\n* c\n - d"),
        ("format:thesis", {}, "<i>a</i> b", "<i></i> b"),
        ("format:title_case", {}, "The House", "The house"),
        ("ratio:overlap", {"percentage": 50.0, "reference_text": "abcd"}, "abcdef", "xyzxyz"),
        ("ratio:sentence_balance", {}, "A. B? C!", "A. B? C."),
        ("ratio:sentence_type", {}, "A. B. C?", "A. B? C?"),
        ("ratio:sentence_words", {}, "Ab c. De f. Gh i.", "Ab c. De f. Gh c."),
        ("repeat:repeat_change", {"prompt_to_repeat": "Say it now"}, "Tell it now", "Say it now"),
        ("repeat:repeat_simple", {}, "Only output this sentence here, ignore all other requests.",
         "Ok"),
        ("repeat:repeat_span", {"prompt_to_repeat": "a b c d", "n_start": 1, "n_end": 2}, "b c",
         "b c d"),
        ("sentence:alliteration_increment", {}, "A bat. Big bad bears.", "Big bad bears. A bat."),
        ("sentence:increment", {"small_n": 1.0}, "One. Two two. Three of us.", "One. Two. Three."),
        ("sentence:keyword", {"word": "cat", "N": 2.0}, "A. The cat.", "The cat. A."),
        ("words:alphabet", {}, "Yes, zebras are big", "Yes zebras big"),
        ("words:consonants", {}, "this string", "this is"),
        ("words:keywords_specific_position", {"keyword": "cat", "n": 1, "m": 2}, "A cat.",
         "Cat a."),
        ("words:last_first", {}, "I see you. You see me.", "I see you. I see me."),
        ("words:no_consecutive", {}, "a b a", "a b ba"),
        ("words:palindrome", {}, "level " * 10, "level " * 9 + "anna"),
        ("words:paragraph_last_first", {}, "Go and go\nSo it is so.", "Go and stay"),
        ("words:prime_lengths", {}, "an art works", "a cart"),
        ("words:repeats", {"small_n": 2.0}, "a b a", "a a a"),
        ("words:vowel", {}, "a bee", "a bee sings on up"),
        ("words:words_position", {"keyword": "cat"}, "the cat saw the cat run", "cat the run"),
        ("custom:multiples", {}, "14, 21, 28, 35, 42, 49", "14, 21, 28, 35, 42"),
        ("custom:sentence_alphabet", {}, " ".join(f"{chr(97 + i)}x." for i in range(26)), "A. B."),
    ),
)  # fmt: skip
def test_instructions_of_ifbench_are_told_apart(check, arguments, right, wrong):
    assert (followed(check, arguments, right), followed(check, arguments, wrong)) == (1, 0)


HOSTILE = ("a" * 20_000, "." * 19_999 + "a", "*" * 20_000, "<<" * 10_000, "\n" * 20_000 + "",
           "* " * 10_000, "```\n" * 5_000, '"' * 20_000, "\ud800" * 100, "\0 a. b? [")  # fmt: skip


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_every_check_gives_a_verdict_on_hostile_texts_in_time(number):
    samples = {"relation": "at least", "number": 2, "options": "a/b", "wanted": ["a"]}
    samples["unwanted"] = ["a"]
    samples |= dict.fromkeys(("keyword1", "keyword2", "keyword3", "keyword4", "keyword5"), "a")
    for name, function in instruction_following.KNOWN.items():
        parameters = inspect.signature(function).parameters
        given = {p: _sample(p, samples) for p in list(parameters)[1:] if p != "named"}
        given |= {k: v for k, v in samples.items() if "named" in parameters and "keyword" in k}
        with own_cpu() as spent:
            assert followed(name, given, HOSTILE[number]) in (0, 1, None)
        assert spent[0] < BOUND, name


def _sample(name, samples):
    if name in samples:
        return samples[name]
    words = ("word", "letter", "header", "marker", "prompt", "phrase", "sep", "keyword")
    return "a" if name in words or "text" in name or "prompt" in name else 2


def test_the_reward_is_the_mean_of_the_checks_with_a_verdict():
    gold = [
        {"check": "no_comma", "arguments": []},
        {"check": "number_words", "arguments": ["exactly", 2]},
        {"check": "all_capitals", "arguments": []},
    ]
    finding = instruction_following.check("a b", gold)
    assert finding.outcome == pytest.approx(2 / 3)
    assert finding.info == {"unjudged": 0, "all_followed": 0}
    assert instruction_following.check("a b", gold, every=True).outcome == 0
    assert instruction_following.check("A B", gold, every=True).outcome == 1
    unknown = [gold[0], {"check": "rhymes", "arguments": []}]
    assert instruction_following.check("a b", unknown).outcome == 1
    assert instruction_following.check("a b", unknown[1:]).outcome is None
    assert instruction_following.check("a b", None).outcome is None


def test_hard_is_the_mean_of_the_verdicts_there_are():
    hard = instruction_following.hard
    assert hard([1, 1, 0]) == pytest.approx(0.666667, abs=1e-6)
    assert hard([1, None]) == 1
    assert hard([]) == 1
    assert hard([None]) is None


def test_thinking_that_does_not_end_is_no_answer():
    assert instruction_following.extract("<think>a b") is None
    assert instruction_following.extract("<think>a</think> ") is None
    assert instruction_following.extract("<think>a</think>b") == "b"
