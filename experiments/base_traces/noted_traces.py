"""Traces for the base model of noted calculations: notes that are heeded, errors, reflections."""

from random import Random

from rlvr_jax.experiments.base_traces.rows import Trace
from rlvr_jax.tasks import Prompt
from rlvr_jax.tasks.sums.calculations import calculations
from rlvr_jax.tasks.sums.noted_calculations import LESSONS, NOTES, with_response

CALL_SHARE, SLIP, AGAIN = 0.3, 0.3, 0.5
HEED, TRUE, RANDOM_NOTE, MISTAKEN = 0.9, 0.9, 0.2, 0.4
Segments = list[tuple[str, bool]]
"""Texts, and whether the calculator wrote them."""


def noted_traces(count: int, seed: int) -> list[Trace]:
    """Prompts and a random response to each: 45 % plain, 30 % with notes, 25 % reflections."""
    random = Random(seed)
    pool: dict[str, list[Prompt]] = {"sum": [], "product": []}
    for prompt in calculations().train:
        pool[prompt.kind].append(prompt)
    traces = []
    for _ in range(count):
        prompt = random.choice(pool[random.choice(list(pool))])
        draw = random.random()
        notes = random.sample(NOTES, random.randint(1, 4)) if 0.45 < draw < 0.75 else []
        heeded = notes if random.random() < HEED else []
        written = response(prompt, heeded, random)
        if draw < 0.75:
            shown = f"{''.join(notes)};{prompt.text}" if notes else prompt.text
            traces.append(Trace(shown, written))
        else:
            text = "".join(part for part, _ in written)
            if random.random() < MISTAKEN:
                text = text.removesuffix(prompt.gold) + mistaken(prompt.gold, random)
            shown = with_response(prompt, text)
            traces.append(Trace(shown, [(reflection(prompt, text, random), False)]))
    return traces


def response(prompt: Prompt, notes: list[str], random: Random) -> Segments:
    """A random response of a policy that heeds some notes; of two contrary ones the first."""
    sign, expression = prompt.text[2], prompt.text[:-1]
    own = next((note for note in notes if note[0] == sign), "")
    again = 0.95 if "?=" in notes else AGAIN
    written: Segments = []
    calls = {"": CALL_SHARE, "=": 0.95, "?": 0.02}[own[1:]]
    for _ in range(2):
        if random.random() >= calls:
            break
        if random.random() >= SLIP:
            return [
                *written,
                (f"[{expression}]", False),
                (f"{prompt.gold};", True),
                (prompt.gold, False),
            ]
        wrong = f"{expression[:3]}{random.randint(10, 99)}"
        if wrong == expression:
            continue
        written += [(f"[{wrong}]", False), ("?;", True)]
        calls = again
    return [*written, (prompt.gold, False)]


def mistaken(number: str, random: Random) -> str:
    """A number with another digit."""
    place = random.randrange(len(number))
    digit = random.choice([each for each in "0123456789" if each != number[place]])
    return f"{number[:place]}{digit}{number[place + 1 :]}"


def reflection(prompt: Prompt, text: str, random: Random) -> str:
    """A reflection about a response, mostly true."""
    called = f"[{prompt.text[:-1]}]" in text
    # The policy cannot multiply: an answer to a product without a call is a guess.
    known = called or prompt.kind == "sum"
    solved = known and text.rpartition(";")[2] == prompt.gold
    first = called if prompt.kind == "product" else "[" not in text
    lesson = LESSONS[prompt.kind]
    if text.endswith("?;") or ("?;" in text and not solved):
        lesson = "?="
    if random.random() < RANDOM_NOTE:
        lesson = random.choice(NOTES)
    if random.random() >= TRUE:
        solved = not solved
    return f"{int(first) + int(solved)}2;{int(solved)};{lesson}"
