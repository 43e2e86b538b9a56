"""Numbers of two policies side by side, with the noise floor of a second sampling.

The mean of a number has a paired bootstrap interval over problems. The noise floor is the
difference between two independent samplings of the first policy. A smaller difference is chance.
"""

import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rlvr_jax.analysis.diagnosis.answers import Answers
from rlvr_jax.analysis.diagnosis.topics import (
    FEWEST_PROBLEMS,
    Card,
    Table,
    Topic,
    direction,
    interval_numbers,
    plain_number,
    signed,
    signed_number,
)
from rlvr_jax.analysis.prompt_bootstrap import PromptInterval, bootstrap_mean
from rlvr_jax.analysis.texts.calibration import calibration, token_confidence
from rlvr_jax.analysis.texts.diversity_metrics import (
    answer_diversity,
    bigrams,
    gram_similarity,
    jaccard_distance,
    self_bleu,
    vendi,
)

_BINS = 10
_FEWEST_ROWS = 20  # least number of responses for a sentence about calibration
_MOST_WANTED = 1e6
_COMPARED = 16  # responses to a problem that are compared pair by pair


def side_by_side(
    before: Answers, after: Answers, again: Answers | None, names: tuple[str, str]
) -> Topic:
    """Differences of two sets of responses to the same problems.

    Args:
      before: responses of the first policy.
      after: responses of the second policy.
      again: a second, independent sampling of the first policy; None: no noise floor.
      names: names of both policies.
    """
    topic = Topic("Responses")
    gaps, rows = {}, []
    sampled = [before, after] if again is None else [before, after, again]
    for name, measure in _measures(sampled).items():
        old, new = measure(before), measure(after)
        gap = bootstrap_mean([new - old], before.weights)
        floor = None
        if again is not None:
            floor = bootstrap_mean([measure(again) - old], before.weights)
        gaps[name] = gap, floor
        mean = [float(values @ before.weights / before.weights.sum()) for values in (old, new)]
        topic.numbers[name.replace(" ", "_")] = {
            "first": mean[0],
            "last": mean[1],
            "difference": interval_numbers(gap),
            "floor": floor and interval_numbers(floor),
            "problems_wanted": _wanted(gap),
        }
        rows.append([name, *map(plain_number, mean), signed(gap)])
        rows[-1] += ["–" if floor is None else signed(floor), _wanted_text(gap)]
        if name == "entropy per token":
            value = " → ".join(map(plain_number, mean))
            note = f"nats per token of a response; change {signed(gap)}"
            topic.cards["entropy"] = Card("Entropy", value, note)
    head = ["mean over problems", *names, "difference", "by chance", "problems needed"]
    heading = f"{before.samples} responses to each of {len(before.weights)} problems"
    note = (
        "By chance: difference of two samplings of the first policy. Problems needed: to detect a"
        f" difference of this size. Self-BLEU (1: all alike), Vendi score (effective number of"
        f" different responses) and Jaccard distance of bigrams: of the first"
        f" {min(_COMPARED, before.samples)} responses to a problem."
    )
    topic.tables.append(Table(heading, head, rows, note))
    topic.sentences.append(_variety(gaps, names, before.samples))
    if not _one_vocabulary(sampled):
        topic.missing.append(
            "Lengths, entropies and confidences of tokens need one vocabulary, got those"
            f" of {before.vocabulary} and {after.vocabulary}."
        )
    else:
        if "entropy per token" not in gaps:
            topic.missing.append("Entropy needs the entropies of all responses.")
        _calibration(topic, before, after, again, names)
    if again is None:
        topic.missing.append(
            "Differences by chance need a second sampling of the first policy:"
            f" {before.samples} more responses to each problem."
        )
    return topic


def _measures(sampled: Sequence[Answers]) -> Mapping[str, Callable[[Answers], np.ndarray]]:
    """Numbers of each problem by name, for quantities that all samplings have."""
    found = {
        "correct": lambda answers: answers.correct[answers.rows].mean(axis=1),
        "different responses": lambda answers: _different(answers, False),
        "different correct responses": lambda answers: _different(answers, True),
    }
    alike = _one_vocabulary(sampled)
    if alike:
        found |= {
            name: functools.partial(_compared, measure) for name, measure in _TEXT_MEASURES.items()
        }
        found["tokens per response"] = lambda a: a.mask.sum(axis=1)[a.rows].mean(axis=1)
    if alike and all(each.entropy is not None for each in sampled):
        found["entropy per token"] = lambda answers: answers.token_mean(answers.entropy)
    if all(each.answer is not None for each in sampled):
        found["different final answers"] = lambda answers: np.array(
            [
                answer_diversity([answers.answer[row] for row in rows]).number
                for rows in answers.rows
            ],
            float,
        )
    return found


