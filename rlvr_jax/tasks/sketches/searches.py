r"""Searches: questions about people, towns and rivers, whose facts a search finds in short texts.

    prompt    Ba Ko born river?
    response  <search>Ba Ko born</search>       the reply: <found>(1) Ba Ko born Li\n(2) …</found>
              <search>Li river</search>         the reply: <found>(1) Li town river Mu\n…</found>
              <answer>Mu</answer>

A fact has a person of two names or a town, a relation and a name. A question has one hop or two;
the question above is for the river at the town where Ba Ko was born. No person is in the questions
of both splits.

With `form="r1_searcher"`, a question ends with `?#`, searches have the tags of R1-Searcher, and
`</think>` is before the answer. Further forms of prompts:

    Li town river Mu\n…;Ba Ko born river?            passages (`show_hint`): the answer only
    Mu@                                              an answer (`show_answer`), for a question to it

Before a question, its writer searches for facts that lead to the answer. The question is the text
after the last reply (`read_problem`). The reward is the F1 of the answer if the form is correct, as
in ASearcher; the outcome is 1 if the answer is correct.

The base model often leaves out the second search of a question of two hops, or a tag. It seldom
answers from passages.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Annotated, Literal

from rlvr_jax.ranges import Count, Range
from rlvr_jax.tasks.base import Prompt, Response, Task
from rlvr_jax.tasks.generated import splits
from rlvr_jax.tasks.grading import one_by_one
from rlvr_jax.tasks.settings import ResponseTokens, Seed, Size, TestSize, task
from rlvr_jax.tasks.sketches.words import BASE_MODEL, NAMES
from rlvr_jax.tools import between, search, tags, toolbox
from rlvr_jax.tools.calls import Style
from rlvr_jax.verifiers.answers import in_tag
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.texts.r1_searcher import BEGIN, DOCUMENTS, DOCUMENTS_END, END
from rlvr_jax.verifiers.texts.short_answers import check, f1

__all__ = ["World", "form_of", "make_world", "searches"]

RELATIONS = ("river", "founder")
"""Relations of a town; a person has the relation `born`."""
ENDS = {"tags": "?", "r1_searcher": "?#"}
_QUESTION = re.compile(r"[A-Z][a-z] [A-Z][a-z] born(?: river| founder)?\?")


@dataclass(frozen=True)
class World:
    """People with their towns, and towns with their river and founder."""

    born: Mapping[str, str]
    towns: Mapping[str, Mapping[str, str]]

    @property
    def texts(self) -> list[str]:
        """A text for each fact, in alphabetical order."""
        facts = [f"{person} born {town}" for person, town in self.born.items()]
        facts += [
            f"{town} town {name} {own[name]}" for town, own in self.towns.items() for name in own
        ]
        return sorted(facts)


def make_world(people: int, random: Random) -> World:
    """A world with one town for every eight people."""
    names = random.sample(NAMES, len(NAMES))
    number = max(2, min(people // 8, len(NAMES) // 4))
    towns = {name: dict.fromkeys(RELATIONS, "") for name in names[:number]}
    others = iter(names[number:])
    for own in towns.values():
        own.update({relation: next(others) for relation in RELATIONS})
    born: dict[str, str] = {}
    while len(born) < people:
        born[" ".join(random.sample(NAMES, 2))] = random.choice(list(towns))
    return World(born, towns)


def form_of(form: str) -> tuple[Style, str]:
    """The style of the searches of a form, and the text between them and the answer."""
    if form == "tags":
        return tags({"search": "search"}, reply="found"), ""
    style = between(BEGIN, END, "search", f"\n{DOCUMENTS}\n", f"\n{DOCUMENTS_END}\n\n")
    return style, "</think>"


@task
def searches(
    people: Annotated[
        int, Range(16, 400), "number of people; there is a town for every eight, at most 17"
    ] = 160,
    documents: Annotated[Count, "number of texts that a search returns"] = 2,
    form: Annotated[
        Literal["tags", "r1_searcher"], "form of a search and of the response"
    ] = "tags",
    size: Size = 240,
    test_size: TestSize = 48,
    seed: Seed = 0,
    response_tokens: ResponseTokens = 96,
) -> Task:
    """Questions of one and of two hops, in equal numbers, and an environment with a search.

    `solution` has a search for each hop, and the answer. Texts that are found count as tokens of
    the response.

    Raises:
      ValueError: there are fewer different prompts than requested.
      ModuleNotFoundError: bm25s is not installed.
    """
    random = Random(f"searches world {seed}")
    world = make_world(people, random)
    persons = random.sample(list(world.born), people)
    held_out, rest = persons[: people // 6], persons[people // 6 :]

    def sampled(part):
        return lambda random, hops: _prompt(world, random.choice(part), hops, random, form)

    train, _ = splits("searches", sampled(rest), (1, 2), size, 1, seed)
    _, test = splits("searches", sampled(held_out), (1, 2), 1, test_size, seed)
    style, _ = form_of(form)
    return Task(
        name="searches",
        train=train,
        test=test,
        verify=partial(_verify, form),
        response_tokens=response_tokens,
        base_model=BASE_MODEL,
        answers=True,
        environment=toolbox(search(world.texts, documents), style=style, most=4, describe=False),
        show_hint=lambda prompt, passages: f"{passages};{prompt.text}",
        show_answer=lambda prompt, answer: f"{answer}@",
        read_problem=read_problem,
    )


def _prompt(world: World, person: str, hops: int, random: Random, form: str) -> Prompt:
    town = world.born[person]
    begin, end = ("<search>", "</search>") if form == "tags" else (BEGIN, END)
    question, answer, queries = f"{person} born", town, [f"{person} born"]
    if hops == 2:
        relation = random.choice(RELATIONS)
        question, answer = f"{question} {relation}", world.towns[town][relation]
        queries.append(f"{town} {relation}")
    gold = f"{form_of(form)[1]}<answer>{answer}</answer>"
    solution = [*(f"{begin}{query}{end}" for query in queries), gold]
    text = f"{question}{ENDS[form]}"
    return Prompt(text, answer, f"{hops}_hops", gold, solution=solution, meta={"level": hops})


def read_problem(prompt: Prompt, text: str) -> Prompt | None:
    """The question after the last reply, with the prompt's answer; None for another text."""
    question = text.rpartition("</found>")[2].strip()
    if _QUESTION.fullmatch(question) is None:
        return None
    return replace(Prompt(question, prompt.answer, prompt.kind, prompt.gold))


@one_by_one
def _verify(form: str, prompt: Prompt, response: Response) -> Grade:
    answer = None if response.truncated else in_tag(response.text)
    text, end = response.text, form_of(form)[1]
    kept = text.count("<answer>") == text.count("</answer>") == 1 and text.endswith("</answer>")
    kept = kept and (not end or text.count(end) == 1)
    if answer is None:
        return Grade(0.0)
    reward = f1(answer, prompt.answer) * kept
    return Grade(check(answer, prompt.answer), reward, answer=answer)
