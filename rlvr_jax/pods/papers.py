"""Published settings as experiments: run on a slice, compiled for one, or tried on a laptop."""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax

from rlvr_jax.parallel.report import describe_report
from rlvr_jax.parallel.topologies import describe
from rlvr_jax.pods.compiled import compile_run
from rlvr_jax.policy.published import PUBLISHED
from rlvr_jax.runs.command import describe_end, train
from rlvr_jax.runs.command_line import parse_config
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.runs.config_checks import check_config
from rlvr_jax.runs.hyperparameters import method_arguments

# Of a run that only shows that it works: sums and products of two-digit numbers, and their base.
_LAPTOP = {
    "task": "calculations",
    "steps": 2,
    "prompts_per_step": 16,
    "samples_per_prompt": 4,
    "response_tokens": 0,
    "prompt_tokens": 0,
    "drop_long_prompts": False,
    "warmup_updates": 0,
    "learning_rate": 3e-4,
    "compute_dtype": "float32",
    "remat": "none",
    "evaluation_prompts": 8,
    "evaluation_samples": 4,
}
# What every run has, whether its source names it or not.
_ALWAYS = ("temperature", "mask_truncated", "warmup_updates", "adam_b1", "adam_b2")
_ALWAYS += ("weight_decay", "max_gradient_norm")
_MOST_UPDATES = 4  # a step of a laptop's run has sixteen prompts


@dataclass(frozen=True)
class Setting:
    """A value and its source.

    Fields:
      value: of a field of `TrainConfig`.
      source: "script", "paper", …; "unknown": not found, the value here is ours.
    """

    value: Any
    source: str


@dataclass(frozen=True)
class Paper:
    """One published run.

    Fields:
      name: of its file in `experiments/papers`.
      title, url: of the paper or the code.
      method: name of the method in this library.
      model: name of a shape in `PUBLISHED`.
      start: the initial policy, as published.
      data: the training data.
      settings: by field of `TrainConfig`.
      hyperparameters: of the method, by name, if they differ from its defaults.
      laptop: hyperparameters that must differ for a budget of about twenty tokens.
      reported: results of its authors.
      missing: parts of the paper that are not implemented, a sentence each.
    """

    name: str
    title: str
    url: str
    method: str
    model: str
    start: str
    data: str
    settings: Mapping[str, Setting]
    hyperparameters: Mapping[str, Setting] = field(default_factory=dict)
    laptop: Mapping[str, Any] = field(default_factory=dict)
    reported: str = ""
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.title}", self.url, f"start {self.start}; data {self.data}", ""]
        given = {**self.settings, **self.hyperparameters}
        config = settings(self)
        silent = {name: Setting(config.flat[name], "unknown") for name in _ALWAYS}
        own = method_arguments(config)
        silent |= {name: Setting(value, "as the method has it") for name, value in own.items()}
        for name, each in {**given, **{n: x for n, x in silent.items() if n not in given}}.items():
            lines.append(f"  {name:22} {each.value!s:12} {each.source}")
        lines += ["", f"reported: {self.reported}"] if self.reported else []
        lines += [f"missing: {sentence}" for sentence in self.missing]
        return "\n".join(lines)


def settings(paper: Paper) -> TrainConfig:
    """The paper's run without its data and its policy folder.

    Raises:
      ValueError: a setting that cannot work.
    """
    given = {name: each.value for name, each in paper.settings.items()}
    pairs = tuple(f"{name}={each.value}" for name, each in paper.hyperparameters.items())
    own = dict(compute_dtype="bfloat16", remat="layers", drop_long_prompts=True)
    config = TrainConfig.of(method=paper.method, hyperparameters=pairs, **{**own, **given})
    check_config(config)
    return config


def laptop(paper: Paper) -> TrainConfig:
    """The same with the small base model of calculations, a few prompts and two steps."""
    config = settings(paper)
    pairs = {name: each.value for name, each in paper.hyperparameters.items()} | paper.laptop
    updates = min(config.update.minibatches, _MOST_UPDATES)
    return config.replace(
        **_LAPTOP,
        minibatches=updates,
        dynamic_sampling=min(config.sampling.dynamic_sampling, 2),
        hyperparameters=tuple(f"{name}={value}" for name, value in pairs.items()),
    )


def compiled(paper: Paper, topology: str, options: Sequence[str] = ()) -> dict[str, Any]:
    """The report of the paper's functions, compiled for a slice that is not present.

    Args:
      options: of `python -m rlvr_jax train`; they replace the paper's settings.
    Raises:
      ValueError: an unknown slice, or settings that do not match it.
    """
    config = parse_config(options, start=settings(paper))
    return compile_run(config, PUBLISHED[paper.model], describe(topology))


def run_paper(paper: Paper, arguments: Sequence[str]) -> int:
    """The command line of a paper: `--data` and `--model` run it, `--compile` compiles it.

    Returns:
      The exit code: 1 if something does not fit the slice.
    """
    parser = argparse.ArgumentParser(
        description=f"{paper}\n\nOther arguments are options of rlvr_jax train.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--data",
        help="jsonl:FILE, json:FILE, csv:FILE or parquet:FILE. A row has a question and its answer:"
        " prompt and answer, or the columns of verl, TRL, DAPO-Math, GSM8K, MATH or Open-R1. Name"
        " other columns with --columns prompt=…,answer=…",
    )
    add("--compile", metavar="SLICE", help="print memory and cost on a slice (v5e-256, v5p-64, …)")
    add("--json", action="store_true", help="with --compile: print one JSON object")
    add("--laptop", action="store_true", help="train a small model on arithmetic for two steps")
    own, others = parser.parse_known_args(arguments)
    if own.compile:
        # With libtpu there JAX would look for a TPU; only shapes are computed with.
        jax.config.update("jax_platforms", "cpu")
        report = {"model": paper.model, **compiled(paper, own.compile, others)}
        print(json.dumps(report) if own.json else describe_report(report))
        return 0 if report["fits"] else 1
    if own.laptop:
        start = laptop(paper)
    elif own.data or "--resume" in others:
        start = settings(paper)
        start = start.replace(task=own.data or start.data.task)
    else:
        raise ValueError(
            "one of --data, --compile and --laptop must be given, got none; --help shows the"
            " settings of the paper"
        )
    print(paper)
    start = start.replace(run_dir=Path("runs") / paper.name)
    config = parse_config(others, start=start)
    print(describe_end(config, train(config)))
    return 0
