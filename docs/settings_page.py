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

This page lists all settings of a training run with their defaults. A setting has the same name
everywhere:

- the flag `--learning-rate` of the command,
- the key `learning_rate` of a run's `config.json` and of a file for `--config`,
- the argument of `TrainConfig.of(learning_rate=3e-4)` in Python.

Examples:

    python -m rlvr_jax train --method clip_cov --steps 300     # the preset of task and method
    python -m rlvr_jax train --method clip_cov --no-preset     # the defaults of this page
    python -m rlvr_jax train --method clip_cov --help          # prints the values of the preset

**Presets.** A run starts from the preset of its task and method. The lines before the first step
print the preset and each hyperparameter that differs from the published one. With `--no-preset` a
run starts from the defaults of this page and the published hyperparameters.

**Files.** `--config FILE` reads a run's `config.json`, or settings by name in JSON or TOML. Flags
override the file: `--config runs/one/config.json --seed 1`. An unknown name or a value of another
type is an error. The settings `run_dir` and `resume` of the file are ignored. With another
`--method`, its hyperparameters are also ignored.

**Stored settings.** A run writes its settings to `config.json`. The key `settings` has the given
values, and a resumed run must have equal ones. The key `resolved` has the values of settings that
mean a rule ("0: a tenth of the steps of the run").

**Types.** A list takes several words: `--stop "." "!"`. A switch has two flags: `--resume` and
`--no-resume`. The sign – is an empty default.

The command `python docs/settings_page.py` writes this page.

Groups of settings:

"""


def settings_page() -> str:
    """The page: a table for each group of settings."""
    groups = ("", *GROUPS)
    contents = [f"- [{_title(group)}](#{group or 'run'})" for group in groups]
    return "\n".join([_HEAD + "\n".join(contents), "", *itertools.chain(*map(_table, groups))])


def _title(group: str) -> str:
    return group.capitalize() or "Run"


def _table(group: str) -> Iterator[str]:
    holder: Any = GROUPS.get(group, TrainConfig)
    doc = inspect.getdoc(holder) if group else "The run: the fields of `TrainConfig` itself."
    ranges = described(holder)
    yield from (f"## {_title(group)}", "", str(doc), "")
    yield from ("| flag | default | description |", "|---|---|---|")
    (body,) = (node.body for node in ast.parse(inspect.getsource(holder)).body)
    for field, under in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(under, ast.Expr):
            name = field.target.id
            words = " ".join(ast.literal_eval(under.value).split()).replace("<", "&lt;")
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
