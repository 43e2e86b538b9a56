"""Writes settings.md, the reference of all settings of a run, from their dataclasses.

python docs/settings_page.py
"""

import ast
import inspect
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlvr_jax.arguments import described
from rlvr_jax.runs.config import GROUPS, TrainConfig

PAGE = Path(__file__).parent / "settings.md"
_HEAD = """# Settings

A setting has one name. The flag `--learning-rate` is `learning_rate` in a run's `config.json`, in a
file for `--config`, and in `TrainConfig.of(learning_rate=3e-4)`.

    python -m rlvr_jax train --method clip_cov --steps 300     # the preset of task and method
    python -m rlvr_jax train --method clip_cov --no-preset     # the defaults below

- A run starts from the preset of its task and method. The lines before the first step name the
  preset and each hyperparameter that differs from the published one.
- `--no-preset` starts from the defaults below and the published hyperparameters.
- `--config FILE` reads a run's `config.json`, or settings by name in JSON or TOML. Flags override
  the file: `--config runs/one/config.json --seed 1`. An unknown name or a value of another type is
  refused. `run_dir` and `resume` of the file are left out; with another `--method`, so are its
  hyperparameters.
- `config.json` is flat. `settings` are the values that were given; a resumed run is compared with
  them. `resolved` are the values of settings that mean a rule ("0: a tenth of the run").
- A list takes several words: `--stop "." "!"`. A switch has two flags: `--resume`, `--no-resume`.
- `python -m rlvr_jax train --task TASK --method NAME --help` prints the values of a preset.

This page is made by `python docs/settings_page.py`.
"""


def settings_page() -> str:
    """The page: a table for each group of settings."""
    return "\n".join([_HEAD, *itertools.chain(*map(_table, ("", *GROUPS)))])


def _table(group: str) -> Iterator[str]:
    holder: Any = GROUPS.get(group, TrainConfig)
    doc = inspect.getdoc(holder) if group else "The run: fields of `TrainConfig` itself."
    ranges = described(holder)
    yield from (f"## {group.capitalize() or 'Run'}", "", str(doc), "")
    yield from ("| flag | default | description |", "|---|---|---|")
    (body,) = (node.body for node in ast.parse(inspect.getsource(holder)).body)
    for field, under in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(under, ast.Expr):
            name = field.target.id
            words = " ".join(ast.literal_eval(under.value).split()).replace("<", "\\<")
            limits = f" Value: {ranges[name]}." if name in ranges else ""
            default = _text(getattr(holder, name))
            flag = "no-preset" if name == "preset" else name.replace("_", "-")
            yield f"| `--{flag}` | {default} | {words}{limits} |"
    yield ""


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    text = " ".join(value) if isinstance(value, tuple) else str(value)
    return f"`{text}`" if value not in ("", (), None) else "–"


if __name__ == "__main__":
    PAGE.write_text(settings_page())
