"""Prints the table of methods, or with a name the card and defaults of one.

python -m rlvr_jax.methods
python -m rlvr_jax.methods clip_cov
python -m rlvr_jax.methods --markdown > docs/methods.md
"""

import argparse
import inspect

from rlvr_jax.methods import method, names


def table() -> str:
    """One line per method: name, title, what it changes, evidence, what it needs, address."""
    rows = [("method", "title", "changes", "evidence", "needs", "paper")]
    for name in names():
        about = method(name)
        rows.append((name, about.title, about.changes, about.evidence, _needs(name), about.url))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join(lines)


def markdown() -> str:
    """The page of methods: the table with links, and the defaults of each."""
    lines = [
        "# Methods",
        "",
        "Made by `python -m rlvr_jax.methods --markdown`. Every method is checked against float64",
        "reference vectors; *exact* ones agree with the authors' or a maintained code, a",
        "*reconstruction* was made from the paper alone. None was run at the scale of its paper.",
        "",
        "| method | paper | changes | needs | defaults | evidence | left out |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in names():
        about = method(name)
        defaults = ", ".join(f"{key}={value}" for key, value in _defaults(name).items())
        paper = f"[{about.title}]({about.url})" if about.url else about.title
        lines.append(
            f"| `{name}` | {paper} | {about.changes} | {_needs(name)}"
            f" | {defaults or '–'} | {about.evidence} | {about.left_out or '–'} |"
        )
    return "\n".join(lines)


def card(name: str) -> str:
    """Title, paper, hyperparameters with defaults, and parts of one method."""
    about = method(name)
    recipe = about.recipe()
    lines = [f"{name}: {about.title}", about.url, inspect.getdoc(about.recipe).splitlines()[0]]
    lines.append(f"changes {about.changes}; {about.evidence}")
    lines += [f"left out: {about.left_out}"] * bool(about.left_out)
    lines += ["", "defaults"]
    lines += [f"  {key} = {value}" for key, value in _defaults(name).items()]
    lines += ["", "parts", *(f"  {label}" for label in recipe.objective.labels)]
    if recipe.selection is not None:
        lines.append(
            f"  {recipe.selection.keep.__name__} (groups, at most"
            f" {recipe.selection.max_rounds} rounds)"
        )
    if recipe.reward is not None:
        lines.append("  reward shaping")
    lines += ["", f"needs {_needs(name)}"]
    return "\n".join(lines)


def _defaults(name):
    """Hyperparameters with their defaults as text, functions and parts by name."""

    def text(value):
        return str(getattr(value, "label", getattr(value, "__name__", value)))

    parameters = inspect.signature(method(name).recipe).parameters.values()
    return {parameter.name: text(parameter.default) for parameter in parameters}


def _needs(name):
    recipe = method(name).recipe()
    needs = sorted(recipe.objective.needs)
    needs += ["group selection"] * (recipe.selection is not None)
    needs += ["reward shaping"] * (recipe.reward is not None)
    return ", ".join(needs)


def main() -> None:
    """Reads the command line and prints."""
    parser = argparse.ArgumentParser(prog="python -m rlvr_jax.methods", description=__doc__)
    parser.add_argument("name", nargs="?", help="a method; without it, all of them")
    parser.add_argument("--markdown", action="store_true", help="the page docs/methods.md")
    options = parser.parse_args()
    if options.name is None:
        print(markdown() if options.markdown else table())
        return
    try:
        print(card(options.name))
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
