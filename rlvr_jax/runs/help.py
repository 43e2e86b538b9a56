"""`--help` of a run: every setting with its default, by subject."""

import ast
import dataclasses
import inspect
import itertools
import textwrap
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rlvr_jax.runs.config import TrainConfig

GROUPS: Mapping[str, tuple[str, ...]] = {
    "run": (
        *("method", "hyperparameters", "experience", "stage", "model", "run_dir", "steps"),
        *("sampled_tokens", "seed", "resume", "checkpoint_every", "log_to", "verbose"),
    ),
    "data": (
        *("task", "task_options", "columns", "prompt_tokens", "drop_long_prompts"),
        *("chat_template", "chat_template_kwargs", "system_prompt", "few_shot"),
        *("failed_grades", "unsafe_local"),
    ),
    "judge": ("judge", "judge_rubric", "judge_prompt", "judge_options", "judge_budget"),
    "sampling": (
        *("prompts_per_step", "samples_per_prompt", "response_tokens", "stop", "temperature"),
        *("top_k", "top_p", "min_p", "mask_truncated", "dynamic_sampling"),
        *("sample_waves", "rows_at_once"),
    ),
    "update": ("minibatches", "epochs", "micro_batches", "critic_epochs"),
    "optimizer": (
        *("learning_rate", "warmup_updates", "adam_b1", "adam_b2", "weight_decay"),
        *("max_gradient_norm", "critic_learning_rate"),
    ),
    "adapters": ("lora_rank", "lora_alpha", "lora_targets"),
    "devices": ("compute_dtype", "remat", "mesh", "sample_mesh", "compile_cache"),
    "evaluation": (
        *("evaluate_every", "evaluation_prompts", "evaluation_samples", "samples_kept"),
    ),
}


def print_help(start: TrainConfig, description: str, console: Console) -> None:
    """Prints all settings with the values that a command line starts from."""
    for paragraph in _paragraphs(description):
        console.print(escape(paragraph) + "\n", highlight=False)
    texts = _docstrings()
    for title, names in GROUPS.items():
        table = Table(
            title=f"[bold]{title}[/]",
            title_justify="left",
            show_header=False,
            box=None,
            padding=(0, 1),
        )
        table.add_column(no_wrap=True, style="cyan", width=24)
        table.add_column(overflow="fold", width=22, style="green")
        table.add_column(overflow="fold")
        for name in names:
            value = getattr(start, name)
            table.add_row(_option(name, value), escape(_text(value)), escape(texts[name]))
        console.print(table)
        console.print()
    console.print("Methods: `python -m rlvr_jax.methods`. Tasks: `python -m rlvr_jax.tasks`.")


def described(text: str | None, width: int | None = None) -> str:
    """Description of a program, for the help that `tyro` prints, in lines that fit.

    Args:
      width: of the terminal; None: as it is.
    """
    width = min(width or Console().width, 100)
    lines = []
    for paragraph in _paragraphs(text or ""):
        commands = paragraph.startswith(" ")
        lines += [
            "",
            *(paragraph.splitlines() if commands else textwrap.wrap(paragraph, width - 1)),
        ]
    # tyro joins lines but for those that begin with no letter.
    return "\n".join(f" {line}" if line else "" for line in lines[1:])


def _paragraphs(text: str) -> list[str]:
    """Paragraphs in one line each; those that are commands keep their lines."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return [part if part.startswith(" ") else " ".join(part.split()) for part in paragraphs]


def _option(name: str, value: Any) -> str:
    option = name.replace("_", "-")
    # A switch has the name of its effect.
    return f"--no-{option}" if value is True else f"--{option}"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " ".join(value)
    return "" if value is None or value == "" else str(value)


def _docstrings() -> dict[str, str]:
    """Docstring of each field of the settings."""
    (body,) = (node.body for node in ast.parse(inspect.getsource(TrainConfig)).body)
    found = {}
    for field, under in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(under, ast.Expr):
            found[field.target.id] = " ".join(ast.literal_eval(under.value).split())
    return found | {f.name: found.get(f.name, "") for f in dataclasses.fields(TrainConfig)}
