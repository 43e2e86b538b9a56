"""RoRecomp: short right and long wrong answers first, the others later in updates of their own.

"RoRecomp: Enhancing Reasoning Efficiency via Rollout Response Recomposition in Reinforcement
Learning", https://arxiv.org/abs/2509.25958

    A_i = (R_i - mean) / (std + 1e-6) over the whole group, std with n - 1
    priority:      of each group the ⌈α n⁺⌉ shortest right and the ⌈α n⁻⌉ longest wrong answers
    compensation:  the others, first in first out, once there are as many as a step draws
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i, over either kind in its own update

No reward for length is needed: short and right is good, long and wrong is bad. The compensation
keeps the policy from collapsing onto short answers; its rows have the old log-probs and advantages
of the step that drew them. α, the size of the buffer and the moment of a compensation are ours, and
so are advantages from before the selection.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import jax
import numpy as np

from rlvr_jax.experience import experience
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.store import empty_store, pop_oldest, push, repeatable, rewritten
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.algebra.inputs import MEASURED, on_mask
from rlvr_jax.objectives.algebra.parts import Context, Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks.base import Grade
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, Unit
from rlvr_jax.types.parts import part
from rlvr_jax.types.rollouts import Rollouts
from rlvr_jax.types.signals import Signals
from rlvr_jax.types.token_stats import TokenStats

RIGHT = 0.5
"""An outcome above this counts as right."""


PER_TOKEN = ("behaviour_logp", "entropy", "temperature", "old_logp", "advantage")


PER_ROW = ("outcome", "reward")


def priority_rows(
    outcome: np.ndarray, length: np.ndarray, group: np.ndarray, fraction: float
) -> np.ndarray:
    """The ⌈α n⌉ shortest right and the ⌈α n⌉ longest wrong rows of each group, bool [B].

    n is the number of right, or of wrong, rows of the group; equal lengths stay by their order.

    Args:
      outcome, length, group: [B].
      fraction: α.
    """
    right = outcome > RIGHT
    chosen = np.zeros(len(outcome), bool)
    for number in np.unique(group):
        for kind, key in ((right, length), (~right, -length)):
            rows = np.flatnonzero((group == number) & kind)
            rows = rows[np.argsort(key[rows], kind="stable")]
            chosen[rows[: math.ceil(fraction * len(rows))]] = True
    return chosen


@part
def recompose(advantage: Transform, fraction: Unit = 0.5) -> Stage:
    """Learns from the shortest right and the longest wrong rows now, from the others later.

    Advantages are estimated on whole groups, before these are taken apart. What is not chosen is
    scored and kept with its advantage and old log-probs, first in, first out; once there are as
    many rows as a step draws, the oldest are a further update. Only answers to train prompts as
    they are can be kept; the others are dropped.

    Args:
      advantage: of the objective, estimated here; it reads no policy.
      fraction: of the right and of the wrong rows of a group that are chosen (α), in (0, 1].
    Reads: outcome, length, what the advantage reads. Writes: advantage; `Batch.further`, of rows
      that are stored. Metrics: priority_share (of the rows), kept_rows (that wait),
      compensation_rows (in a further update).
    Raises:
      ValueError: fraction outside (0, 1]; an advantage that reads a policy.
    """
    if not fraction:
        raise ValueError(f"recompose: fraction must be above 0, got {fraction}")
    estimate = estimator(advantage)

    def init(setting):
        tokens, rows = (setting.response_tokens,), setting.prompts * setting.drawn_samples
        return empty_store(
            2 * rows,  # full, and one step's more
            number=((), np.int32),
            tokens=(tokens, np.int32),
            length=((), np.int32),
            mask=(tokens, np.bool_),
            truncated=((), np.bool_),
            weight_version=((), np.int32),
            **{name: (tokens, np.float32) for name in PER_TOKEN},
            **{name: ((), np.float32) for name in PER_ROW},
        )

    def apply(batch, actor, state, turn):
        batch = batch.with_rollouts(advantage=estimate(batch.rollouts))
        rollouts = batch.rollouts
        chosen = priority_rows(rollouts.outcome, rollouts.length, rollouts.group, fraction)
        aside = ~chosen & batch.decided & repeatable(batch, turn.setting)
        if aside.any():
            state = push(state, _records(batch.take(np.flatnonzero(aside)), actor), turn.step)
        further = list(batch.further)
        full = turn.setting.prompts * turn.setting.drawn_samples
        if state.held >= full:
            rows, state = pop_oldest(state, full)
            further.append(_compensation(rewritten(actor, turn.setting.task, rows), rows))
        told = {
            "priority_share": float(chosen.mean()),
            "kept_rows": float(state.held),
            "compensation_rows": float(sum(map(len, further))),
        }
        priority = batch.take(np.flatnonzero(chosen)).renumbered()
        return replace(priority, further=further), state, told

    return Stage(apply, init, writes=frozenset({"advantage"}), updates=1, by_row=True)


def _records(rest: Batch, actor) -> dict[str, np.ndarray]:
    """What is kept of rows, their log-probs at the weights that sampled among it."""
    rest = rest.with_rollouts(old_logp=actor.score(rest, ["logp"])["logp"])
    names = ("tokens", "length", "mask", "truncated", "weight_version", *PER_TOKEN, *PER_ROW)
    known = {name: getattr(rest.rollouts, name) for name in names}
    return {"number": np.array([ask.number for ask in rest.asks], np.int32), **known}


def _compensation(written: Batch, rows: dict[str, np.ndarray]) -> Batch:
    """Stored rows as a batch that brings its advantages and old log-probs."""
    kind = written.rollouts.reward.dtype
    numbers = {name: rows[name].astype(kind) for name in (*PER_TOKEN, *PER_ROW)}
    other = {name: rows[name] for name in ("mask", "truncated", "weight_version")}
    whole = written.with_rollouts(stored=np.ones(len(written), bool), **numbers, **other)
    pairs = zip(rows["outcome"].tolist(), rows["reward"].tolist(), strict=True)
    return replace(whole, grades=[Grade(outcome, reward) for outcome, reward in pairs])


def estimator(advantage: Transform) -> Callable[[Rollouts], np.ndarray]:
    """The function (rollouts) -> [B, T] of an advantage part.

    Args:
      advantage: without state, and of what stands in the rollouts alone, such as
        `group_normalized()`.
    Raises:
      ValueError: a part that reads statistics of a policy.
    """
    if advantage.reads & MEASURED:
        raise ValueError(
            f"estimator: advantage must read no statistic of a policy, got {advantage.label} that"
            f" needs {sorted(advantage.reads)}"
        )

    @jax.jit
    def estimate(rollouts):
        _, clean = on_mask(TokenStats(logp=rollouts.behaviour_logp), rollouts)
        signals = Signals.neutral(clean.mask, clean.reward.dtype)
        # There is no policy yet and nothing random: who reads them fails.
        context = Context(TokenStats(), clean, clean.behaviour_logp, None)
        return advantage.apply(signals, context, ())[0].advantage

    return lambda rollouts: np.asarray(estimate(rollouts))


def rorecomp(
    fraction: float = 0.5,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """PPO's clip on the token mean, on groups that are taken apart by length.

    Args:
      fraction: of the right and of the wrong answers of a group that go first (α).
    """
    advantage = group_normalized(epsilon)
    return Recipe(
        objective=clipped_objective(clip_low=clip_low, clip_high=clip_high, advantage=advantage),
        experience=experience(stages=[recompose(advantage, fraction)]),
    )


METHOD = Method(
    rorecomp,
    "RoRecomp: Enhancing Reasoning Efficiency via Rollout Response Recomposition in Reinforcement"
    " Learning",
    "https://arxiv.org/abs/2509.25958",
    changes="selection",
    baseline="other",
    evidence="reconstruction",
    left_out="a schedule of the compensation",
    reports=(
        "reasoning 27.7 % shorter from zero, tool calls 46.8 % fewer with better accuracy, up to "
        "52.5 % shorter in thinking models"
    ),
    traps=(
        "only mixed groups say anything of length; without compensation answers collapse to short "
        "ones; on the token mean long wrong answers dominate, on a mean of each they do not"
    ),
)
