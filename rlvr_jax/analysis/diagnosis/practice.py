"""Training prompts: their outcomes during a run."""

import numpy as np

from rlvr_jax.analysis.boundary.paired_problems import sign_test
from rlvr_jax.analysis.curves import thinned
from rlvr_jax.analysis.diagnosis.topics import Topic, curve, p_value
from rlvr_jax.analysis.prompt_order import read_histories
from rlvr_jax.analysis.run_directory import Run, read_steps

_FIFTH = 0.2
_MOST_POINTS = 300


def practice(run: Run) -> Topic:
    """Topics of the outcomes of the training groups."""
    topic = Topic("Training prompts")
    written = read_steps(run.path / "outcomes.jsonl")
    lines = [line for line in written if any(map(_judged, line["outcome"]))]
    if not lines:
        topic.missing.append(
            "Training prompts need an outcomes.jsonl, which this run does not have."
        )
        return topic
    kinds = np.array([_kinds(line) for line in lines])
    window = max(1, round(_FIFTH * len(kinds)))
    first, last = kinds[:window].mean(axis=0), kinds[-window:].mean(axis=0)
    names = ("all_incorrect", "mixed", "all_correct")
    groups = [sum(map(_judged, line["outcome"])) for line in lines]
    sizes = [sum(groups[:window]), sum(groups[-window:])]
    topic.numbers |= {
        "steps_of_each": window,
        "groups_of_each": sizes,
        "first": dict(zip(names, first.tolist(), strict=True)),
        "last": dict(zip(names, last.tolist(), strict=True)),
    }
    topic.sentences.append(
        f"Groups with correct and incorrect responses: {100 * first[1]:.0f} % →"
        f" {100 * last[1]:.0f} %. All incorrect: {100 * first[0]:.0f} % → {100 * last[0]:.0f} %."
        f" All correct: {100 * first[2]:.0f} % → {100 * last[2]:.0f} %"
        f" (first and last {window} steps, n = {sizes[0]} and {sizes[1]} groups)."
    )
    _repeated_prompts(topic, run)
    steps = [line["step"] for line in lines]
    table = thinned(np.column_stack([steps, kinds]), _MOST_POINTS)
    shown = {"mixed": 2, "all incorrect": 1, "all correct": 3}
    curves = {name: table[:, [0, column]] for name, column in shown.items()}
    note = f"before any filter, n = {len(lines)} steps"
    topic.charts.append(curve("Groups by outcome", "fraction", note, "step", curves, y=[0, 1]))
    return topic


def _repeated_prompts(topic: Topic, run: Run) -> None:
    """Compares the first and the last time of prompts that were sampled more than once."""
    try:
        histories = [h for h in read_histories(run.path).values() if len(h) > 1]
    except ValueError:  # no prompt was shown in its unchanged view
        histories = []
    if not histories:
        topic.missing.append("Changes of single prompts need prompts that were sampled twice.")
        return
    change = np.array([history[-1] - history[0] for history in histories])
    ups, downs = int(np.sum(change > 0)), int(np.sum(change < 0))
    p = sign_test(ups, downs)
    topic.numbers["visits"] = {"prompts": len(change), "up": ups, "down": downs, "p_value": p}
    sentence = (
        f"Of {len(change)} prompts that were sampled in two or more steps, {ups} have a higher mean"
        f" outcome the last time than the first time, {downs} a lower one and"
        f" {len(change) - ups - downs} the same (sign test, {p_value(p)})."
    )
    terms = [str(term) for term in run.setting("loss_terms", ())]
    if not terms or any(term.startswith("experience:") for term in terms):
        sentence += (
            " If prompts were selected by their outcomes, chance alone brings them back to their"
            " mean."
        )
    topic.sentences.append(sentence)


def _judged(outcomes: list[float | None]) -> bool:
    """Whether a group is graded."""
    return any(outcome is not None for outcome in outcomes)


def _kinds(line: dict) -> tuple[float, float, float]:
    """Fractions of a step's groups with only incorrect, mixed, and only correct responses."""
    rates = [
        float(np.mean(known))
        for outcomes in line["outcome"]
        if (known := [outcome for outcome in outcomes if outcome is not None])
    ]
    found = np.array(rates or [np.nan])
    return (
        float(np.mean(found == 0)),
        float(np.mean((found > 0) & (found < 1))),
        float(np.mean(found == 1)),
    )
