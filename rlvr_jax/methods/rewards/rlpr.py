"""RLPR: no verifier; a response is paid for how likely it makes the reference answer.

"RLPR: Extrapolating RLVR to General Domains without Verifiers", https://arxiv.org/abs/2506.18254

    p    = mean probability of the reference answer's tokens behind the response's reasoning
    R_i  = (1 - c) max(0, p - b) + c format,  b the same of the first policy behind the question
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

A mean of probabilities, for one bad token kills a product. After eleven steps groups are
dropped whose deviation is below β times its running mean; the authors draw others in their place,
and round p to bfloat16. A response without the tags is cut at its end and its answer is read there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from rlvr_jax.experience import experience
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Actor, Stage
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.arguments import check_at_least, check_count, check_within
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.groups import group_std
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.tasks.base import Prompt, Response
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, Unit
from rlvr_jax.types.parts import part


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


Rows = Float[Array, "B"]


Tokens = Float[Array, "B T"]


class SpreadState(NamedTuple):
    """The running mean of how much the rewards of a group differ.

    Fields:
      steps: int32 [], steps that were seen.
      total: float64 [], sum of the mean deviations of the first steps.
      mean: float64 [], the running mean; 0 before the filter starts.
    """

    steps: np.ndarray
    total: np.ndarray
    mean: np.ndarray


def answer_likelihoods(logp: Tokens, mask: Bool[Array, "B T"]) -> dict[str, Rows]:
    """Four readings of the log-probs of the reference answer's tokens.

    mean_probability is RLPR's: one bad token does not kill it, as it does a product. A row without
    tokens has 0, and 1 where nothing is multiplied.

    Args:
      logp: of the answer's tokens.
      mask: which tokens those are.
    """
    return {
        "mean_probability": masked_mean(jnp.exp(logp), mask, axis=1),
        "probability": jnp.exp(masked_sum(logp, mask, axis=1)),
        "geometric_mean": jnp.exp(masked_mean(logp, mask, axis=1)),
        "mean_logp": masked_mean(logp, mask, axis=1),
    }


def debiased(likelihood: Rows, base: Rows) -> Rows:
    """max(0, p - b): by how much the reasoning makes the answer likelier than none does.

    Args:
      likelihood: p, behind the response's reasoning.
      base: b, of the first policy straight behind the question.
    """
    return jnp.maximum(likelihood - base, 0)


def likely_answer_reward(gain: Rows, form: Rows, share: float) -> Rows:
    """(1 - c) gain + c format.

    Args:
      gain: of `debiased`.
      form: 1 where the format is kept, else 0.
      share: c.
    """
    return (1 - share) * gain + share * form


class SpreadFloor(NamedTuple):
    """A filter of groups whose rewards differ too little, and its state.

    Fields:
      init: () -> state.
      observe: (state, group deviations of all drawn groups) -> state.
      floor: (state) -> the least deviation that is trained on; 0 before it starts.
    """

    init: Callable[[], SpreadState]
    observe: Callable[[SpreadState, np.ndarray], SpreadState]
    floor: Callable[[SpreadState], float]


def spread_floor(share: float = 0.5, keep: float = 0.99, start: int = 11) -> SpreadFloor:
    """Groups are dropped whose deviation is below β times its running mean over the steps.

    Before step `start` nothing is. The running mean begins as the mean over the steps before, and
    then keeps a share of itself; steps in which no group has a deviation do not count.

    Args:
      share: β, at least 0.
      keep: share of the old running mean.
      start: first step, from 0, whose groups are dropped; at least 1.
    Raises:
      ValueError: a negative share, keep outside [0, 1], or a start below 1.
    Source: RLPR, https://github.com/OpenBMB/RLPR.
    """
    check_at_least(0, "spread_floor", share=share)
    check_within(0, 1, "spread_floor", keep=keep)
    check_count(1, "spread_floor", start=start)

    def init():
        return SpreadState(np.int32(0), np.float64(0), np.float64(0))

    def observe(state, deviations):
        found = np.asarray(deviations, np.float64)
        found = found[np.isfinite(found)]
        if not len(found):
            return state
        level = float(found.mean())
        steps = state.steps + np.int32(1)
        if steps < start:
            return SpreadState(steps, state.total + level, state.mean)
        if steps == start:
            total = state.total + level
            return SpreadState(steps, total, np.float64(total / steps))
        return SpreadState(steps, state.total, keep * state.mean + (1 - keep) * level)

    def floor(state):
        return share * float(state.mean) if state.steps >= start else 0.0

    return SpreadFloor(init, observe, floor)


def rlpr(
    form_share: float = 0.1,
    spread_share: float = 0.5,
    keep: float = 0.99,
    start: int = 11,
    splice: Splice = behind_tags,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.27,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Clip-higher on the token mean, on the likelihood of the reference answer.

    Args:
      form_share: of the format in the reward (c).
      spread_share: of the running mean of deviations, below which a group is dropped (β).
      keep: share of the old running mean.
      start: first step, from 0, whose groups are dropped.
      splice: (prompt, response) -> where the reference answer is read.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=group_normalized(epsilon)
        ),
        experience=experience(
            stages=[likely_answers(splice, form_share, spread_share, keep, start)]
        ),
    )


METHOD = Method(
    rlpr,
    "RLPR: Extrapolating RLVR to General Domains without Verifiers",
    "https://arxiv.org/abs/2506.18254",
    changes="reward, selection",
    left_out="further prompts for groups that are dropped; the penalty for repetition",
    reports=(
        "Qwen2.5-7B: 7.6 points on TheoremQA and 7.5 on Minerva over VeriFree, 1.6 over "
        "General-Reasoner, mean of seven"
    ),
    traps=(
        "answers below the likelihood without reasoning all earn 0, and groups of these are "
        "dropped; β 0.5 is for Qwen, Llama 0.9, Gemma 1.0; a product of probabilities is worse; "
        "the code rounds to bfloat16"
    ),
)
