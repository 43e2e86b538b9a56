"""Traces of the base models of brackets: attempts, and responses to hints and other answers.

An attempt has the right form with probability `right_share`, for any prompt. It is a solution of
its form, if there is one, with probability `left_skill` or `right_skill`, else a random legal
attempt. After a failure the trace ends with probability `give_up`, else it has a second one.

The shown traces have prompts with a hint (the first words of a solution) or with another answer.
That is a solution, a trace or an attempt, some of them miscalculated. With probability `heed` the
trace follows the prompt:

  - it completes a hint to a solution
  - it repeats a correct answer
  - after an incorrect answer it makes one attempt of the other form, a solution with probability
    `repair_skill`
"""

from dataclasses import dataclass

import numpy as np

from rlvr_jax.experiments.base_traces.rows import Trace
from rlvr_jax.tasks import Prompt
from rlvr_jax.tasks.brackets import LARGEST_VALUE, brackets, legal_attempts
from rlvr_jax.tasks.hinted_brackets import with_answer, with_hint


@dataclass(frozen=True, kw_only=True)
class Habits:
    """Distribution of the traces."""

    right_share: float = 0.03
    left_skill: float = 0.5
    right_skill: float = 0.07
    give_up: float = 0.5
    easy_share: float = 0.67
    # Of prompts with a hint or an answer.
    hint_share: float = 0.5
    answer_share: float = 0.4
    heed: float = 0.9
    repair_skill: float = 0.5


def bracket_traces(count: int, seed: int, habits: Habits, *, shown: bool = False) -> list[Trace]:
    """Random prompts and a random response to each; shown: with a hint or an answer."""
    random = np.random.default_rng([seed, 2] if shown else seed)
    prompts = brackets().train
    kinds = {k: [p for p in prompts if p.kind == k] for k in ("easy", "hard")}
    traces = []
    for _ in range(count):
        group = kinds["easy" if random.random() < habits.easy_share else "hard"]
        prompt = group[random.integers(len(group))]
        if shown:
            text, response = shown_response(prompt, habits, random)
        else:
            text, response = prompt.text, attempts_at(prompt, habits, random)
        traces.append(Trace(text.split(), [(response.split(), False)]))
    return traces


def attempts_at(prompt: Prompt, habits: Habits, random: np.random.Generator) -> str:
    """One random response to a prompt, without the stop token."""
    *numbers, target = prompt.answer
    attempts = []
    while len(attempts) < 2:
        form = "right" if random.random() < habits.right_share else "left"
        skill = habits.right_skill if form == "right" else habits.left_skill
        legal = [a for a in legal_attempts(*numbers) if a.form == form]
        solutions = [a for a in legal if a.value == target]
        pool = solutions if solutions and random.random() < skill else legal
        if not pool:
            continue
        attempts.append(pool[random.integers(len(pool))])
        if attempts[-1].value == target or random.random() < habits.give_up:
            break
    return " ; ".join(attempt.text for attempt in attempts)


def shown_response(prompt: Prompt, habits: Habits, random: np.random.Generator) -> tuple[str, str]:
    """The text of a prompt with a hint, an answer or both, and one random response to it."""
    *numbers, target = prompt.answer
    legal = legal_attempts(*numbers)
    solutions = [a.text for a in legal if a.value == target]
    draw = random.random()
    text = prompt.text
    if draw >= habits.hint_share:
        answer, response = shown_answer(prompt, habits, random)
        text = with_answer(prompt, answer)
    if draw < habits.hint_share or draw >= habits.hint_share + habits.answer_share:
        words = solutions[random.integers(len(solutions))].split()
        hint = " ".join(words[: 1 + random.integers(len(words))])
        text = with_hint(Prompt(text), hint)
        completed = [s for s in solutions if f"{s} ".startswith(f"{hint} ")]
        response = completed[random.integers(len(completed))]
    if random.random() >= habits.heed:
        response = attempts_at(prompt, habits, random)
    return text, response


def shown_answer(prompt: Prompt, habits: Habits, random: np.random.Generator) -> tuple[str, str]:
    """An answer, correct or incorrect, and the response of a policy that follows it.

    Of ten answers four are solutions, two or three are traces, the others attempts of either form,
    one of them miscalculated.
    """
    *numbers, target = prompt.answer
    legal = legal_attempts(*numbers)
    solutions = [a.text for a in legal if a.value == target]
    draw = random.random()
    if draw < 0.4:
        answer = solutions[random.integers(len(solutions))]
    elif draw < 0.65:
        answer = attempts_at(prompt, habits, random)
    else:
        form = ("left", "right")[random.integers(2)]
        pool = [a.text for a in legal if a.form == form] or solutions
        answer = pool[random.integers(len(pool))]
    if draw >= 0.9:
        # Miscalculated: another number in the place of the inner or the final value.
        words = answer.split()
        place = [i + 1 for i, word in enumerate(words) if word == "="][random.integers(2)]
        words[place] = str(random.integers(LARGEST_VALUE + 1))
        answer = " ".join(words)
    last = answer.split(" ; ")[-1]
    if last in solutions:
        return answer, last
    form = "right" if last.startswith("(") else "left"
    pool = [a for a in legal if a.form == form] or list(legal)
    solving = [a for a in pool if a.value == target]
    pool = solving if solving and random.random() < habits.repair_skill else pool
    return answer, pool[random.integers(len(pool))].text
