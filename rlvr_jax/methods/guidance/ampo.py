"""AMPO: where all answers fail, the solutions of several teachers that the policy understands best.

"More Than One Teacher: Adaptive Multi-Guidance Policy Optimization for Diverse Exploration",
https://github.com/SII-Enigma/AMPO

    in a group without a right answer, k = min(2, teachers, wrong answers) of them are overwritten
    by the solutions after which the answer is most probable; these have reward 1
    A_i  = R_i - mean over all N rows of the group
    own token:    PPO clip with dual clip, log-ratio clamped to ±20
    teacher's:    -A_i f(π),  f(π) = π / (π + γ)
    loss = Σ over all tokens / L - c_H mean H

This is the released script. The paper divides A by the group's standard deviation, clips f, and
adds the mean over own tokens to the mean over solutions of their token means, so that a long one
does not outweigh: `group_normalized()`, `average_by_origin()` and
`by_origin(ppo_clip(ε, ε), shaped_probability(γ, clip=ε))` on the token mean. The solutions are
those of `Prompt.meta["solutions"]`, the answer is their last step; the code's score also counts the
format with a tenth.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience import experience
from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.batch import Batch, GroupTest, concatenate
from rlvr_jax.experience.parts import Actor, Stage, Turn
from rlvr_jax.experience.stages.donors.traces import GIVES, off_policy_rows, own_rows
from rlvr_jax.objectives import (
    by_origin,
    clamped_token_ratio,
    fixed_length_sum,
    group_centered,
    objective,
    ppo_clip,
    shaped_probability,
    statistic_term,
)
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import has_tokens
from rlvr_jax.objectives.statistics.masked import masked_count
from rlvr_jax.objectives.surrogates.by_origin import foreign_tokens
from rlvr_jax.tasks.base import Prompt
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, DualClip, Finite
from rlvr_jax.types.parts import Function, part


@part
def none_above(bound: Finite) -> Function:
    """Groups with verdicts, of which none is above a bound.

    Args:
      bound: a number.
    """

    def none(outcomes):
        known = ~np.isnan(outcomes)
        return known.any(axis=1) & ~(known & (outcomes > bound)).any(axis=1)

    return none


RIGHT = 0.5
"""An outcome above this counts as right."""


def traces_of(prompt: Prompt) -> list[Sequence[str]]:
    """The worked solutions of a prompt, each as its steps: `meta["solutions"]`, else `solution`."""
    return list(prompt.meta.get("solutions") or [prompt.solution])


def comprehension(logp: np.ndarray, answer: np.ndarray, geometric: bool = False) -> np.ndarray:
    """How probable an answer is for a policy that has read what stands before it, [B].

    Args:
      logp: [B, T], log-probs of rows that end with the answer.
      answer: bool [B, T], its tokens; 0 for a row without any.
      geometric: exp of the mean log-prob, and not the mean probability.
    """
    count = np.maximum(answer.sum(axis=1), 1)
    values = logp if geometric else np.exp(logp)
    mean = np.where(answer, values, 0).sum(axis=1) / count
    return np.where(answer.any(axis=1), np.exp(mean) if geometric else mean, 0)


def by_comprehension(score: np.ndarray, length: np.ndarray, number: int) -> np.ndarray:
    """The places of the `number` best understood traces, of equal ones the shorter first.

    Args:
      score, length: of each trace.
    """
    return np.lexsort((length, -np.asarray(score)))[:number]


@part(reads=frozenset({"solution"}), writes=GIVES, by_row=True)
def place_ranked_traces(when: GroupTest, most: Count = 2, right_above: Finite = RIGHT) -> Stage:
    """Puts worked solutions in the place of wrong answers, where a group needs them.

    Of the solutions that a prompt has (`traces_of`) those are taken after whose reasoning the
    policy finds the answer, their last step, most probable; they overwrite as many wrong rows,
    drawn at random. A solution is learned from with reward 1, whatever its grade is. What is longer
    than the budget of a response is no candidate.

    Args:
      when: which groups, such as `none_above(0.5)`.
      most: solutions of a group at most.
      right_above: outcome above which an answer is right, so that it is not overwritten.
    Reads: outcome, Prompt.solution, Prompt.meta. Writes: off_policy, origin; reward, of the rows
      that are added. Scores: the solutions of those groups. Metrics: traces (rows added),
      traces_right (of them), traces_too_long (solutions of those groups), comprehension (mean of
      the rows added).
    """

    def apply(batch, actor, state, turn):
        wanted = np.flatnonzero(when(batch.outcomes()))
        batch = own_rows(batch)
        random = turn.random()
        order, chosen, scores, long = np.arange(len(batch)), [], [], 0
        for group in wanted:
            rows = batch.groups[group]
            wrong = rows[batch.rollouts.outcome[rows] <= right_above]
            written, answer = _candidates(actor, batch.asks[rows[0]], turn)
            long += len(traces_of(batch.asks[rows[0]].prompt)) - len(answer)
            if written is None or not len(wrong):
                continue
            logp = actor.score(written, ["logp"])["logp"]
            score = comprehension(logp, answer)
            best = by_comprehension(score, written.rollouts.length, min(most, len(wrong)))
            places = random.permutation(wrong)[: len(best)]
            order[places] = len(batch) + sum(map(len, chosen)) + np.arange(len(best))
            chosen.append(written.take(best))
            scores += score[best].tolist()
        if not chosen:
            return (
                batch,
                state,
                {"traces": 0.0, "traces_right": 0.0, "traces_too_long": float(long)},
            )
        traces = actor.grade(off_policy_rows(concatenate(chosen)))
        right = float(np.sum(traces.rollouts.outcome > RIGHT))
        traces = traces.with_rollouts(reward=np.ones_like(traces.rollouts.reward))
        group = batch.rollouts.group
        whole = concatenate([batch, traces]).take(order).with_rollouts(group=group).renumbered()
        told = {"traces": float(len(traces)), "traces_right": right}
        told |= {"traces_too_long": float(long), "comprehension": float(np.mean(scores))}
        return whole, state, told

    return apply


def _candidates(actor: Actor, ask: Ask, turn: Turn) -> tuple[Batch | None, np.ndarray]:
    """Rows of a prompt's solutions that fit the budget, and where in them the answer stands."""
    stop, width = actor.stop_token(), turn.setting.response_tokens
    rows, starts = [], []
    for steps in traces_of(ask.prompt):
        tokens = actor.encode("".join(steps))
        if len(tokens) < width:
            rows.append([*tokens, stop])
            starts.append(min(len(actor.encode("".join(steps[:-1]))), len(tokens) - 1))
    if not rows:
        return None, np.zeros((0, width), bool)
    written = actor.written([replace(ask, samples=len(rows))], rows)
    places = np.arange(width)[None]
    ends = written.rollouts.length[:, None] - 1  # the stop token belongs to no answer
    return written, (places >= np.array(starts)[:, None]) & (places < ends)


