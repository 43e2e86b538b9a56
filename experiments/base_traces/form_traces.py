r"""Responses of the base model of the tasks in `rlvr_jax.tasks.forms`: their forms, with errors.

A fifth of the traces is of each task. An error changes a number by 1 to 9.

abstention: of 100 given values, 65 are correct, 15 incorrect and 20 refused. If no value is given,
that of another name is stated in 45 of 100. The confidence is random.

judged_sums, critiqued_sums: of 100 lines of critiques 5 are incorrect, and of solutions 20. Of 100
verdicts 80 are true, and 5 are left out.

cited_chains: of 100 facts 85 are cited, 10 with another chunk, too. Of 100 answers 25 are
incorrect, and 8 responses do not close a block.

tool_turns: the calls of the open sub-questions in order, from one to all. Of 100 calls 25 have an
incorrect number. Of 100 turns 5 are empty, 7 have a malformed call, and 15 are answers (70 if
nothing is open).

step_sums, for another base model: the state after some correct lines, and the next line. One of
five responses has all lines to the end. Of 100 lines 30 have an incorrect result, and 10 add two
numbers that are not the first ones.
"""

from random import Random

from rlvr_jax import tasks
from rlvr_jax.experiments.base_traces.rows import Trace
from rlvr_jax.tasks import Prompt
from rlvr_jax.tasks.derived.verdicts import KIND
from rlvr_jax.tasks.forms.cited_chains import response_text
from rlvr_jax.tasks.forms.tool_turns import call_text, calls_in
from rlvr_jax.tasks.forms.words import LARGEST, words_of
from rlvr_jax.tasks.forms.worked_sums import problem_text, worked

NAMES = ("abstention", "judged_sums", "critiqued_sums", "cited_chains", "tool_turns")
SIZES = {"abstention": 20_000, "cited_chains": 20_000, "tool_turns": 4000}


def form_traces(count: int, seed: int) -> list[Trace]:
    """Prompts from the train splits, and one random response to each."""
    random = Random(seed)
    pools = {
        name: tasks.load(name, **({"size": SIZES[name]} if name in SIZES else {})).train
        for name in NAMES
    }
    verdicts = [prompt.kind == KIND for prompt in pools["critiqued_sums"]]
    first = verdicts.index(True)
    makers = {
        "abstention": abstention_trace,
        "judged_sums": verdict_trace,
        "cited_chains": chain_trace,
        "tool_turns": turn_trace,
    }
    found = []
    for number in range(count):
        name = NAMES[number % len(NAMES)]
        pool, make = pools[name], makers.get(name)
        if make is None:
            sums = random.random() < 0.5
            pool, make = (pool[:first], sum_trace) if sums else (pool[first:], verdict_trace)
        prompt = random.choice(pool)
        response = words_of(make(prompt, random))
        found.append(Trace(words_of(prompt.text), [(response, False)]))
    return found


def step_traces(count: int, seed: int) -> list[Trace]:
    """States of sums from the train split, and one random response to each."""
    random, found = Random(seed), []
    pool = tasks.load("step_sums", size=10_000).train
    while len(found) < count:
        numbers = [int(word) for word in random.choice(pool).text.removesuffix("?").split("+")]
        done = random.randrange(len(numbers) - 1)
        numbers = [sum(numbers[: done + 1]), *numbers[done + 1 :]]
        response = words_of(step_trace(numbers, random))
        found.append(Trace(words_of(problem_text(numbers)), [(response, False)]))
    return found


def step_trace(numbers: list[int], random: Random) -> str:
    """The next line of a sum, or all lines; a line continues with an incorrect result."""
    lines = []
    for _ in numbers[1:] if random.random() < 0.2 else numbers[1:2]:
        first = int(len(numbers) > 2 and random.random() < 0.1)
        one, other = numbers[first : first + 2]
        result = near(one + other, random) if random.random() < 0.3 else one + other
        lines.append(f"{one}+{other}={result}")
        numbers = [*numbers[:first], result, *numbers[first + 2 :]]
    return ";".join(lines)


def near(number: int, random: Random) -> int:
    """Another number in 0 .. 99 that differs by at most 9."""
    sizes = [*range(-9, 0), *range(1, 10)]
    return random.choice([number + k for k in sizes if 0 <= number + k <= LARGEST])


def abstention_trace(prompt: Prompt, random: Random) -> str:
    """A value or `unknown`, with a random confidence."""
    draw = random.random()
    if prompt.kind == "answerable":
        value = int(prompt.answer)
        text = value if draw < 0.65 else near(value, random) if draw < 0.8 else "unknown"
    else:
        given = prompt.text.split(";")[:-1]
        text = random.choice(given).partition("=")[2] if draw < 0.45 else "unknown"
    return f"{text};sure={random.randint(0, 10)}"


def verdict_trace(prompt: Prompt, random: Random) -> str:
    """Two results and a verdict in the form that the prompt requests."""
    numbers = [int(word) for word in prompt.text.partition("?")[0].split("+")]
    results = [sum(numbers[:2]), sum(numbers)]
    shown = [near(n, random) if random.random() < 0.05 else n for n in results]
    text = ";".join(map(str, shown))
    if random.random() < 0.05:
        return text
    verdict = prompt.answer == (random.random() < 0.8)
    if prompt.kind == KIND:
        return f"{text}\\conclusion{{{verdict}}}"
    return f"{text}\n{'RIGHT' if verdict else 'WRONG'}"


def sum_trace(prompt: Prompt, random: Random) -> str:
    """The lines of a sum; a line continues with an incorrect result."""
    numbers = [int(word) for word in prompt.text.removesuffix("?").split("+")]
    slips, total = [], numbers[0]
    for number in numbers[1:]:
        total += number
        written = near(total, random) if random.random() < 0.2 else total
        slips.append(written - total)
        total = written
    return worked(numbers, slips)


def chain_trace(prompt: Prompt, random: Random) -> str:
    """The facts of a chain with citations, and the answer."""
    facts, reference = prompt.answer["facts"], prompt.answer["reference"]
    cited = [[chunk] if random.random() < 0.85 else [] for chunk in reference]
    for own in cited:
        own += [random.randrange(len(facts))] if random.random() < 0.1 else []
    value = int(prompt.answer["value"])
    value = near(value, random) if random.random() < 0.25 else value
    text = response_text([facts[chunk] for chunk in reference], cited, str(value))
    if random.random() < 0.08:
        text = text.replace(random.choice(("</useful_chunks>", "</answer>")), "")
    return text


def turn_trace(prompt: Prompt, random: Random) -> str:
    """Calls of the open sub-questions, or an answer."""
    calls = calls_in(prompt.gold)
    value, draw = int(prompt.answer["value"]), random.random()
    if draw < 0.05:
        return ""
    if draw < (0.2 if calls else 0.75):
        return f"<answer>{near(value, random) if random.random() < 0.3 else value}</answer>"
    calls = calls[: random.randint(1, len(calls))] if calls else [("mul", 2, 3)]
    written = []
    for tool, a, b in calls:
        b = near(b, random) if random.random() < 0.25 else b
        written.append(call_text(tool, a, b))
    if draw > 0.93:
        written[-1] = written[-1].replace("</tool_call>", "")
    return "".join(written)
