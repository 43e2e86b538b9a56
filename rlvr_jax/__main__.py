"""Overview of the package on one page, or one of the commands.

python -m rlvr_jax                       # commands, methods, tasks, folder of the documentation
python -m rlvr_jax quickstart            # the main job
python -m rlvr_jax train --help
rlvr-jax train --help                    # this command in any folder
"""

import os
import sys
import textwrap
from pathlib import Path

from rlvr_jax import methods, tasks
from rlvr_jax.pipes import quiet_pipe

COMMANDS = {
    "quickstart": "one base model, one task, GRPO and Clip-Cov side by side: minutes on a laptop",
    "train": "one run of any method, task and model; --help lists the settings by group",
    "compare": "several methods and seeds with the same budget, and a page",
    "evaluate": "held-out pass@k of a policy folder",
    "sample": "responses of a policy with tokens coloured by entropy, or a chat with it",
    "leaderboard": "many methods with one budget: a line per run, and pages from the lines",
    "shown": "each method in its shown setting, with its mechanism and without it",
    "tools": "SmolLM2 learns to call a calculator",
    "smollm2": "RL on a real language model of 135M parameters, offline",
    "traces": "verified responses of a policy as a file for training",
    "critiques": "critiques of a policy's responses as a file for training",
    "hints": "hints that a policy writes to the prompts of a task, as a file",
    "serve": "models for Tinker clients: training and sampling over HTTP",
    "loop": "the whole training loop in one file of 250 lines, for reading; objectives by name",
    "store_rollouts": "a batch with its statistics as a file, to try losses on",
}
MODULES = {
    "rlvr_jax.methods": "the table of methods, or with a name the card of one",
    "rlvr_jax.tasks": "every task with its prompts, its verifier and its requirements",
    "rlvr_jax.analysis.report": "a page of one run or several",
    "rlvr_jax.diagnosis": "effects of training on a policy",
    "rlvr_jax.parallel.compile": "whether a model fits a slice, before it is rented",
    "rlvr_jax.sandbox": "isolation of generated code that this machine supports",
}
_WIDTH = 98


def overview() -> str:
    """Returns the overview as text."""
    lines = [__doc__.partition("\n")[0], "", "commands (python -m rlvr_jax NAME, or rlvr-jax NAME)"]
    lines += [f"  {name:<16}{text}" for name, text in COMMANDS.items()]
    lines += ["", "and (python -m NAME)"]
    lines += [f"  {name:<28}{text}" for name, text in MODULES.items()]
    by_change: dict[str, list[str]] = {}
    for name in methods.names():
        first = methods.method(name).changes.partition(",")[0] or "analysis"
        by_change.setdefault(first, []).append(name)
    lines += ["", f"{len(methods.names())} methods, by the first part of a step that they change"]
    for change, names in sorted(by_change.items()):
        lines += _wrapped(f"  {change:<14}", names)
    lines += ["", "tasks"]
    lines += _wrapped(f"  {'built in':<14}", tasks.names())
    lines += _wrapped(f"  {'your own':<14}", ["files (jsonl:, csv:, parquet:)", "module:function"])
    docs = Path(__file__).resolve().parents[1] / "docs"
    where = str(docs) if docs.is_dir() else "docs/ of the repository"
    lines += ["", f"documentation: {where}; the ideas are in design.md"]
    return "\n".join(lines)


def _wrapped(head: str, names: list[str] | tuple[str, ...]) -> list[str]:
    text = ", ".join(names)
    return textwrap.wrap(text, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head))


def main() -> None:
    """Prints the overview, or replaces this process by the command."""
    name, *rest = sys.argv[1:] or [""]
    if name in ("", "-h", "--help"):
        print(overview())
    elif name in COMMANDS:
        # This process becomes that of `python -m` with the command.
        module = f"rlvr_jax.experiments.{name}"
        os.execv(sys.executable, [sys.executable, "-m", module, *rest])
    else:
        sys.exit(f"error: the command must be one of {', '.join(COMMANDS)}, got {name!r}")


def command() -> None:
    """`rlvr-jax`, the script that an installation adds."""
    with quiet_pipe():
        main()


if __name__ == "__main__":
    command()
