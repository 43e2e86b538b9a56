"""RLPR: rewards a response by the probability of the reference answer after it, without a verifier.

"RLPR: Extrapolating RLVR to General Domains without Verifiers", https://arxiv.org/abs/2506.18254

    p    = mean probability of the reference answer's tokens after the response's reasoning
    R_i  = (1 - c) max(0, p - b) + c format,  b: p of the initial policy directly after the prompt
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1, over groups with std ≥ β · running mean
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

The reward is a mean of probabilities, because one improbable token destroys a product. The filter
of groups (β is `spread_fraction`) begins at step 11. Without the tags, the answer is scored at the
end of the response.

Left out: further prompts for groups that are dropped; the penalty for repetition.
Reports: Qwen2.5-7B: 7.6 points on TheoremQA and 7.5 on Minerva over VeriFree; 1.6 points over
General-Reasoner on the mean of seven sets.
Traps: Answers below the likelihood without reasoning all earn 0, and groups of these are dropped. β
= 0.5 is for Qwen, 0.9 for Llama, 1.0 for Gemma. The authors' code rounds to bfloat16.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience import Actor, Batch, Stage, experience
from rlvr_jax.objectives import clipped_objective, group_std, masked_mean, part
from rlvr_jax.tasks.base import Prompt, Response
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, NonNegative, Unit


class Spliced(NamedTuple):
    """A response whose answer is the reference.

    Fields:
      before: text up to the answer.
      answer: the reference, with a space before it if `before` does not end with one.
      well_formed: whether the response has the format.
    """

    before: str
    answer: str
    well_formed: bool


Splice = Callable[[Prompt, Response], Spliced]


def behind_tags(prompt: Prompt, response: Response) -> Spliced:
    """Replaces the body of the one <answer> block, after the white space that it begins with.

    To a response without a well-formed block one is appended.
    """
    text, reference = response.text, _reference(prompt)
    tags = ("</think>", "<answer>", "</answer>")
    if all(text.count(tag) == 1 for tag in tags):
        thought, start, end = (text.index(tag) for tag in tags)
        body = text[start + len("<answer>") : end]
        if thought < start < end and body.strip():
            space = body[: len(body) - len(body.lstrip())] or " "
            return Spliced(text[: start + len("<answer>")] + space, reference, True)
    return Spliced(f"{text.partition('</think>')[0]}</think> <answer> ", reference, False)


def at_last_word(prompt: Prompt, response: Response) -> Spliced:
    """Replaces the last word of the response by the last word of the gold response or the answer.

    For tasks without tags, whose responses end with the result. A response has the format if it is
    not truncated and has a word before the last one.
    """
    reference = (_reference(prompt) if prompt.gold is None else prompt.gold).split()[-1:]
    words = response.text.split()
    before = response.text.rstrip()[: -len(words[-1])].rstrip() if words else ""
    answer = f" {reference[0]}" if before and reference else "".join(reference)
    return Spliced(before, answer, bool(before) and not response.truncated)


def _reference(prompt: Prompt) -> str:
    """The reference answer as text; "" where there is none."""
    return "" if prompt.answer is None else str(prompt.answer)


class SpreadState(NamedTuple):
    """The running mean of the standard deviation of a group's rewards.

    Fields:
      steps: int32 [], steps that were observed.
      total: float64 [], sum over the first steps.
      mean: float64 [], the running mean; 0 before the filter starts.
    """

    steps: np.ndarray
    total: np.ndarray
    mean: np.ndarray

    def after(self, deviations: np.ndarray, keep: float, start: int) -> SpreadState:
        """The state after a step; steps without any standard deviation do not count.

        The running mean begins at step `start` as the mean over the steps before.
        """
        found = np.asarray(deviations, np.float64)
        found = found[np.isfinite(found)]
        if not len(found):
            return self
        level = float(found.mean())
        steps, total = self.steps + np.int32(1), self.total
        if steps > start:
            return SpreadState(steps, total, keep * self.mean + (1 - keep) * level)
        total = total + level
        return SpreadState(steps, total, np.float64(total / steps) if steps == start else self.mean)


NO_SPREAD = SpreadState(np.int32(0), np.float64(0), np.float64(0))


class LikelyAnswerState(NamedTuple):
    """State between steps.

    Fields:
      base: float32 [P], b of each prompt; NaN until it is first sampled.
    """

    base: np.ndarray
    spread: SpreadState


@part
def likely_answers(
    splice: Splice = behind_tags,
    form_fraction: Unit = 0.1,
    spread_fraction: NonNegative = 0.5,
    keep: Unit = 0.99,
    start: Count = 11,
) -> Stage:
    """Sets the reward to (1 - c) max(0, p - b) + c format and drops groups of small spread.

    The answer's tokens are those after the common prefix of the two texts without and with the
    answer. Reasoning is truncated at its end if the answer does not fit after it.

    Args:
      splice: (prompt, response) -> the text before the answer, the reference answer and the
        format: `behind_tags`, or `at_last_word` for tasks without tags.
      form_fraction: weight of the format in the reward (c).
      spread_fraction: fraction of the running mean of standard deviations below which a group is
        dropped (β).
      keep: weight of the old running mean.
      start: first step, from 0, whose groups are dropped.
    Scores: each response once more, and each new prompt under the initial policy.
    Metrics: reward/likelihood (mean of p, probability of the reference answer), reward/base (mean
      of b, p of the initial policy), reward/gain (mean of max(p - b, 0)), reward/format (means over
      the graded rows), group_spread (mean deviation of a group's rewards), spread_floor (its
      smallest used value), dropped_fraction (of the groups with a graded row).
    Raises:
      ValueError: when a run begins, a prompt to train on without an answer; in a run, an answer
        longer than a response may be.
    Source: RLPR, https://github.com/OpenBMB/RLPR.
    """

    def init(setting):
        for prompt in setting.task.train:
            _check_answer(splice(prompt, Response("")), prompt)
        base = np.full(len(setting.task.train), np.nan, np.float32)
        return LikelyAnswerState(base, NO_SPREAD)

    def apply(batch, actor, state, turn):
        kind, graded = batch.rollouts.reward.dtype, batch.decided
        spliced = [splice(*pair) for pair in zip(batch.prompts, batch.responses, strict=True)]
        whole = likelihoods(batch, actor, spliced, "current")
        base, known = _base(batch, actor, state.base, splice)
        gain = np.asarray(jnp.maximum(whole - base, 0), kind)
        form = np.array([one.well_formed for one in spliced], kind)
        earned = np.where(graded, (1 - form_fraction) * gain + form_fraction * form, 0).astype(kind)
        spread = np.asarray(group_std(earned, batch.rollouts.only_valid().group))
        floor = spread_fraction * float(state.spread.mean)
        low = graded & ~(spread >= floor)
        # The first graded row represents its group.
        graded_rows = [rows[graded[rows]] for rows in batch.groups]
        first = np.array([rows[0] for rows in graded_rows if len(rows)], int)
        metrics = {"spread_floor": floor}
        if len(first):
            metrics |= {
                "reward/likelihood": float(whole[graded].mean()),
                "reward/base": float(base[graded].mean()),
                "reward/gain": float(gain[graded].mean()),
                "reward/format": float(form[graded].mean()),
                "group_spread": float(spread[first].mean()),
                "dropped_fraction": float(low[first].mean()),
            }
        after = LikelyAnswerState(known, state.spread.after(spread[first], keep, start))
        return batch.without(low).rewarded(earned), after, metrics

    return Stage(apply, init, reads=frozenset({"answer"}), by_row=True)


def _check_answer(spliced: Spliced, prompt: Prompt) -> None:
    if not spliced.answer.strip():
        raise ValueError(
            "likely_answers: prompts must have an answer of one token or more (Prompt.answer), got"
            f" {prompt.answer!r} for prompt {prompt.text[:80]!r}"
        )


def likelihoods(batch: Batch, actor: Actor, spliced: Sequence[Spliced], of: str) -> np.ndarray:
    """p, the mean probability of each answer's tokens, [B].

    Args:
      batch: responses, whose requests and token budget are used.
      actor: the policies, which score the tokens.
      spliced: each response with the reference as its answer.
      of: policy that scores: "current", "start" (the initial policy) or "teacher".
    """
    budget = batch.rollouts.tokens.shape[1]
    rows, counts = [], []
    for request, one in zip(batch.requests, spliced, strict=True):
        _check_answer(one, request.prompt)
        before = actor.encode(one.before) if one.before else []
        tokens = actor.encode(one.before + one.answer)
        same = next(
            (n for n, pair in enumerate(zip(before, tokens, strict=False)) if pair[0] != pair[1]),
            None,
        )
        answer = tokens[len(before) if same is None else same :]
        if not answer or len(answer) > budget:
            raise ValueError(
                f"likely_answers: the answer must have 1 to {budget} tokens, got {len(answer)} for"
                f" prompt {request.prompt.text[:80]!r}"
            )
        reasoning = tokens[: len(tokens) - len(answer)][: budget - len(answer)]
        rows.append([*reasoning, *answer])
        counts.append(len(answer))
    requests = [replace(request, samples=1, given=()) for request in batch.requests]
    written = actor.written(requests, rows)
    length, count = written.rollouts.length[:, None], np.array(counts)[:, None]
    place = np.arange(budget)[None]
    of_answer = (place < length) & (place >= length - count)
    logp = actor.score(written, ["logp"], of)["logp"]
    return np.asarray(masked_mean(jnp.exp(logp), of_answer, axis=1))


def _base(batch, actor, known, splice) -> tuple[np.ndarray, np.ndarray]:
    """b of each row, and the stored b of the prompts with the new ones."""
    numbers = np.array([request.number for request in batch.requests])
    inside = numbers < len(known)
    stored = np.where(inside, known[np.where(inside, numbers, 0)], np.nan)
    known = known.copy()
    rows = np.flatnonzero(np.isnan(stored))
    if len(rows):
        # Each prompt once, however many responses to it there are.
        _, first, same = np.unique(numbers[rows], return_index=True, return_inverse=True)
        asked = batch.take(rows[first])
        ends = [splice(prompt, Response(""))._replace(before="") for prompt in asked.prompts]
        found = likelihoods(asked, actor, ends, "start")[same]
        stored[rows] = found
        new = inside[rows]
        known[numbers[rows][new]] = found[new]
    return stored.astype(np.float32), known


@arguments_of(likely_answers)
def rlpr(
    clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.27, epsilon: Epsilon = 1e-6, **likelihood: Any
) -> Recipe:
    """Applies clip-higher with the token mean to the likelihood of the reference answer."""
    return Recipe(
        objective=clipped_objective(clip_low, clip_high, epsilon=epsilon),
        experience=experience(stages=[likely_answers(**likelihood)]),
    )


METHOD = Method(
    rlpr,
    changes="reward, selection",
    shown=Shown(
        "hinted_brackets:train=512",
        "experience/reward/likelihood",
        hyperparameters={
            "splice": "rlvr_jax.methods.rewards.rlpr:at_last_word",
            "form_fraction": 0,
        },
    ),
)