_TEXT_MEASURES: Mapping[str, Callable[[Sequence], float]] = {
    "self-BLEU": self_bleu,
    "Vendi score": lambda texts: vendi(gram_similarity(texts)),
    "Jaccard distance": lambda texts: jaccard_distance([bigrams(t) for t in texts]),
}


def _compared(measure: Callable[[Sequence], float], answers: Answers) -> np.ndarray:
    """A measure of the first responses to each problem, [P]; all of them would take minutes."""
    texts = ([answers.texts(row) for row in rows[:_COMPARED]] for rows in answers.rows)
    return np.array([measure(own) for own in texts])


def _one_vocabulary(sampled: Sequence[Answers]) -> bool:
    return len({each.vocabulary for each in sampled}) == 1


def _different(answers: Answers, correct: bool) -> np.ndarray:
    """Different responses to each problem, or different correct ones, [P]."""
    wanted = answers.correct if correct else np.ones(len(answers.correct), bool)
    return np.array(
        [len({answers.texts(row) for row in rows if wanted[row]}) for rows in answers.rows], float
    )


def _wanted(gap: PromptInterval) -> int | None:
    """Problems with which an interval would leave 0 out if the difference were the one seen; None
    where it does already, or where nothing differs."""
    if direction(gap) or not gap.mean:
        return None
    half = (gap.high - gap.low) / 2
    wanted = int(np.ceil(gap.prompts * max(1.0, (half / gap.mean) ** 2)))
    return max(wanted, FEWEST_PROBLEMS)


def _wanted_text(gap: PromptInterval) -> str:
    wanted = _wanted(gap)
    if wanted is None:
        return ""
    return f"about {wanted:,}" if wanted < _MOST_WANTED else "over a million"


def _variety(gaps: Mapping[str, tuple], names: tuple[str, str], samples: int) -> str:
    words = {1: "more", -1: "fewer", 0: "no detected change in"}
    parts = []
    for name in ("different responses", "different correct responses"):
        gap, floor = gaps[name]
        chance = "" if floor is None else f"; by chance {signed(floor)}"
        parts.append(f"{words[direction(gap)]} {name} ({signed(gap)}{chance})")
    return f"Of {samples} responses to a problem, {names[1]} has {parts[0]} and {parts[1]}."


def _calibration(topic, before, after, again, names: tuple[str, str]) -> None:
    """Whether more probable responses are correct more often."""
    sampled = {names[0]: before, names[1]: after}
    if again is not None:
        sampled[f"{names[0]} again"] = again
    found = {}
    for name, answers in sampled.items():
        if answers.logp is None:
            topic.missing.append(f"Calibration needs the log-probs of the responses of {name}.")
            return
        known = np.isfinite(answers.outcome)
        if known.sum() < _FEWEST_ROWS:
            topic.missing.append(
                f"Calibration needs {_FEWEST_ROWS} graded responses; {name} has {known.sum()}."
            )
            return
        if len(np.unique(answers.correct[known])) < 2:
            topic.missing.append(f"Calibration needs correct and incorrect responses of {name}.")
            return
        confidence = np.clip(token_confidence(answers.logp, answers.mask)[known], 0, 1)
        found[name] = calibration(confidence, answers.correct[known].astype(float), _BINS)
    fields = ("auroc", "ece", "brier", "overconfidence")
    topic.numbers["calibration"] = {
        name: {field: getattr(each, field) for field in fields} for name, each in found.items()
    }
    rows = [[n, *(f"{getattr(each, f):.3f}" for f in fields)] for n, each in found.items()]
    note = (
        "Confidence: mean token probability. AUROC: probability that it is higher for a correct"
        " than for an incorrect response (chance: 0.5). ECE: calibration error. Brier: mean squared"
        " error. Overconfidence: mean confidence minus the fraction of correct responses."
    )
    head = ["", "AUROC", "ECE", "Brier", "overconfidence"]
    topic.tables.append(Table("Confidence", head, rows, note))
    old, new = found[names[0]], found[names[1]]
    chance = ""
    if again is not None:
        chance = f"; second sampling of {names[0]}: {found[f'{names[0]} again'].auroc:.3f}"
    topic.sentences += [
        "The mean token probability is higher for a correct than for an incorrect response with"
        f" probability {old.auroc:.3f} → {new.auroc:.3f} (AUROC; without relation 0.5{chance}).",
        "It exceeds the fraction of correct responses by"
        f" {signed_number(old.overconfidence)} → {signed_number(new.overconfidence)}.",
    ]