@part(reads={"off_policy", "batch_statistics"}, writes={"weight"})
def average_by_origin() -> Transform:
    """Makes a token mean the sum of two: over own tokens, and over foreign rows of their token
    means. A long worked solution then counts as a short one.

    weight' = weight · N / n for the n own tokens of N, and weight · N / (S n_i) for those of the S
    rows that hold foreign tokens, n_i of them in row i.
    """

    def apply(signals, context, state):
        mask, dtype = signals.mask, signals.weight.dtype
        foreign = mask & foreign_tokens(context.rollouts)

        def count(tokens, axis=None):
            return jnp.maximum(masked_count(tokens, axis), 1).astype(dtype)

        rows = jnp.maximum(jnp.sum(has_tokens(foreign)), 1).astype(dtype)
        share = jnp.where(foreign, rows * count(foreign, 1)[:, None], count(mask & ~foreign))
        signals = replace(signals, weight=signals.weight * count(mask) / share)
        return signals, state, {}

    return apply


def ampo(
    gamma: float = 0.1,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    dual_clip: DualClip = 10.0,
    right_above: float = 0.6,
    traces: int = 2,
    entropy_coefficient: float = 0.001,
    max_length: int = 8192,
) -> Recipe:
    """PPO on own tokens, shaped probability on solutions that stand in where all answers fail.

    Args:
      gamma: probability at which a teacher's token is learned from most (γ).
      right_above: outcome above which an answer is right.
      traces: solutions of a group at most (k_0).
      entropy_coefficient: weight of the mean entropy (c_H).
      max_length: budget of response tokens (L).
    """
    bonus = [statistic_term(-entropy_coefficient, "entropy")] if entropy_coefficient else []
    own = ppo_clip(low=clip_low, high=clip_high, ratio=clamped_token_ratio, dual=dual_clip)
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            surrogate=by_origin(own=own, foreign=shaped_probability(gamma)),
            regularizers=bonus,
            aggregation=fixed_length_sum(max_length),
        ),
        experience=experience(
            stages=[place_ranked_traces(none_above(right_above), traces, right_above)]
        ),
    )


METHOD = Method(
    ampo,
    "More Than One Teacher: Adaptive Multi-Guidance Policy Optimization for Diverse Exploration",
    "https://github.com/SII-Enigma/AMPO",
    changes="advantage, surrogate, aggregation, guidance",
    ratio="other",
    left_out="solutions in other groups by chance; the format's part in the ranking",
    reports=(
        "Qwen2.5-7B-Instruct on 8.5k problems: 4.3 points in maths and 12.2 out of domain over "
        "GRPO; like one strong teacher on 46k"
    ),
    traps=(
        "acts only where every answer of a group fails; the loss is a sum over tokens, not the "
        "paper's two means, so a long solution outweighs others; give max_length the run's budget"
    ),
)
