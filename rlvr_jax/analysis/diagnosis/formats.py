"""Formats of responses: whether one format takes over, and whether it was the best one.

A format is a regular expression. The format of a response is the first one that occurs in it, else
"other". The rules see only the text, not the grade. `analysis.texts.echo_chamber` has the measures
and their source.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlvr_jax.analysis.arrays import binned_mean
from rlvr_jax.analysis.diagnosis.answers import Answers
from rlvr_jax.analysis.diagnosis.topics import Table, Topic, signed_number
from rlvr_jax.analysis.run_directory import Run
from rlvr_jax.analysis.samples import number_or
from rlvr_jax.analysis.texts.echo_chamber import FormatShift, format_fractions, format_shift
from rlvr_jax.types import is_correct

FORMATS = {
    "code": r"```|^\s*(def|import|print)\b",
    "boxed": r"\\boxed",
    "tags": r"</?\w+>",
    "numbered steps": r"^\s*(step\s*)?\d+[.:)]\s",
}
"""Formats of language models; rules are case-insensitive and `^` is the start of a line."""
_OTHER = "other"


class Texts(NamedTuple):
    """Responses of one policy.

    Fields:
      name: name of the policy in sentences.
      texts: responses. correct: [B].
    """

    name: str
    texts: Sequence[str]
    correct: ArrayLike


def read_rules(given: Sequence[str]) -> Mapping[str, str]:
    """Rules by name from "NAME=REGEX"; `FORMATS` if none is given.

    Raises:
      ValueError: a rule lacks a name, or is not a regular expression.
    """
    rules = {}
    for rule in given:
        name, equals, pattern = rule.partition("=")
        if not (name and equals and pattern):
            raise ValueError(f"diagnose: --formats must be NAME=REGEX, got {rule!r}")
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(
                f"diagnose: --formats must have a regular expression, got {rule!r} ({error})"
            ) from None
        rules[name] = pattern
    return rules or FORMATS


def formats_of_run(run: Run, rules: Mapping[str, str]) -> Topic:
    """Formats at the first and the last step of a run with stored responses."""
    stored = []
    for step in dict.fromkeys([*run.sample_steps()[:1], *run.sample_steps()[-1:]]):
        rows = [row for row in run.samples(step) if isinstance(row.get("response"), str)]
        correct = [is_correct(number_or(row.get("outcome"), 0.0)) for row in rows]
        if rows:
            stored.append(Texts(f"step {step}", [row["response"] for row in rows], correct))
    if len(stored) < 2:
        missing = "Formats need two steps with responses in samples/ (--samples-stored)."
        return Topic("Formats", missing=[missing])
    return formats(*stored, rules=rules)


def formats_of_answers(
    before: Answers, after: Answers, again: Answers | None, names: tuple[str, str], rules: Mapping
) -> Topic:
    """Formats of two policies, from the texts of their tokens.

    Args:
      before: responses of the first policy.
      after: responses of the second policy.
      again: a second sampling of the first policy; None: it is missing.
      names: names of both policies.
      rules: regular expressions by name.
    """
    given = [each for each in (before, after, again) if each is not None]
    if any(each.words is None for each in given):
        return Topic("Formats", missing=["Formats need the text of every token id (words)."])
    read = [
        Texts(name, _texts(each), each.correct)
        for name, each in zip((*names, f"{names[0]} again"), given, strict=False)
    ]
    return formats(read[0], read[1], rules=rules, again=read[2] if len(read) > 2 else None)


def formats(
    before: Texts, after: Texts, *, rules: Mapping[str, str], again: Texts | None = None
) -> Topic:
    """Compares the formats of two policies.

    Args:
      before: texts of the first policy.
      after: texts of the second policy.
      rules: regular expressions by name; the first match counts.
      again: a second sampling of the first policy, for the difference by chance.
    """
    topic = Topic("Formats")
    labels = [*rules, _OTHER]
    old, new = (_numbers(each.texts, rules) for each in (before, after))
    if (old == len(rules)).all() and (new == len(rules)).all():
        topic.missing.append(
            f"No response has one of the formats {', '.join(rules)}: name formats of this task with"
            " --formats NAME=REGEX."
        )
        return topic
    found = _shift(old, before, new, after, len(labels))
    chance = None
    if again is not None:
        chance = _shift(old, before, _numbers(again.texts, rules), again, len(labels))
    rates = [
        binned_mean(np.asarray(each.correct, float), own, len(labels))
        for each, own in ((before, old), (after, new))
    ]
    topic.numbers |= {
        "formats": labels,
        **{
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in found._asdict().items()
        },
        "pass_rate_before": rates[0].tolist(),
        "pass_rate_after": rates[1].tolist(),
        "total_variation_by_chance": chance and chance.total_variation,
    }
    topic.sentences += _sentences(found, chance, labels, before, after)
    sized = list(zip(rates, (found.fraction_before, found.fraction_after), strict=True))
    rows = [
        [
            label,
            f"{100 * found.fraction_before[i]:.1f} %",
            f"{100 * found.fraction_after[i]:.1f} %",
            *(f"{rate[i]:.3f}" if size[i] else "–" for rate, size in sized),
        ]
        for i, label in enumerate(labels)
    ]
    head = ["format", before.name, after.name]
    head += [f"pass rate, {each.name}" for each in (before, after)]
    note = f"Fractions of {len(before.texts)} and {len(after.texts)} responses."
    topic.tables.append(Table("Responses by format", head, rows, note))
    return topic


def _numbers(texts: Sequence[str], rules: Mapping[str, str]) -> np.ndarray:
    """Number of the format of each text, int [B]; the number of rules for "other"."""
    patterns = [re.compile(rule, re.IGNORECASE | re.MULTILINE) for rule in rules.values()]
    return np.array(
        [
            next((i for i, pattern in enumerate(patterns) if pattern.search(text)), len(patterns))
            for text in texts
        ]
    )


def _shift(
    old: np.ndarray, before: Texts, new: np.ndarray, after: Texts, number: int
) -> FormatShift:
    return format_shift(
        format_fractions(old, number),
        format_fractions(new, number),
        binned_mean(np.asarray(after.correct, float), new, number),
        binned_mean(np.asarray(before.correct, float), old, number),
    )


def _sentences(
    found: FormatShift, chance: FormatShift | None, labels: list[str], before: Texts, after: Texts
) -> list[str]:
    by_chance = "" if chance is None else f"; by chance {chance.total_variation:.3f}"
    gain = float(np.mean(after.correct) - np.mean(before.correct))
    used, best = ("" if held else " not" for held in (found.same_winner, found.best_format_won))
    return [
        f"The formats of {before.name} and {after.name} have total variation"
        f" {found.total_variation:.3f} (Jensen-Shannon {found.js:.3f} nats{by_chance}). Entropy of"
        f" the fractions: {found.entropy_before:.3f} → {found.entropy_after:.3f} nats.",
        f"{100 * found.dominance:.0f} % of the responses of {after.name} have the format"
        f" “{labels[found.dominant]}”. It was{used} the most used one of {before.name}, and{best}"
        " the one with the highest pass rate.",
        f"The pass rate changed by {signed_number(gain)}. The change of the fractions alone, at the"
        f" later pass rates, accounts for {signed_number(found.between_formats)}.",
    ]


def _texts(answers: Answers) -> list[str]:
    """Texts of the rows. If no word contains a space, words are joined with spaces."""
    words = answers.words or {}
    between = "" if any(" " in word for word in words.values()) else " "
    return [
        between.join(words.get(token, "") for token in answers.texts(row))
        for row in range(len(answers.problem))
    ]
