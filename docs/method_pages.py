"""Makes a page for each method from its card, defaults and presets, and an index of them."""

from collections.abc import Sequence

from rlvr_jax import methods
from rlvr_jax.arguments import explained
from rlvr_jax.methods.__main__ import MUST, defaults, needs, shown_command
from rlvr_jax.objectives import UpdatePlan
from rlvr_jax.runs.presets import preset

_TASK = "brackets"
_EVIDENCE = {
    "exact": "It agrees with the authors' or a maintained code.",
    "reconstruction": "It was made only from the paper, without a comparison with other code.",
    "own": "It is not published.",
}
_FILTER = """<script>
const rows = () => [...document.querySelectorAll("table tbody tr")];
const parts = [...new Set(rows().flatMap(r => r.cells[2].textContent.split(", ")))].sort();
const filter = document.getElementById("filter");
for (const part of ["all", ...parts]) {
  const button = document.createElement("button");
  button.textContent = part; button.className = "md-button"; button.style.margin = "2px";
  button.onclick = () => rows().forEach(r => r.hidden =
    part !== "all" && !r.cells[2].textContent.split(", ").includes(part));
  filter.append(button);
}
</script>"""


def method_index() -> str:
    """The page that lists all methods, with buttons that filter by the changed part."""
    lines = [
        "# Methods",
        "",
        "The published methods by theme, and the parts of a step that they change.",
    ]
    lines += ["", '<p id="filter"></p>']
    for theme in sorted({*methods.themes().values()}):
        lines += ["", f"## {theme}", ""]
        lines += ["| method | paper | changes | evidence |", "|---|---|---|---|"]
        for name in (name for name, of in methods.themes().items() if of == theme):
            about = methods.method(name)
            title = about.title.replace("|", "\\|")
            changes = about.changes or "–"
            lines.append(f"| [`{name}`]({name}.md) | {title} | {changes} | {about.evidence} |")
    # Behind the table, whose rows it reads.
    return "\n".join([*lines, "", _FILTER, ""])


def method_page(name: str, curve: Sequence[str] = ()) -> str:
    """The page of one method.

    Args:
      curve: lines about its results in committed runs.
    """
    about = methods.method(name)
    title, *rest = (about.definition or about.title).splitlines()
    lines = [f"# {name}", "", title, ""]
    lines += [f"[{about.title}]({about.url}). {_EVIDENCE[about.evidence]}", ""]
    lines += [f"Changed parts of a step: {about.changes or '–'}."]
    lines += [f"Left out: {about.left_out.rstrip('.')}."] * bool(about.left_out)
    lines += ["", "## Definition", *rest, ""]
    lines += ["## Hyperparameters", "", *_table(name), ""]
    if MUST not in defaults(name).values():
        recipe = methods.recipe(name)
        lines += ["## What it changes of a step", ""]
        lines += [f"- `{label}`" for label in recipe.objective.labels]
        if recipe.experience is not None:
            lines += [f"- experience: `{label}`" for label in recipe.experience.labels]
        if recipe.critic is not None:
            lines += [f"- critic: `{recipe.critic.label}`"]
        idle = recipe.objective.remarks(UpdatePlan(updates_per_batch=1, group_size=8))
        if idle:
            lines += ["", "With one update per batch:", "", *(f"- {told}" for told in idle)]
        lines += ["", "## Needs", "", needs(name) or "only log-probs", ""]
    lines += ["## Command", "", *_commands(name), ""]
    lines += ["## Its curve", "", *curve, ""] * bool(curve)
    lines += ["## What its authors report", "", about.reports, ""] * bool(about.reports)
    lines += ["## Traps", "", about.traps, ""] * bool(about.traps)
    return "\n".join(lines)


def _table(name: str) -> list[str]:
    texts, given = explained(methods.method(name).recipe), defaults(name)
    if not given:
        return ["The method has no hyperparameters."]
    start = dict(pair.split("=", 1) for pair in preset(_TASK, name).hyperparameters)
    lines = [f"| name | default | on {_TASK} | |", "|---|---|---|---|"]
    for key, value in given.items():
        cells = (value, start.get(key, ""), texts.get(key, ""))
        cells = [cell.replace("|", "\\|") for cell in cells]
        lines.append(f"| `{key}` | {' | '.join(cells)} |")
    return lines


def _commands(name: str) -> list[str]:
    shown = methods.method(name).shown
    lines = [f"In this setting the mechanism acts: the metric `{shown.acts}` is above 0."]
    lines += ["", f"    {shown_command(name)}"]
    if shown.without is not None:
        lines += ["", "Without the mechanism, to compare:", ""]
        lines += [f"    {shown_command(name, acts=False)}"]
    return lines
