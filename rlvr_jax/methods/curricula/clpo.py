"""CLPO: hard prompts are rewritten simpler and medium ones differently, and both are trained on.

"CLPO: Curriculum Learning meets Policy Optimization for LLM Reasoning",
https://github.com/csuking/CLPO (its first version)

    band  hard: accuracy ≤ 0.3; medium: ≤ 0.7; easy: above
    1. the policy is shown prompt and answer; it rewrites hard ones simpler, medium ones differently
    2. N rollouts of each rewritten prompt; groups of mixed outcomes stay, of both kinds
    3. loss = mean_t [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + β s_band k3(π ‖ π_ref)], s = ½ if hard

A rewritten prompt has the band of its original. The responses that rewrite prompts are not trained
on. With N = 4 the bands are {0, ¼}, {½}, {¾, 1}. A prompt that reveals its whole answer is always
solved, and its group is dropped.

Left out: the second version of the paper, which also trains the rewriting by an unknown formula.
Reports: Qwen3-8B, mean of eight benchmarks in % (README): 73.73 (Critique-GRPO: 66.77, DAPO:
64.50).
Traps: A rewritten prompt that reveals part of the answer is trained on. In the released code, an
error in the labels silently disables the scale.
"""

from dataclasses import replace
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience import ShownPrompt, Stage, View, concatenate, experience
from rlvr_jax.experience.stages.problems.written import (
    WRITTEN,
    accepted_groups,
    mixed,
    read_problems,
    requests_of_problems,
    with_request,
)
from rlvr_jax.objectives import clipped_objective, k3_clamped, kl_penalty, scale_of_cell
from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.types import Method, Recipe, Shown, part
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, KLCoefficient, Unit
from rlvr_jax.types.passing import arguments_of

HARD, MEDIUM, EASY = 0, 1, 2

SIMPLER = "Write a simpler version of this problem that has the same answer."
OTHER = "Write this problem differently, so that it has the same answer."
FORM = " Do not reveal the answer. Put the problem between ```text and ```."


def bands(accuracy: np.ndarray, hard: float, medium: float) -> np.ndarray:
    """The band of each accuracy: HARD up to `hard`, MEDIUM up to `medium`, EASY above; int [G]."""
    return np.where(accuracy <= hard, HARD, np.where(accuracy <= medium, MEDIUM, EASY))


@part(writes={"cell"}, by_row=True, most=2.0)
def rewrite_prompts(hard: Unit, medium: Unit) -> Stage:
    """Requests simpler versions of hard prompts and other ones of medium prompts, and samples them.

    A rewritten prompt has the answer of its original, which the policy is shown. Only groups of
    mixed outcomes stay, of originals and of rewritten prompts. The record `cell` is the band of the
    prompt. If the rows exceed the batch, originals are left out first, then medium prompts.

    Args:
      hard, medium: largest accuracy of a hard prompt, and of a medium one.
    Samples: one response per hard or medium prompt, and one group per rewritten prompt.
    Metrics: hard_prompts, medium_prompts (fractions of the prompts), rewritten (prompts),
      rewritten_accepted (groups of rewritten prompts), accepted_groups (groups).
    """
    if not hard < medium:
        raise ValueError(f"rewrite_prompts: hard must be below medium {medium}, got {hard}")

    def apply(batch, actor, state, turn):
        outcomes = batch.outcomes()
        number = np.maximum((~np.isnan(outcomes)).sum(axis=1), 1)
        band = bands(np.nansum(outcomes, axis=1) / number, hard, medium)
        metrics = {
            "hard_prompts": float(np.mean(band == HARD)),
            "medium_prompts": float(np.mean(band == MEDIUM)),
        }
        sizes = list(map(len, batch.groups))
        batch = batch.with_rollouts(cell=np.repeat(band.astype(np.int32), sizes))
        wanted = band < EASY
        problems, labels = [], []
        if wanted.any():
            requests = [
                replace(request, view=_asking(SIMPLER if label == HARD else OTHER), samples=1)
                for request, label in zip(batch.requests_of(wanted), band[wanted], strict=True)
            ]
            found = read_problems(actor.draw(requests, turn.key), actor.encode, turn)
            for problem, label in zip(found, band[wanted].tolist(), strict=True):
                if problem is not None:
                    problems.append(problem)
                    labels.append(label)
        parts = [accepted_groups(batch, mixed(outcomes))]
        written = None
        if problems:
            requests = requests_of_problems(
                problems, labels, turn.setting.samples, turn.setting.task
            )
            key = jax.random.fold_in(turn.key, 1)
            written = actor.grade(actor.draw(requests, key))
            keep = mixed(written.outcomes())
            for label in (MEDIUM, HARD):
                parts.insert(0, accepted_groups(written, keep & (np.array(labels) == label)))
            metrics["rewritten_accepted"] = float(keep.sum())
        metrics["rewritten"] = float(len(problems))
        whole = [part for part in parts if part is not None]
        metrics["accepted_groups"] = float(sum(len(part.groups) for part in whole))
        if not whole:
            return batch.without(np.ones(len(batch), bool)), state, metrics
        return concatenate(whole).renumbered(), state, metrics

    return Stage(apply, views=(_asking(SIMPLER), _asking(OTHER), WRITTEN))


@part
def _asking(request: str) -> View:
    """Shows a prompt with its answer, and requests another version of it."""

    def show(prompt: Prompt, task: Task) -> ShownPrompt:
        answer = str(prompt.answer if prompt.gold is None else prompt.gold)
        return with_request(request + FORM, answer).show(prompt, task)

    return View(show)


@arguments_of(rewrite_prompts, hard=0.3, medium=0.7)
def clpo(
    kl_coefficient: KLCoefficient = 0.001,
    hard_scale: float = 0.5,
    other_scale: float = 1.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
    **bands: Any,
) -> Recipe:
    """Applies GRPO to prompts and their rewritten versions, with a weaker KL on hard ones.

    Args:
      hard_scale, other_scale: factor on the KL for rows of hard prompts, and for other rows (s).
    """
    scale = scale_of_cell({HARD: hard_scale}, other_scale)
    return Recipe(
        objective=clipped_objective(
            clip_low,
            clip_high,
            epsilon=epsilon,
            regularizers=[kl_penalty(kl_coefficient, k3_clamped, scale, reads={"cell"})],
        ),
        experience=experience(stages=[rewrite_prompts(**bands)]),
    )


METHOD = Method(
    clpo,
    changes="regularizer, sampling, selection",
    shown=Shown("hinted_brackets", "experience/rewritten_accepted"),
)
