"""Stores correct responses of a policy to the prompts of a task, as traces to learn from.

    python -m rlvr_jax traces --model runs/long/policy --task brackets --out teacher.jsonl
    python -m rlvr_jax train --method luffy_mixed --task traces:teacher.jsonl --run-dir runs/own

The policy samples several responses to each train prompt. Different correct ones are stored as
`solutions` of a row; `solution` is the shortest of them in tokens, or the first one. With
`--selected new_ngrams`, each stored one adds the most 4-grams to those before it. The program
prints how many prompts have a trace, and how many responses were correct.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import tyro

from rlvr_jax.experience.evaluation import answered, evaluation_sampler
from rlvr_jax.keys import plain_key
from rlvr_jax.runs import check_config, described, guarded, preset
from rlvr_jax.runs.config import flag
from rlvr_jax.runs.loading import load_policy
from rlvr_jax.runs.resolved import with_task
from rlvr_jax.runs.task import load_task
from rlvr_jax.tasks.derived.traces import trace_row
from rlvr_jax.tasks.synthesis.coverage import most_new_ngrams
from rlvr_jax.tasks.synthesis.lines import write_lines
from rlvr_jax.training.layout import make_reshard


@dataclass(frozen=True)
class Config:
    """Policy, prompts and sampling of the traces."""

    model: Path
    """Policy folder in Hugging Face's layout."""
    out: Path
    """Output file of JSON lines; an existing file is replaced."""
    task: str = "brackets"
    """Task, as in rlvr_jax train."""
    task_options: tuple[str, ...] = ()
    """Options of the task, as in rlvr_jax train."""
    columns: tuple[str, ...] = ()
    """Columns of the task's files, as in rlvr_jax train."""
    prompts: int = 0
    """Number of train prompts, from the first on; 0: all."""
    samples: int = 8
    """Responses per prompt."""
    per_prompt: int = 4
    """Highest number of correct responses that are stored per prompt."""
    selected: Literal["first", "new_ngrams"] = "first"
    """Which of them are stored: the first ones, or those of the most new 4-grams (Dr.SCI)."""
    shown: Literal["shortest", "first"] = "shortest"
    """Which of them is the solution."""
    temperature: float = 1.0
    """Sampling temperature."""
    response_tokens: int = 0
    """Budget of a response; 0: that of rlvr_jax train for the task."""
    seed: int = 0
    """Seed of the responses."""
    mesh: str = ""
    """Devices, as in rlvr_jax train."""


def main(arguments: Sequence[str]) -> None:
    """Samples, grades, writes; prints the content of the file."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    for name, least in (("prompts", 0), ("samples", 1), ("per_prompt", 1)):
        if getattr(config, name) < least:
            raise ValueError(f"{flag(name)} must be at least {least}, got {getattr(config, name)}")
    start = preset(config.task, "grpo")
    settings = start.replace(
        model=str(config.model),
        task_options=config.task_options,
        columns=config.columns,
        seed=config.seed,
        temperature=config.temperature,
        response_tokens=config.response_tokens or start.sampling.response_tokens,
        mesh=config.mesh,
        minibatches=1,
        micro_batches=0,
    )
    check_config(settings)
    task = load_task(settings)
    settings = with_task(settings, task)
    loaded = load_policy(settings, task, settings.policy.model)
    count = min(config.prompts or len(task.train), len(task.train))
    sampler = evaluation_sampler(
        loaded.sampler, count, config.samples, mesh_given=bool(config.mesh)
    )
    params = make_reshard(loaded.model, sampler.model)(loaded.params)
    found: list[dict[str, int]] = [{} for _ in range(count)]
    right = sampled = 0
    for first in range(0, config.samples, sampler.samples):
        for begin in range(0, count, sampler.num_prompts):
            # The last call is filled up with prompts that were asked before.
            indices = np.arange(begin, begin + sampler.num_prompts) % count
            key = plain_key(config.seed)
            batch = answered(sampler, params, loaded.train_table, indices, key, first)
            groups = min(sampler.num_prompts, count - begin)
            for place, rows in zip(indices[:groups], batch.groups, strict=False):
                for row in rows[: config.samples - first]:
                    sampled += 1
                    if (batch.grades[row].outcome or 0) < 1:
                        continue
                    right += 1
                    text = batch.responses[row].text
                    found[place].setdefault(text, int(batch.rollouts.length[row]))
    rows = []
    for prompt, answers in zip(task.train, found, strict=False):
        if answers:
            texts = [*answers]
            if config.selected == "new_ngrams":
                # Responses without a 4-gram add none.
                order = most_new_ngrams(texts, config.per_prompt)
                texts = [texts[place] for place in order] or texts
            texts = texts[: config.per_prompt]
            if config.shown == "shortest":
                texts.sort(key=answers.get)
            rows.append(trace_row(config.task, task, prompt, texts))
    if not rows:
        raise ValueError(f"no correct response to {count} prompts of {config.task!r} was sampled")
    write_lines(config.out, rows)
    print(f"{config.out}: traces of {len(rows)} of {count} prompts, {right} of {sampled} correct")


if __name__ == "__main__":
    guarded(main)
