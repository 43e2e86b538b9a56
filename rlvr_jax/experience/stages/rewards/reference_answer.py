"""How likely the policy finds the reference answer, read behind the reasoning of each response."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Actor, Stage
from rlvr_jax.objectives import (
    answer_likelihoods,
    debiased,
    group_std,
    likely_answer_reward,
    spread_floor,
)
from rlvr_jax.tasks import Prompt, Response
from rlvr_jax.types.hyperparameters import Unit
from rlvr_jax.types.parts import part

__all__ = ["LikelyAnswerState", "at_last_word", "behind_tags", "likely_answers"]


class Spliced(NamedTuple):
    """A response whose answer is the reference.

    Fields:
      before: text up to the answer.
      answer: the reference, with a blank before it if `before` does not end with one.
      well_formed: the response has the format.
    """

    before: str
    answer: str
    well_formed: bool


Splice = Callable[[Prompt, Response], Spliced]


class LikelyAnswerState(NamedTuple):
    """What is kept between steps.

    Fields:
      base: float32 [P], how likely the first policy finds the answer without reasoning; NaN until
        the prompt is asked.
      spread: of `spread_floor`.
    """

    base: np.ndarray
    spread: Any


def behind_tags(prompt: Prompt, response: Response) -> Spliced:
    """The body of the one <answer> block is replaced, behind the white space that it begins with or
    a blank; other responses are ended by such a block."""
    text, reference = response.text, _told(prompt)
    tags = ("</think>", "<answer>", "</answer>")
    if all(text.count(tag) == 1 for tag in tags):
        thought, start, end = (text.index(tag) for tag in tags)
        body = text[start + len("<answer>") : end]
        if thought < start < end and body.strip():
            space = body[: len(body) - len(body.lstrip())] or " "
            return Spliced(text[: start + len("<answer>")] + space, reference, True)
    return Spliced(f"{text.partition('</think>')[0]}</think> <answer> ", reference, False)


def at_last_word(prompt: Prompt, response: Response) -> Spliced:
    """The last word gives way to that of the prompt's gold response, or of its answer where there
    is none: for tasks whose answers end with what they come to and have no tags.

    The form is kept by a response that ends by itself, with a word before the last one.
    """
    reference = (_told(prompt) if prompt.gold is None else prompt.gold).split()[-1:]
    words = response.text.split()
    before = response.text.rstrip()[: -len(words[-1])].rstrip() if words else ""
    answer = f" {reference[0]}" if before and reference else "".join(reference)
    return Spliced(before, answer, bool(before) and not response.truncated)


def _told(prompt: Prompt) -> str:
    """The reference answer in words; "" where there is none."""
    return "" if prompt.answer is None else str(prompt.answer)


def _check_answer(spliced: Spliced, prompt: Prompt) -> None:
    """Refuses a reference of no words, of which nothing is likely."""
    if not spliced.answer.strip():
        raise ValueError(
            "likely_answers: prompts must have an answer of one token or more (Prompt.answer), got"
            f" {prompt.answer!r} for prompt {prompt.text[:80]!r}"
        )


@part
def likely_answers(
    splice: Splice = behind_tags,
    form_share: Unit = 0.1,
    spread_share: float = 0.5,
    keep: float = 0.99,
    start: int = 11,
) -> Stage:
    """Pays the mean probability of the reference answer's tokens, above that without reasoning.

    R = (1 - c) max(0, p - b) + c format: p under the current policy behind the response's
    reasoning, b under the first one behind the prompt. The answer's tokens are those behind the
    common beginning of the two texts without and with it. Reasoning that leaves no room for the
    answer is cut at its end. Groups whose rewards differ less than `spread_floor` says leave the
    loss.

    Args:
      splice: (prompt, response) -> where the answer stands, and what it is.
      form_share: c.
      spread_share, keep, start: of `spread_floor`.
    Reads: Prompt.answer, texts. Writes: reward, mask. Scores: each response once more, and each new
      prompt under the first policy.
    Metrics: reward/likelihood (p), reward/base (b), reward/gain, reward/format (means over the rows
      with a verdict), group_spread, spread_floor, dropped_share (of the groups with one).
    Raises:
      ValueError: form_share outside [0, 1]; numbers of `spread_floor`; when a run begins, a prompt
        to train on without an answer; in a run, an answer longer than a response may be.
    Source: RLPR, https://github.com/OpenBMB/RLPR.
    """
    filtering = spread_floor(spread_share, keep, start)

    def init(setting):
        for prompt in setting.task.train:
            _check_answer(splice(prompt, Response("")), prompt)
        base = np.full(len(setting.task.train), np.nan, np.float32)
        return LikelyAnswerState(base, filtering.init())

    def apply(batch, actor, state, turn):
        kind = batch.rollouts.reward.dtype
        spliced = [splice(*pair) for pair in zip(batch.prompts, batch.responses, strict=True)]
        whole = likelihoods(batch, actor, spliced, "current")
        base, known = _base(batch, actor, state.base, splice)
        gain = np.asarray(debiased(whole, base), kind)
        form = np.array([one.well_formed for one in spliced], kind)
        earned = np.where(batch.decided, likely_answer_reward(gain, form, form_share), 0).astype(
            kind
        )
        group = np.where(batch.decided, batch.rollouts.group, -1 - np.arange(len(batch)))
        spread = np.asarray(group_std(earned, group.astype(np.int32)))
        floor = filtering.floor(state.spread)
        low = batch.decided & ~(spread >= floor)
        # A row with a verdict stands for its group.
        known_rows = [rows[batch.decided[rows]] for rows in batch.groups]
        first = np.array([rows[0] for rows in known_rows if len(rows)], int)
        told = {"spread_floor": floor}
        if len(first):
            told |= {
                "reward/likelihood": float(whole[batch.decided].mean()),
                "reward/base": float(base[batch.decided].mean()),
                "reward/gain": float(gain[batch.decided].mean()),
                "reward/format": float(form[batch.decided].mean()),
                "group_spread": float(spread[first].mean()),
                "dropped_share": float(low[first].mean()),
            }
        after = LikelyAnswerState(known, filtering.observe(state.spread, spread[first]))
        return batch.without(low).with_rollouts(reward=earned), after, told

    return Stage(apply, init, reads=frozenset({"answer"}), by_row=True)


def likelihoods(batch: Batch, actor: Actor, spliced: Sequence[Spliced], of: str) -> np.ndarray:
    """The mean probability of the answers' tokens, [B]."""
    room = batch.rollouts.tokens.shape[1]
    rows, counts = [], []
    for ask, one in zip(batch.asks, spliced, strict=True):
        _check_answer(one, ask.prompt)
        before = actor.encode(one.before) if one.before else []
        tokens = actor.encode(one.before + one.answer)
        same = next(
            (n for n, pair in enumerate(zip(before, tokens, strict=False)) if pair[0] != pair[1]),
            None,
        )
        answer = tokens[len(before) if same is None else same :]
        if not answer or len(answer) > room:
            raise ValueError(
                f"likely_answers: the answer must have 1 to {room} tokens, got {len(answer)} for"
                f" prompt {ask.prompt.text[:80]!r}"
            )
        reasoning = tokens[: len(tokens) - len(answer)][: room - len(answer)]
        rows.append([*reasoning, *answer])
        counts.append(len(answer))
    asks = [replace(ask, samples=1, given=()) for ask in batch.asks]
    written = actor.written(asks, rows)
    length, count = written.rollouts.length[:, None], np.array(counts)[:, None]
    place = np.arange(room)[None]
    of_answer = (place < length) & (place >= length - count)
    logp = actor.score(written, ["logp"], of)["logp"]
    return np.asarray(answer_likelihoods(logp, of_answer)["mean_probability"])


def _base(batch, actor, known, splice) -> tuple[np.ndarray, np.ndarray]:
    """What the first policy says of each row's answer, and the state with what was asked now."""
    numbers = np.array([ask.number for ask in batch.asks])
    inside = numbers < len(known)
    lacking = ~inside | np.isnan(known[np.where(inside, numbers, 0)])
    values = np.where(inside, known[np.where(inside, numbers, 0)], np.nan)
    known = known.copy()
    if lacking.any():
        rows = np.flatnonzero(lacking)
        # Each prompt once, however many responses to it there are.
        _, first, same = np.unique(numbers[rows], return_index=True, return_inverse=True)
        asked = batch.take(rows[first])
        empty = Response("")
        ends = [splice(prompt, empty)._replace(before="") for prompt in asked.prompts]
        found = likelihoods(asked, actor, ends, "start")[same]
        values[rows] = found
        kept = inside[rows]
        known[numbers[rows][kept]] = found[kept]
    return values.astype(np.float32), known
