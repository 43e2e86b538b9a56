"""Lookup: questions about an invented world, whose facts a search finds in texts."""

from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Annotated, Literal

from rlvr_jax.ranges import Count, Range
from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.checked import verifier
from rlvr_jax.tasks.generated import SIZE, TEST_SIZE, splits
from rlvr_jax.tasks.settings import ResponseTokens, Seed, Size, TestSize, task
from rlvr_jax.tools import between, search, tags, toolbox
from rlvr_jax.verifiers.checks import Check
from rlvr_jax.verifiers.fences import last_fence
from rlvr_jax.verifiers.texts.r1_searcher import BEGIN, DOCUMENTS, DOCUMENTS_END, END

_ONE = {
    "born": ("{person} was born in the town of {town}.", "In which town was {person} born?"),
    "works": ("{person} works as a {job}.", "As what does {person} work?"),
}
_TWO = {
    "river": (
        "The town of {town} lies on the river {river}.",
        "On which river lies the town where {person} was born?",
    ),
    "founder": (
        "{town} was founded by {founder}.",
        "Who founded the town where {person} was born?",
    ),
}
_JOBS = ("baker", "carpenter", "doctor", "farmer", "fisher", "judge", "lawyer", "miller", "nurse")
_WORDS = {"born": "born", "works": "works", "river": "river", "founder": "founded"}
_INSTRUCTIONS = {
    "tags": (
        "Search by writing <search>words</search>; what is found stands in <found>. Give the answer"
        " in <answer></answer>."
    ),
    "r1_searcher": (
        "Think first, and end your thoughts by </think>. In them, search by writing"
        f" {BEGIN}words{END}; what is found is shown between {DOCUMENTS} and {DOCUMENTS_END}. Then"
        " give the answer in <answer></answer>."
    ),
}
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


_Hops = Annotated[int, Range(1, 2), "numbers of hops of a question (its level), each equally often"]


@task
def lookup(
    people: Annotated[
        int, Range(8), "number of people in the world; there is a town for every eight"
    ] = 1200,
    min_hops: _Hops = 1,
    max_hops: _Hops = 2,
    documents: Annotated[Count, "number of texts that a search returns"] = 3,
    form: Annotated[
        Literal["tags", "r1_searcher"], "form of a search and of the response"
    ] = "tags",
    size: Size = SIZE,
    test_size: TestSize = TEST_SIZE,
    seed: Seed = 0,
    response_tokens: ResponseTokens = 256,
) -> Task:
    """Questions of one hop (a text has the answer) and of two (a text names the text that has it).

    No person is in the questions of both splits. The task has an environment: `turns()` lets the
    policy search, and without it the answers are unknown. `solution` has a search for each hop,
    and the answer. The seed determines the world and the prompts. Texts that are found count as
    tokens of the response.

    Raises:
      ValueError: there are fewer different prompts than requested.
      ModuleNotFoundError: bm25s is not installed.
    """
    world = _world(people, seed)
    wanted, rest = divmod(test_size, max_hops - min_hops + 1)
    held_out = world.people[: min(people - 1, wanted + (rest > 0))]
    asked = {"test": held_out, "train": world.people[len(held_out) :]}

    def sampled(part):
        return lambda random, hops: _prompt(world, random.choice(asked[part]), hops, random, form)

    hops = range(min_hops, max_hops + 1)
    train, _ = splits("lookup", sampled("train"), hops, size, 1, seed)
    _, test = splits("lookup", sampled("test"), hops, 1, test_size, seed)
    style = tags({"search": "search"}, reply="found")
    if form == "r1_searcher":
        style = between(BEGIN, END, "search", f"\n{DOCUMENTS}\n", f"\n{DOCUMENTS_END}\n\n")
    return Task(
        name="lookup",
        train=train,
        test=test,
        verify=verifier(
            Check(
                "rlvr_jax.verifiers.texts.short_answers:check", "rlvr_jax.verifiers.answers:in_tag"
            ),
            workers=0,
        ),
        response_tokens=response_tokens,
        answers=True,
        read_problem=partial(read_problem, form=form),
        environment=toolbox(search(world.texts, documents), style=style, describe=False),
        notes=(f"a world of {people} people, {len(world.texts)} texts",),
    )


def read_problem(prompt: Prompt, text: str, form: str = "tags") -> Prompt | None:
    """The question of the last ```text fence, to be answered by searching like those of the task.
    `meta["question"]` is the question as written.

    Args:
      prompt: the prompt whose answer and kind it gets.
      text: a text of a policy.
      form: of the task.
    Returns:
      None if there is no such fence or it is empty.
    """
    stated = " ".join((last_fence(text, "text") or "").split())
    if not stated:
        return None
    text, meta = f"{stated} {_INSTRUCTIONS[form]}", {"question": stated}
    return Prompt(text, prompt.answer, prompt.kind, prompt.gold, meta=meta)


@dataclass(frozen=True)
class _World:
    people: list[str]
    facts: dict[str, dict[str, str]]
    texts: list[str]


def _world(people: int, seed: int) -> _World:
    random = Random(f"lookup world {seed}")
    taken: set[str] = set()

    def name(syllables):
        while True:
            made = "".join(
                random.choice(_CONSONANTS) + random.choice(_VOWELS) for _ in range(syllables)
            ).capitalize()
            if made not in taken:
                taken.add(made)
                return made

    towns = {}
    for _ in range(max(1, people // 8)):
        towns[name(3)] = {"river": name(2), "founder": f"{name(2)} {name(3)}"}
    facts, texts = {}, []
    for town, own in towns.items():
        texts += [form.format(town=town, **own) for form, _ in _TWO.values()]
    for _ in range(people):
        person = f"{name(2)} {name(4)}"
        town = random.choice(list(towns))
        own = {"person": person, "town": town, "job": random.choice(_JOBS), **towns[town]}
        facts[person] = own
        texts += [form.format(**own) for form, _ in _ONE.values()]
    random.shuffle(texts)
    return _World(list(facts), facts, texts)


def _prompt(world: _World, person: str, hops: int, random: Random, form: str) -> Prompt:
    own = world.facts[person]
    kind = random.choice(list(_ONE if hops == 1 else _TWO))
    question = (_ONE | _TWO)[kind][1].format(**own)
    answer = own[{"born": "town", "works": "job"}.get(kind, kind)]
    gold = f"<answer>{answer}</answer>"
    last = f"{person if hops == 1 else own['town']} {_WORDS[kind]}"
    searches = [last] if hops == 1 else [f"{person} born", last]
    begin, end = ("<search>", "</search>") if form == "tags" else (BEGIN, END)
    solution = [*(f"{begin}{query}{end}" for query in searches), gold]
    if form == "r1_searcher":
        gold = f"I search, then answer.</think>{gold}"
        solution[-1] = gold
    return Prompt(
        f"{question} {_INSTRUCTIONS[form]}",
        answer,
        f"{hops}_hops",
        gold,
        solution=solution,
        meta={"level": hops},
    )
