"""Entropy during a run: how much was spent, how early, and for which gain of reward."""

import numpy as np

from rlvr_jax.analysis.curves import thinned
from rlvr_jax.analysis.diagnosis.topics import LAST, Card, Topic, curve, p_value, signed_number
from rlvr_jax.analysis.entropy.law_prediction import (
    ENTROPY,
    FIRST_FRACTION,
    SCORE,
    controls_entropy,
    forecast_run,
)
from rlvr_jax.analysis.entropy.stages import (
    OutcomeParts,
    change_by_outcome,
    entropy_and_fraction,
    stages,
)
from rlvr_jax.analysis.law_section import law_section
from rlvr_jax.analysis.run_directory import Run

_TENTH = 0.1
_UNSPENT = 0.8  # a drop below this fraction of the first entropy is not divided
_MOST_POINTS = 300
_FEWEST_STEPS = 10


def uncertainty(run: Run) -> Topic:
    """Topics of the entropies of a run."""
    topic = Topic("Entropy")
    steps, entropy = run.series("entropy")
    if len(steps) < 2:
        topic.missing.append("Entropy over training needs two steps with `entropy` in the metrics.")
        return topic
    _spent(topic, steps, entropy)
    _by_outcome(topic, run, steps)
    _stages(topic, run)
    _law(topic, run)
    lines = {"training": thinned(np.stack([steps, entropy], axis=1), _MOST_POINTS)}
    held_steps, held = run.series(ENTROPY)
    if len(held_steps):
        lines["held-out"] = np.stack([held_steps, held], axis=1)
    note = "mean over tokens, whole vocabulary, at the sampling temperature"
    topic.charts.append(curve("Token entropy", "nats", note, "step", lines, zero=True))
    section = law_section([run], ["training"])
    if section:
        chart = section["charts"][0]
        series = [entry | {"run": LAST} for entry in chart["series"]]
        topic.charts.append(chart | {"series": series})
    return topic


def _spent(topic: Topic, steps: np.ndarray, entropy: np.ndarray) -> None:
    """Compares the first and the last tenth of the steps."""
    window = max(1, round(_TENTH * len(steps)))
    first, last = entropy[:window], entropy[-window:]
    some = first.mean() > 0
    left = last.mean() / first.mean() if some else np.inf if last.mean() > 0 else 1.0
    drop = first.mean() - last.mean()
    early = entropy[: max(1, round(FIRST_FRACTION * len(steps)))][-window:].mean()
    # A fraction of a tiny drop is meaningless.
    fraction = (first.mean() - early) / drop if left < _UNSPENT else None
    topic.numbers |= {
        "first": float(first.mean()),
        "last": float(last.mean()),
        "steps_of_each": window,
        "left": float(left) if np.isfinite(left) else None,
        "fraction_of_drop_in_first_fifth": None if fraction is None else float(fraction),
    }
    change = f"by {100 * (left - 1):+.0f} %".replace("-", "−") if some else "from 0"
    steps_of_each = f"first and last {window} steps" + (", ± std)" if window > 1 else ")")
    text = f"Entropy changed {change}: {_mean(first)} → {_mean(last)} nats per token"
    topic.sentences.append(f"{text} (means of the {steps_of_each}.")
    if fraction is not None:
        topic.sentences.append(
            f"{100 * fraction:.0f} % of the drop happened in the first fifth of the run."
        )
    value = f"{first.mean():.3f} → {last.mean():.3f}"
    topic.cards["entropy"] = Card("Entropy", value, f"nats per token, in training; {change}")


def _mean(values: np.ndarray) -> str:
    spread = f" ± {values.std(ddof=1):.3f}" if len(values) > 1 else ""
    return f"{values.mean():.3f}{spread}"


def _by_outcome(topic: Topic, run: Run, steps: np.ndarray) -> None:
    """Entropy of correct and of incorrect responses in the last tenth of the steps."""
    begin = steps[-max(1, round(_TENTH * len(steps)))]
    found = []
    for name in ("correct", "incorrect"):
        at, values = run.series(f"entropy/{name}")
        if not (at >= begin).any():
            return
        found.append(float(values[at >= begin].mean()))
    topic.numbers |= dict(zip(("correct", "incorrect"), found, strict=True))
    topic.sentences.append(
        f"At the end correct responses have {found[0]:.3f} nats per token, incorrect responses"
        f" {found[1]:.3f}."
    )


