"""Prints the table of methods, or with a name the card and defaults of one.

python -m rlvr_jax.methods
python -m rlvr_jax.methods clip_cov
python -m rlvr_jax.methods --markdown > docs/methods.md
"""

import argparse
import inspect
import shutil
import sys
import textwrap

from rlvr_jax.methods import method, names
from rlvr_jax.methods._untrained import UNTRAINED
from rlvr_jax.objectives import Scorer, UpdatePlan
from rlvr_jax.pipes import quiet_pipe

MUST = "(must be given)"
WIDTH = 100
"""Of what is told in sentences, in characters."""


def table(width: int | None = None) -> str:
    """One line per method: name, title, what it changes, evidence, what it needs, address; behind
    them what has no method, and why.

    Args:
      width: of a terminal, in characters: what it changes and its title as far as they fit, and
        nothing else; None: the whole lines.
    """
    rows = [("method", "title", "changes", "evidence", "needs", "paper")]
    for name in names():
        about = method(name)
        rows.append((name, about.title, about.changes, about.evidence, needs(name), about.url))
    if width is not None:
        rows = [(name, _cut(changes, 30), title) for name, title, changes, *_ in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    lines += ["", "published, and no method: experiments.train refuses the name"]
    lines += [f"{name.ljust(widths[0])}  {one.why}" for name, one in UNTRAINED.items()]
    if width is None:
        return "\n".join(lines)
    lines = [_cut(line, width) for line in lines]
    more = "with a name behind it, all about one; `| less -S`: what they need, and addresses"
    return "\n".join([*lines, "", more])


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def markdown() -> str:
    """The page of methods: the table with links, and the defaults of each."""
    lines = [
        "# Methods",
        "",
        "Made by `python -m rlvr_jax.methods --markdown`. Methods are checked against float64",
        "reference vectors, some against worked examples (`tests/methods/test_vectors.py` names",
        "them); *exact* ones agree with the authors' or a maintained code, a *reconstruction* was",
        "made from the paper alone. None was run at the scale of its paper.",
        "",
        "Defaults are those of papers and authors. `experiments.train` starts a few methods with",
        "others (`rlvr_jax/runs/presets.py`: GRPO without KL and on the token mean, DAPO with",
        "at most three rounds) and says which. `python -m rlvr_jax.methods NAME` says more.",
        "",
        "| method | paper | changes | needs | defaults | evidence | left out |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in names():
        about = method(name)
        given = ", ".join(f"{key}={value}" for key, value in defaults(name).items())
        title = about.title.replace("|", "\\|")
        paper = f"[{title}]({about.url})" if about.url else title
        lines.append(
            f"| `{name}` | {paper} | {about.changes} | {needs(name)}"
            f" | {given or '–'} | {about.evidence} | {about.left_out or '–'} |"
        )
    lines += ["", "What is published and has no method; `experiments.train` refuses the name:", ""]
    lines += ["| name | paper | here | why it has no method |", "|---|---|---|---|"]
    for name, one in UNTRAINED.items():
        lines.append(f"| `{name}` | {one.title} | {one.here} | {one.why} |")
    return "\n".join(lines)


def card(name: str) -> str:
    """What one method is and does: its page, hyperparameters with defaults, parts, conditions."""
    about = method(name)
    told = about.recipe if about.evidence == "own" else inspect.getmodule(about.recipe)
    lines = [text for text in (f"{name}: {about.title}", about.url, inspect.getdoc(told)) if text]
    lines += ["", f"changes {about.changes or '–'}; {about.evidence}"]
    lines += _told("left out", about.left_out)
    given = defaults(name)
    lines += ["", "defaults", *(f"  {key} = {value}" for key, value in given.items())]
    if open_ := [key for key, value in given.items() if value == MUST]:
        return "\n".join([*lines, "", f"parts: known once {', '.join(open_)} are given"])
    recipe = about.recipe()
    lines += ["", "parts", *(f"  {label}" for label in recipe.objective.labels)]
    if recipe.experience is not None:
        lines += ["", "experience", *(f"  {label}" for label in recipe.experience.labels)]
    conditions = recipe.objective.remarks(UpdatePlan(updates_per_batch=1, group_size=8))
    if conditions:
        lines += ["", "with one update per batch", *(f"  {sentence}" for sentence in conditions)]
    lines += ["", f"needs {needs(name)}"]
    lines += _told("reports", about.reports) + _told("traps", about.traps)
    return "\n".join(lines)


def _told(label: str, text: str) -> list[str]:
    """A paragraph of the card; none if there is nothing to say."""
    return textwrap.wrap(f"{label}: {text}", WIDTH, subsequent_indent="  ") if text else []


def defaults(name: str) -> dict[str, str]:
    """Hyperparameters with their defaults as text, functions and parts by name."""

    def text(value):
        if value is inspect.Parameter.empty:
            return MUST
        return str(getattr(value, "label", getattr(value, "__name__", value)))

    parameters = inspect.signature(method(name).recipe).parameters.values()
    return {parameter.name: text(parameter.default) for parameter in parameters}


def needs(name: str) -> str:
    """What its objective reads and its experience reads and consists of, with commas."""
    recipe = method(name).recipe()
    wanted = sorted(recipe.objective.reads)
    chain = recipe.experience
    if isinstance(recipe.critic, Scorer):
        wanted.append(f"{recipe.critic.label.partition('(')[0]} (scorer)")
    if chain is not None:
        stages = chain.stages.values()
        of_task = {need for stage in stages for need in stage.of_task}
        # What one stage adds to the grades the others do not want of the task.
        own = {"rewards"} if any(stage.rewards for stage in stages) else set()
        wanted += sorted(f"Task.{need}" for need in of_task - own)
        wanted += sorted({f"Prompt.{need}" for of_part in chain.reads.values() for need in of_part})
        picks = [part.label.partition("(")[0] for part in chain.curricula.values()]
        wanted += [f"{pick} (curriculum)" for pick in picks if pick != "shuffled_epochs"]
        wanted += [f"{stage.label.partition('(')[0]} (stage)" for stage in stages]
    return ", ".join(wanted)


def main() -> None:
    """Reads the command line and prints."""
    parser = argparse.ArgumentParser(prog="python -m rlvr_jax.methods", description=__doc__)
    parser.add_argument("name", nargs="?", help="a method; without it, all of them")
    parser.add_argument("--markdown", action="store_true", help="the page docs/methods.md")
    options = parser.parse_args()
    if options.name is None:
        screen = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print(markdown() if options.markdown else table(screen))
        return
    try:
        print(card(options.name))
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    with quiet_pipe():
        main()
