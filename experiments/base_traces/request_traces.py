r"""Traces of the base model of `discussed_sums`: answers in three forms, and replies to requests.

A line has a carry if its last digits add up to 10 or more. Of 100 lines with a carry 35 have an
incorrect result, of 100 others 10.

One kind of traces is responses to the prompt of a sum:

  - half of them: to the prompt only. 70 of 100 are lines, 20 thoughts, 10 the answer
  - 30 of 100: after the sentence of an expert of `meml_grpo`, in its form. The three forms are
    lines, thoughts with half of the errors, and the answer, which is guessed in 60 of 100 traces
  - 20 of 100: after a note of `mel`. The named lines have one error in 50 traces, and the error
    that the note shows is never repeated

A question follows each response: that of `rl_v` or that of `rlbff`, whose replies are true in 90 of
100 traces. The other kind of traces is replies to requests of `mel` and `v1_pairwise`, half of
each. Of 100 notes 90 are true. Replies with ratings compute the sum again, and 75 of 100 pairs of
ratings follow the truth.
"""

import re
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from rlvr_jax.experience.views import requesting, with_note, with_two_answers
from rlvr_jax.experiments.base_traces.form_traces import near
from rlvr_jax.experiments.base_traces.rows import Trace
from rlvr_jax.methods.distillation.mel import REQUEST
from rlvr_jax.methods.distillation.meml_grpo import EXPERTS
from rlvr_jax.methods.judges.rl_v import QUESTION
from rlvr_jax.methods.judges.rlbff import STEPS_SHOWN
from rlvr_jax.methods.judges.v1_pairwise import request_rating
from rlvr_jax.tasks import Prompt, load
from rlvr_jax.tasks.forms.words import LARGEST
from rlvr_jax.tasks.forms.worked_sums import problem_text
from rlvr_jax.tasks.sums.discussed_sums import lines_of

STOP, PADDING, UNUSED = "<end>", "<pad>", "<|vision_start|>"
_SHOWN = Prompt("{problem}"), load("discussed_sums")
NOTED = with_note("{note}").show(*_SHOWN).text
COMPARED = requesting(with_two_answers("{first}", "{second}"), REQUEST).show(*_SHOWN).text
RATED = request_rating("{problem}", "{first}", "{second}")
QUESTIONS = (QUESTION, STEPS_SHOWN)
THOUGHT = "<think>{lines}</think><response>{answer}</response>"
RULES = {True: "mind the carry", False: "mind the units"}
_NAMES = dict.fromkeys(("problem", "note", "first", "second"), "")
_TEXTS = [text.format(**_NAMES) for text in (NOTED, COMPARED, RATED)]
_TEXTS += [*EXPERTS, *QUESTIONS, *RULES.values(), *("line", "answer", " Yes", " No")]
_WORDS = [word for text in _TEXTS for word in re.findall(r" ?[A-Za-z]+|.", text, re.DOTALL)]
_TAGS = re.findall("<.*?>", THOUGHT)
VOCABULARY = tuple(
    dict.fromkeys([*map(str, range(LARGEST + 1)), *"+=;", *_WORDS, *_TAGS, UNUSED, STOP, PADDING])
)
PATTERN = "|".join(map(re.escape, sorted(VOCABULARY, key=len, reverse=True)))
FORMS, SHARES = ("lines", "thought", "answer"), (70, 20, 10)


class Written(NamedTuple):
    """A response to a sum: its text, its form, and the errors of its two lines."""

    text: str
    form: str
    slips: tuple[int, int]

    @property
    def correct(self) -> bool:
        return sum(self.slips) == 0


def request_traces(count: int, seed: int) -> list[list[Trace]]:
    """Responses with a question after each, and replies to requests about two responses."""
    random, prompts = Random(seed), [prompt.text for prompt in load("discussed_sums").train]
    sums = [[int(n) for n in text.removesuffix("?").split("+")] for text in prompts]
    makers = (answered, discussed)
    return [[make(random.choice(sums), random) for _ in range(count)] for make in makers]


def words_of(text: str) -> list[str]:
    """The words of a text."""
    return re.findall(PATTERN, text)


