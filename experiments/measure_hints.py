"""Effect of a hint or of another answer in the prompt on a policy of hinted brackets.

    python -m experiments.measure_hints --model rlvr_jax/tasks/base_models/hinted_brackets

Held-out prompts are shown plainly, with the first words of their gold as a hint, or with another
answer: the gold, or a legal attempt of a form that misses the target. A line for each kind has:

  - pass@1 and pass@32 of easy and hard prompts
  - the fraction of last attempts of the right form
  - the fraction of responses that are the shown answer
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
import tyro

from rlvr_jax import policy, tasks
from rlvr_jax.analysis import pass_at_k
from rlvr_jax.keys import plain_key
from rlvr_jax.rollout import Prompts, Sampling, sample
from rlvr_jax.runs import described
from rlvr_jax.tasks import Prompt, Response
from rlvr_jax.tasks.brackets import legal_attempts
from rlvr_jax.tasks.hinted_brackets import with_answer, with_hint


@dataclass(frozen=True)
class Config:
    """Policy, prompts and samples."""

    model: Path
    """Policy folder that reads hints, or any policy of brackets with `--plain`."""
    prompts: int = 128
    """Held-out prompts of each kind."""
    samples: int = 64
    """Responses per prompt."""
    plain: bool = False
    """Show plain prompts only."""
    held_out: str = "test"
    """Split, "test" or "dev"."""
    seed: int = 0
    """Seed of the choices and of the responses."""


# What is shown beside a prompt: its text with that, and the answer in it if there is one.
Shown = Callable[[Prompt, np.random.Generator], tuple[str, str]]


def hint(fraction: float) -> Shown:
    """The first words of the gold."""

    def shown(prompt, random):
        del random
        words = prompt.solution[: round(fraction * len(prompt.solution))]
        return with_hint(prompt, "".join(words)), ""

    return shown


def right_answer(prompt: Prompt, random: np.random.Generator) -> tuple[str, str]:
    """The gold."""
    del random
    return with_answer(prompt, prompt.gold), prompt.gold


def wrong_answer(form: str) -> Shown:
    """A random legal attempt of a form that misses the target; nothing where there is none."""

    def shown(prompt, random):
        *numbers, target = prompt.answer
        pool = [a.text for a in legal_attempts(*numbers) if a.form == form and a.value != target]
        answer = pool[random.integers(len(pool))] if pool else ""
        return with_answer(prompt, answer), answer

    return shown


SHOWN: dict[str, Shown] = {
    "plain": lambda prompt, random: (prompt.text, ""),
    **{f"hint {fraction:.0%}": hint(fraction) for fraction in (0.25, 0.5, 0.75)},
    "right answer": right_answer,
    "wrong answer, left": wrong_answer("left"),
    "wrong answer, right": wrong_answer("right"),
}


def main(config: Config) -> None:
    """Prints one line for each thing that is shown."""
    task = tasks.load("hinted_brackets", held_out=config.held_out)
    random = np.random.default_rng(config.seed)
    chosen = {}
    for kind in ("easy", "hard"):
        prompts = [prompt for prompt in task.test if prompt.kind == kind]
        order = random.permutation(len(prompts))[: config.prompts]
        chosen[kind] = [prompts[index] for index in sorted(order)]
    model, params = policy.load(config.model)
    tokenizer = policy.tokenizer(config.model)

    def measured(prompts: list[Prompt], shown: Shown) -> list[float]:
        texts, answers = zip(*(shown(prompt, random) for prompt in prompts), strict=True)
        rows = [tokenizer(text)["input_ids"] for text in texts]
        tokens = np.zeros((len(rows), max(map(len, rows))), np.int32)
        for index, row in enumerate(rows):
            tokens[index, : len(row)] = row
        rollouts = sample(
            model,
            params,
            Prompts(
                tokens,
                np.array([len(row) for row in rows]),
                np.arange(len(rows)),
                np.zeros(len(rows)),
            ),
            plain_key(config.seed),
            samples=config.samples,
            response_tokens=task.response_tokens,
            sampling=Sampling(),
            stop_tokens=(tokenizer.eos_token_id,),
        )
        rollouts = jax.device_get(rollouts)
        ends = rollouts.length - ~rollouts.truncated
        ids = [row[:end] for row, end in zip(rollouts.tokens, ends, strict=True)]
        responses = [
            Response(text, bool(cut))
            for text, cut in zip(tokenizer.batch_decode(ids), rollouts.truncated, strict=True)
        ]
        asked = [prompt for prompt in prompts for _ in range(config.samples)]
        grades = task.verify(asked, responses)
        outcome = np.array([grade.outcome for grade in grades]).reshape(-1, config.samples)
        given = np.repeat(answers, config.samples)
        return [
            outcome.mean(),
            pass_at_k(config.samples, outcome.sum(1), min(32, config.samples)).mean(),
            np.mean([grade.info["right_form"] for grade in grades]),
            np.mean(
                [response.text == text for response, text in zip(responses, given, strict=True)]
            ),
        ]

    print(f"{'':<20} | easy: @1  @32 right same | hard: @1  @32 right same")
    for name, shown in SHOWN.items():
        if config.plain and name != "plain":
            continue
        columns = [measured(chosen[kind], shown) for kind in ("easy", "hard")]
        numbers = " | ".join(" ".join(f"{x:.3f}" for x in column) for column in columns)
        print(f"{name:<20} | {numbers}", flush=True)


if __name__ == "__main__":
    main(tyro.cli(Config, description=described(__doc__)))
