"""Trains one base model on one task by GRPO and by Clip-Cov, in parallel.

    python -m rlvr_jax quickstart

Both have the same seed and budget, and one core each. GRPO sharpens the habit of the base model and
loses the rarer strategy that the hard prompts need. Clip-Cov preserves and learns it in most seeds.
One seed is one sample; `python -m rlvr_jax compare` shows several.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console
from rich.table import Table

from rlvr_jax.analysis.report import write_report
from rlvr_jax.boards import default_jobs, train_together
from rlvr_jax.runs import TrainConfig, check_directory, described, guarded, preset
from rlvr_jax.runs.run_writer import write_json

METHODS = ("grpo", "clip_cov")
ROWS = {
    "held-out pass@1": "held_out_pass_at_1",
    "held-out pass@8": "held_out_pass_at_8",
    "held-out pass@32": "held_out_pass_at_32",
    "entropy (nats per token)": "entropy",
    "rare strategy on hard prompts": "held_out_hard_info_right_form",
}


@dataclass(frozen=True)
class Config:
    """Settings of both runs."""

    run_dir: Path = Path("runs/quickstart")
    """Folder of one run directory per method, the report and the summary."""
    steps: int = 150
    """Rollout batches of each run."""
    seed: int = 0
    """Seed of both runs."""
    checkpoint_every: int = 0
    """Steps between checkpoints; 0: every five minutes and at the end."""
    resume: bool = False
    """Continue the runs in run_dir."""
    mesh: str = ""
    """Devices of each run, as in rlvr_jax train; empty: one. A run on a CPU has one device
    unless XLA_FLAGS sets more."""
    verbose: bool = False
    """Print every setting of both runs; config.json has them in any case."""


def main(arguments: Sequence[str]) -> None:
    """Trains, prints the comparison, writes report and summary."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    console = Console()
    check_directory(config.run_dir, config.resume)
    runs = {
        method: preset("brackets", method).replace(
            run_dir=config.run_dir / method,
            steps=config.steps,
            seed=config.seed,
            checkpoint_every=config.checkpoint_every,
            mesh=config.mesh,
            verbose=config.verbose,
        )
        for method in METHODS
    }
    for line in _begin(config, runs):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    summaries = dict(zip(runs, train_together(list(runs.values()), console), strict=True))
    write_json(config.run_dir / "summary.json", summaries)
    report = config.run_dir / "report.html"
    write_report(report, [config.run_dir / method for method in METHODS])
    console.print(_table(summaries))
    console.print(f"report: {report}", highlight=False, soft_wrap=True)
    console.print("next: responses token by token, another method, more seeds", highlight=False)
    for line in _next(config.run_dir):
        console.print(f"    {line}", highlight=False, markup=False, soft_wrap=True)


MINUTES = 1.7
"""Minutes of 150 steps of both runs on two idle cores; the whole command took 1:43."""


def _begin(config: Config, runs: Mapping[str, TrainConfig]) -> list[str]:
    """Methods and budget of the runs."""
    one = next(iter(runs.values()))
    prompts, samples = one.sampling.prompts_per_step, one.sampling.samples_per_prompt
    minutes = MINUTES * config.steps / 150 * max(1.0, len(runs) / default_jobs())
    hyperparameters = [
        f"{method} (preset {run.preset}): {', '.join(run.hyperparameters) or 'as published'}"
        for method, run in runs.items()
    ]
    return [
        f"{' and '.join(runs)} train one small base model on the task {one.data.task}, in parallel,"
        f" seed {config.seed} each",
        "task    the policy completes equations; the hard third of them needs a rarer strategy",
        f"step    {prompts} prompts × {samples} samples, {one.plan.updates} updates at"
        f" {one.optimizer.learning_rate:g}; {config.steps} steps",
        f"method  {'; '.join(hyperparameters)}",
        f"where   {config.run_dir}: a run directory per method, with all settings in config.json",
        f"time    about {_minutes(minutes)} on a laptop; each line has the time left",
    ]


def _minutes(minutes: float) -> str:
    return f"{minutes:.0f} minutes" if minutes >= 1.5 else "a minute"


def _next(directory: Path) -> list[str]:
    """Three commands to go on with: responses token by token, another method, more seeds."""
    train, compare, sample = map(_command, ("train", "compare", "sample"))
    policy = directory / METHODS[1] / "policy"
    return [
        f"{sample} --model {policy} --task brackets",
        f"{train} --method dapo --task brackets --run-dir runs/dapo",
        f"{compare} --methods {' '.join(METHODS)} --seeds 5",
    ]


def _command(name: str) -> str:
    """The command line of a program, in the form in which this one was called."""
    return (
        f"python -m {__package__}.{name}"
        if __package__ == "experiments"
        else (f"python -m rlvr_jax {name}")
    )


def _table(summaries: dict[str, dict]) -> Table:
    n = summaries[METHODS[0]]["n"]
    table = Table(title=f"{METHODS[0]} and {METHODS[1]} (n = {n} samples per held-out prompt)")
    table.add_column("")
    table.add_column("start", justify="right")
    for method in METHODS:
        table.add_column(method, justify="right")
    for label, key in ROWS.items():
        start = summaries[METHODS[0]].get(f"{key}_start")
        ends = [summaries[method].get(f"{key}_end") for method in METHODS]
        if start is not None:
            table.add_row(label, f"{start:.3f}", *(f"{end:.3f}" for end in ends))
    return table


if __name__ == "__main__":
    guarded(main, join=False)