def _stages(topic: Topic, run: Run) -> None:
    """The step at which the reward stops to rise, and the change of entropy before and after it."""
    steps, reward = run.series("reward")
    if len(steps) < _FEWEST_STEPS:
        topic.missing.append(
            f"The stages of a run need {_FEWEST_STEPS} steps with `reward`; there are {len(steps)}."
        )
        return
    shown = thinned(np.stack([steps, reward], axis=1), _MOST_POINTS)
    found = stages(*shown.T)
    topic.numbers["stages"] = found._asdict()
    if found.end is None:
        topic.sentences.append(
            f"No rise of the training reward is detected ({p_value(found.p_value)} by shuffling"
            f" steps, n = {len(steps)} steps), so the run has no stages."
        )
        return
    topic.sentences.append(
        f"The training reward changed by {signed_number(found.rise)} until step {found.end:.0f} of"
        f" {steps[-1]}, then stayed level (fitted; {p_value(found.p_value)} by shuffling steps)."
    )
    for name, first, last in (
        ("rising", steps[0], found.end),
        ("plateau", found.end, steps[-1]),
    ):
        parts = _parts(run, first, last)
        topic.numbers["stages"][name] = None if parts is None else parts[0]._asdict()
        if parts is None:
            topic.missing.append(
                f"Entropy by outcome on the {name} stage needs entropy/correct and"
                " entropy/incorrect at both of its ends."
            )
            continue
        change, number = parts
        topic.sentences.append(
            f"{'Until then' if name == 'rising' else 'After it'} entropy changed by"
            f" {signed_number(change.change)} nats per token:"
            f" {signed_number(change.incorrect)} within incorrect responses,"
            f" {signed_number(change.correct)} within correct responses,"
            f" {signed_number(change.fractions)} by their fractions"
            f" (n = {number} steps at each end)."
        )


def _parts(run: Run, first: float, last: float) -> tuple[OutcomeParts, int] | None:
    """The change of entropy between the ends of a stage by outcome, a tenth of its steps at either
    end, and how many those are; None where an end has no correct or no incorrect responses, or the
    stage is one step."""
    names = ("entropy", "entropy/incorrect", "entropy/correct")
    columns = [dict(zip(*run.series(name), strict=True)) for name in names]
    inside = [step for step in columns[0] if first <= step <= last]
    window = max(1, round(_TENTH * len(inside)))
    ends = []
    for own in (inside[:window], inside[-window:]):
        known = [step for step in own if all(step in column for column in columns)]
        if not known:
            return None
        ends.append(entropy_and_fraction(*([c[step] for step in known] for c in columns)))
    return (change_by_outcome(*ends), window) if len(inside) > 1 else None


def _law(topic: Topic, run: Run) -> None:
    found = forecast_run(run)
    controlled = controls_entropy(run)
    topic.numbers["law"] = {
        "controlled": controlled,
        "points": found.num_points,
        "first_points": found.num_first,
        "a": found.law and found.law.a,
        "b": found.law and found.law.b,
        "score_error": found.score_error,
        "ceiling_error": found.ceiling_error,
    }
    if found.law is None:
        topic.missing.append(
            "The entropy law needs two evaluations in the first fifth of the run, with"
            f" {SCORE} and different {ENTROPY}; there are {found.num_first} of {found.num_points}."
        )
        return
    topic.sentences += [
        f"Entropy law R = −a·eᴴ + b, fitted to the first {found.num_first} of {found.num_points}"
        f" evaluations: a = {found.law.a:.3g}, b = {found.law.b:.3g}.",
        f"Its error for the last pass@1 is {signed_number(found.score_error)} at that entropy."
        f" Its ceiling b − a differs from the last pass@1 by {signed_number(found.ceiling_error)}.",
    ]
    caveat = "The law was published for runs without entropy control."
    if controlled:
        caveat += (
            " This run does not record whether it has entropy control."
            if not run.setting("loss_terms", ())
            else " This run has further loss terms or another temperature."
        )
    topic.sentences.append(caveat)
