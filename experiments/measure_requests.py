"""Replies of a policy of discussed sums to requests in words.

    python -m experiments.measure_requests

Prints the fractions of correct responses and of each form, to held-out prompts. The first line is
about plain prompts, the next ones about the experts of `meml_grpo`. Then replies to requests about
a correct and an incorrect response to one prompt:

  - notes (`mel`): readable ones, those that quote the incorrect response, and correct responses to
    these prompts without and with a note
  - ratings (`v1_pairwise`): readable ones, and their mean reward

and the questions after a response (`rl_v`, `rlbff`): the probability of both words, and how often
the likelier one is true. The last line is the log-prob of the unused token (`laser`).
"""

import re
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
import tyro

from rlvr_jax.diagnosis.held_out import HeldOut, evaluation_settings, load_held_out
from rlvr_jax.experience.evaluation import answered
from rlvr_jax.experience.stages.grading.verdicts import asked_rows
from rlvr_jax.experience.views import requesting, with_note, with_two_answers
from rlvr_jax.experiments.base_traces.request_traces import QUESTIONS, THOUGHT, UNUSED
from rlvr_jax.keys import plain_key
from rlvr_jax.methods.distillation.mel import REQUEST
from rlvr_jax.methods.distillation.meml_grpo import EXPERTS
from rlvr_jax.methods.judges.v1_pairwise import rating_reward, request_rating
from rlvr_jax.runs import described
from rlvr_jax.tasks import Prompt, Response
from rlvr_jax.tasks.sums.discussed_sums import BASE_MODEL
from rlvr_jax.training.statistics import verdicts
from rlvr_jax.types import is_correct

LINES = r"\d+\+\d+=\d+\n\d+\+\d+=\d+"
FORMS = {"lines": LINES, "thought": THOUGHT.format(lines=LINES, answer=r"\d+"), "answer": r"\d+"}
NOTE = re.compile(r"(?:line [12]|answer):([\d+=]+);mind the (?:carry|units)")


@dataclass(frozen=True)
class Config:
    """Policy and prompts."""

    model: Path = Path(BASE_MODEL)
    """Policy folder."""
    prompts: int = 256
    """Number of held-out prompts; each has `samples` responses."""
    samples: int = 8
    """Number of responses to a plain prompt; correct and incorrect ones are taken from them."""
    seed: int = 0
    """Seed of the responses."""


class Measured:
    """A policy that writes texts, and the grades of its texts."""

    def __init__(self, held_out: HeldOut, seed: int):
        self.task = held_out.sampler.task
        self._actor, self._key, self._calls = held_out.actor(), plain_key(seed), 0

    def write(self, texts: list[str]) -> list[str]:
        """A sampled text after each text; "" where it does not fit."""
        self._calls += 1
        chats = [[{"role": "user", "content": text}] for text in texts]
        key = jax.random.fold_in(self._key, self._calls)
        found = self._actor.write(chats, key, [0] * len(chats))
        return ["" if one is None else one.text for one in found]

    def correct(self, prompts: list[Prompt], texts: list[str]) -> np.ndarray:
        """Which texts are correct."""
        grades = self.task.verify(prompts, list(map(Response, texts)))
        return np.array([grade.outcome == 1 for grade in grades])


def main(config: Config) -> None:
    """Prints a line for each request."""
    settings = evaluation_settings(
        "discussed_sums", model=str(config.model), evaluation_prompts=config.prompts
    )
    held_out = load_held_out(settings)
    policy = Measured(held_out, config.seed)
    prompts = [held_out.loaded.test_table.prompts[index] for index in held_out.indices]
    plain = [policy.write([prompt.text for prompt in prompts]) for _ in range(config.samples)]
    graded = np.array([policy.correct(prompts, texts) for texts in plain])
    _print("plain", correct=graded.mean(), **_forms([text for texts in plain for text in texts]))
    for expert in EXPERTS:
        texts = policy.write([with_note(expert).show(p, policy.task).text for p in prompts])
        _print(expert, correct=policy.correct(prompts, texts).mean(), **_forms(texts))

    mixed = np.flatnonzero(graded.any(axis=0) & ~graded.all(axis=0))
    pairs = [
        [plain[int(np.argmax(own))][place] for own in (graded[:, place], ~graded[:, place])]
        for place in mixed
    ]
    asked = [prompts[place] for place in mixed]
    views = [requesting(with_two_answers(*pair), REQUEST) for pair in pairs]
    notes = policy.write([v.show(p, policy.task).text for v, p in zip(views, asked, strict=True)])
    read = [NOTE.fullmatch(note) for note in notes]
    quoted = [bool(own) and own[1] in pair[1] for own, pair in zip(read, pairs, strict=True)]
    noted = [with_note(n).show(p, policy.task).text for n, p in zip(notes, asked, strict=True)]
    _print(
        "notes",
        readable=np.mean([own is not None for own in read]),
        quoting=np.mean(quoted),
        correct_without=graded[:, mixed].mean(),
        correct_with=np.mean([policy.correct(asked, policy.write(noted)) for _ in range(4)]),
    )
    # The correct response is the first one of every other pair.
    ordered = [pair[::-1] if place % 2 else pair for place, pair in enumerate(pairs)]
    shown = [request_rating(p.text, *pair) for p, pair in zip(asked, ordered, strict=True)]
    earned = np.array(
        [
            rating_reward(text, (place % 2 == 0, place % 2 == 1), 0.2)
            for place, text in enumerate(policy.write(shown))
        ]
    )
    _print("ratings", readable=np.mean(~np.isnan(earned)), reward=np.nanmean(earned))
    _questions(held_out, config)


def _questions(held_out: HeldOut, config: Config) -> None:
    """Prints the replies after the responses of one sampling batch."""
    first = held_out.indices[: held_out.sampler.num_prompts]
    table, model = held_out.loaded.test_table, held_out.loaded.model
    batch = answered(held_out.sampler, held_out.params, table, first, plain_key(config.seed))
    lines = np.array(["=" in response.text for response in batch.responses])
    truths = is_correct(np.asarray(batch.rollouts.outcome)), lines

    def logp(question, answers):
        rows = asked_rows(batch, held_out.actor(), answers, question).rollouts
        return np.asarray(verdicts(model, held_out.loaded.params, rows))

    for question, truth in zip(QUESTIONS, truths, strict=True):
        found = logp(question, (" Yes", " No"))
        agrees = (found[:, 0] > found[:, 1]) == truth
        _print(
            question.strip(),
            probability=np.exp(found).sum(axis=1).mean(),
            true=agrees.mean(),
            of_yes=truth.mean(),
        )
    unused = logp("", (UNUSED,))
    _print(f"log-prob of {UNUSED}", mean=unused.mean(), deviation=unused.std())


def _forms(texts: list[str]) -> dict[str, float]:
    return {
        name: float(np.mean([re.fullmatch(form, text) is not None for text in texts]))
        for name, form in FORMS.items()
    }


def _print(name: str, **numbers: float) -> None:
    print(f"{name:<48}", *(f"{key} {value:.3f}" for key, value in numbers.items()), flush=True)


if __name__ == "__main__":
    main(tyro.cli(Config, description=described(__doc__)))
