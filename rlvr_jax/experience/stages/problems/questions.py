"""Questions that the policy makes up to a given answer, and its attempts at them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import jax
import numpy as np

from rlvr_jax.experience.asks import Shown, View
from rlvr_jax.experience.batch import concatenate
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.problems.written import (
    SOLVE,
    WRITE,
    WRITTEN,
    asks_of_problems,
    earned,
    pass_rates,
    read_problems,
    with_request,
)
from rlvr_jax.experience.store import empty_store, push, taken, uniform_places
from rlvr_jax.objectives import parabola
from rlvr_jax.tasks import Prompt, Task
from rlvr_jax.tasks.hints import answer_texts
from rlvr_jax.tools.calls import calls_in
from rlvr_jax.types.hyperparameters import Count, Finite, NonNegativeInt, Unit
from rlvr_jax.types.parts import part

__all__ = ["is_question", "pose_questions", "question_to", "read_stored", "stored"]

REQUEST = (
    "The answer above is given. Write a question that has this answer, without naming it, between"
    " ```text and ```."
)
BYTES = 2048
"""Of a stored question; longer ones are not stored."""


def is_question(
    text: str,
    answer: str,
    characters: tuple[int, int] = (10, 1000),
    least_words: int = 10,
    searches: Sequence[str] | None = None,
) -> bool:
    """Whether a text is a question to an answer: long enough, not too long, without the answer.

    Args:
      characters: least and most.
      searches: what was searched for to write it: at least two, none twice; None: nobody searched.
    Source: SSP, https://github.com/Alibaba-Quark/SSP.
    """
    fits = characters[0] <= len(text) <= characters[1] and len(text.split()) >= least_words
    searched = searches is None or (len(searches) >= 2 and len({*searches}) == len(searches))
    return fits and answer not in text and searched


@part
def question_to(searched: bool) -> View:
    """Shows the answer of a prompt without the prompt, and asks for a question to it.

    Args:
      searched: what there is to search with is told, if the environment does not say it itself.
    """

    def show(prompt: Prompt, task: Task) -> Shown:
        request, world = REQUEST, task.environment
        style = getattr(world, "style", None) if searched else None
        if style is not None and not world.start(prompt)[1]:
            request = f"{request}\n\n{style.explain(getattr(world, 'tools', ()))}"
        answer = _answers(prompt)[0]
        return with_request(request, answer, prompt_shown=False).show(prompt, task)

    return View(show)


def stored(problems: Sequence[Prompt]) -> np.ndarray:
    """Problems as rows of bytes, uint8 [n, BYTES]: text, answer and kind; of one that is too long
    nothing."""
    rows = np.zeros((len(problems), BYTES), np.uint8)
    for row, problem in zip(rows, problems, strict=True):
        line = json.dumps([problem.text, problem.answer, problem.kind]).encode()
        if len(line) <= BYTES:
            row[: len(line)] = np.frombuffer(line, np.uint8)
    return rows


def read_stored(rows: np.ndarray) -> list[Prompt]:
    """The problems of `stored`."""
    lines = (bytes(row).rstrip(b"\0") for row in rows)
    return [Prompt(*json.loads(line)) for line in lines]


@part
def pose_questions(
    penalty: Finite,
    reuse_below: Unit,
    capacity: Count,
    clear_every: Count,
    intermediate: bool = False,
    characters: tuple[int, int] = (10, 1000),
    least_words: NonNegativeInt = 10,
    searched: bool = False,
) -> Stage:
    """Has the policy write a question to the answer of every prompt, and answer it.

    Who asks sees the answer and not the prompt, but where a task shows answers in its own way
    (`Task.show_answer`). What is measured is the question as it was written: `meta["question"]` of
    what the task reads, where its prompts say more.

    What is no question (`is_question`) earns the penalty; another one 1 - s, s the share of its
    right answers, or the parabola 4 s (1 - s). In the place of what is no question stored ones are
    asked, of earlier steps. Questions that are solved at most at a given rate are stored. Cells: 0
    solve, 1 write. The answers to the prompts themselves are drawn once each, and not learned from.

    Args:
      penalty: reward of what is no question.
      reuse_below: rate up to which a question is stored, in [0, 1].
      capacity: questions that are kept, the newest ones.
      clear_every: steps after which they are forgotten.
      intermediate: the parabola.
      characters, least_words: see `is_question`.
      searched: a question has to be searched for with the tools of the task's environment, by two
        calls at least, of which none stands twice; for a draw in turns.
    Writes: reward, cell. Metrics: valid_questions (share), question_rate (s), question_reward,
      reused_questions, kept_questions; searches (calls of who asks, a mean).
    Raises:
      ValueError: a number outside its range; when a run begins, a task without tools for questions
        that have to be searched for.
    Source: SSP, https://github.com/Alibaba-Quark/SSP.
    """

    def init(setting):
        if searched and getattr(setting.task.environment, "style", None) is None:
            raise ValueError(
                "pose_questions: task must have an environment of tools to search with, got"
                f" {setting.task.name!r}"
            )
        return empty_store(capacity, problem=((BYTES,), np.uint8))

    def apply(batch, actor, state, turn):
        task, setting = turn.setting.task, turn.setting
        if turn.step % clear_every == 0:
            state = init(setting)
        plain = batch.asks_of(np.ones(len(batch.groups), bool))
        asks = [replace(ask, view=question_to(searched), samples=1) for ask in plain]
        written = actor.draw(asks, turn.key)
        found = read_problems(written, actor, turn)
        searches = [
            _searches(response.text, task) if searched else None for response in written.responses
        ]
        valid = [
            problem is not None
            and all(
                is_question(_stated(problem), answer, characters, least_words, own)
                for answer in _answers(ask.prompt)
            )
            for problem, ask, own in zip(found, plain, searches, strict=True)
        ]
        problems = [problem for problem, good in zip(found, valid, strict=True) if good]
        places = uniform_places(state, len(plain) - len(problems), turn.random())
        old = read_stored(taken(state, np.sort(places))["problem"])
        told = {"valid_questions": float(np.mean(valid))}
        if searched:
            told["searches"] = float(np.mean([len(own) for own in searches]))
        told |= {"reused_questions": float(len(old))}
        reward, parts = np.full(len(written), float(penalty)), []
        if problems or old:
            whole = [*problems, *old]
            asked = asks_of_problems(whole, [SOLVE] * len(whole), setting.samples, task)
            solved = actor.grade(actor.draw(asked, jax.random.fold_in(turn.key, 1)))
            rates = pass_rates(solved.outcomes())
            own = rates[: len(problems)]
            reward[np.array(valid)] = np.asarray(parabola(own)) if intermediate else 1 - own
            kept = [
                problem
                for problem, rate, row in zip(problems, own, stored(problems), strict=True)
                if rate <= reuse_below and row.any()
            ]
            if kept:
                state = push(state, {"problem": stored(kept)}, turn.step)
            told["question_rate"] = float(rates.mean())
            parts.append(solved)
        told |= {"question_reward": float(reward.mean()), "kept_questions": float(state.held)}
        return concatenate([earned(written, reward, WRITE), *parts]).renumbered(), state, told

    return Stage(
        apply,
        init,
        views=(question_to(searched), WRITTEN),
        size=lambda samples: 1,
        writes=frozenset({"cell"}),
        most=2.0,
        by_row=True,
    )


def _searches(text: str, task: Task) -> list[str]:
    """What was searched for in a text, call by call; a malformed call is none."""
    calls = calls_in(text, task.environment.style)
    return [str(call.arguments) for call in calls if not call.wrong]


def _stated(problem: Prompt) -> str:
    """The question as it was written, where the task puts more into a prompt."""
    return problem.meta.get("question", problem.text)


def _answers(prompt: Prompt) -> list[str]:
    """The texts that say an answer; the first one is shown."""
    return answer_texts(prompt) or [str(prompt.answer)]