def answered(numbers: Sequence[int], random: Random) -> Trace:
    """A response to a sum, plain or with a note; then a question about it and its reply."""
    shown, draw = problem_text(numbers), random.random()
    if draw < 0.5:
        response = written(numbers, random.choices(FORMS, SHARES)[0], random)
    elif draw < 0.8:
        expert = random.randrange(len(EXPERTS))
        shown = NOTED.format(problem=shown, note=EXPERTS[expert])
        response = written(numbers, FORMS[expert], random, 0.5 if expert == 1 else 1.0)
    else:
        form = random.choices(FORMS, SHARES)[0]
        error = incorrect(numbers, random)
        shown = NOTED.format(problem=shown, note=note_about(numbers, error))
        response = written(numbers, form, random, 1.0, error)
    question = random.choice(QUESTIONS)
    truth = response.correct if question == QUESTION else "=" in response.text
    reply = " Yes" if truth == (random.random() < 0.9) else " No"
    segments = [(words_of(response.text), False), ([STOP], False), (words_of(question), True)]
    return Trace(words_of(shown), [*segments, ([reply], False)])


def discussed(numbers: Sequence[int], random: Random) -> Trace:
    """A reply to the request for a note about two responses, or for their ratings."""
    problem = problem_text(numbers)
    first = incorrect(numbers, random)
    second = written(numbers, random.choices(FORMS, SHARES)[0], random, 0.0)
    if random.random() < 0.5:
        shown = COMPARED.format(problem=problem, first=second.text, second=first.text)
        other = first if random.random() < 0.9 else incorrect(numbers, random)
        return Trace(words_of(shown), [(words_of(note_about(numbers, other)), False)])
    if random.random() < 0.3:
        first = written(numbers, first.form, random, 0.0)
    pair = [first, second]
    random.shuffle(pair)
    shown = RATED.format(problem=problem, first=pair[0].text, second=pair[1].text)
    draw, rating = random.random(), []
    for own in pair:
        high = own.correct == (draw < 0.75)
        rating.append(random.choice((9, 10) if high else (1, 2)) if draw < 0.9 else 5)
    reply = f"{sum(numbers)}\n{rating[0]},{rating[1]}"
    return Trace(words_of(shown), [(words_of(reply), False)])


def written(
    numbers: Sequence[int],
    form: str,
    random: Random,
    errors: float = 1.0,
    noted: Written | None = None,
) -> Written:
    """A random response of a form.

    Args:
      errors: multiple of the probabilities of an error.
      noted: the incorrect response that a note in the prompt is about.
    """
    slips, total = [], numbers[0]
    for line, number in enumerate(numbers[1:]):
        carry = total % 10 + number % 10 >= 10
        total += number
        chance = 0.35 if carry else 0.1
        chance = 0.02 if noted and noted.slips[line] else chance
        seen = total + noted.slips[line] if noted else None
        found = [near(total, random) for _ in range(2)] if random.random() < errors * chance else []
        result = next((own for own in found if own != seen), total)
        slips.append(result - total)
        total = result
    if form == "answer":
        result = total if random.random() < 0.4 or not errors else near(sum(numbers), random)
        slips = [0, result - sum(numbers)]
        return Written(str(result), form, tuple(slips))
    lines = lines_of(numbers, slips)
    text = lines if form == "lines" else THOUGHT.format(lines=lines, answer=total)
    return Written(text, form, tuple(slips))


def incorrect(numbers: Sequence[int], random: Random) -> Written:
    """A random incorrect response."""
    while True:
        found = written(numbers, random.choices(FORMS, SHARES)[0], random)
        if not found.correct:
            return found


def note_about(numbers: Sequence[int], response: Written) -> str:
    """The first incorrect line of a response, or its answer, and the digits to mind there."""
    line = 0 if response.slips[0] else 1
    left = [numbers[0], sum(numbers[:2])][line]
    rule = RULES[left % 10 + numbers[1 + line] % 10 >= 10]
    if response.form == "answer":
        return f"answer:{response.text};{rule}"
    shown = lines_of(numbers, response.slips).splitlines()[line]
    return f"line {line + 1}:{shown};{rule}"
