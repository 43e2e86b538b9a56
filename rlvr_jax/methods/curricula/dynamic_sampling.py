"""Dynamic sampling: groups that teach something fill the batch, and prompts come by their history.

DAPO's filter (https://arxiv.org/abs/2503.14476, verl-recipe/dapo) and its relatives: the adaptive
pool of CodeV-R1 (https://github.com/iprc-dip/CodeV-R1), the exclusion of solved prompts of
https://github.com/allenai/open-instruct, the priorities of Kimi k1.5 (from memory).

    keep a group   max outcome - min outcome > 0; the first B kept groups, in the order of arrival
    next round     ⌈missing / ρ̂⌉ prompts, ρ̂ the lowest share of groups that was kept so far
    s_x            = 0.7 s_x + 0.3 · pass rate of a visit, from 0.5
    draw prompt x  (1 - ε) w(s_x) / Σ w + ε / P, w = 1 - s: hard ones first
    leave x out    once a visit's pass rate is at least r_max
    loss           GRPO's on the kept groups, token mean

The filter reads outcomes, not shaped rewards, which are hardly ever equal; curves of outcomes are
of all that was drawn. When the rounds are used up, dropped groups fill the batch, their mask
cleared. `weight=undecided` draws by s (1 - s) instead. The average's 0.7 and 0.5, ε and r_max are
ours, as the sources give none; of eight answers a prompt with a true rate of 0.75 has seven or more
right with chance 0.37, and is left out. `refill(outside(low, high), rounds)` is OpenRLHF's form of
the filter, on the mean outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience import experience, uniform
from rlvr_jax.experience.batch import GroupTest
from rlvr_jax.experience.curricula.batches import asks_for
from rlvr_jax.experience.curricula.history import History, no_history, visited, visits_of
from rlvr_jax.experience.curricula.picks import mixed, of_round, weighted_order
from rlvr_jax.experience.parts import Curriculum, Stage
from rlvr_jax.experience.stages.rounds.redraw import refilled
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import Bound, ClipHigh, ClipLow, Count, Epsilon, Unit
from rlvr_jax.types.parts import part


def solved(rates: np.ndarray, limit: float) -> np.ndarray:
    """Which visits solve their prompt for good: a pass rate of at least the limit."""
    return np.asarray(rates) >= limit


class _State(NamedTuple):
    history: History
    solved: np.ndarray


def hard_first(mean: np.ndarray) -> np.ndarray:
    """1 - s, s the average pass rate."""
    return 1 - mean


def undecided(mean: np.ndarray) -> np.ndarray:
    """s (1 - s), the variance of an outcome."""
    return mean * (1 - mean)


@part
def prioritized(
    weight: Callable[[np.ndarray], np.ndarray],
    explore: Unit,
    decay: Unit,
    prior: Unit = 0.5,
    resample_below: Bound = float("inf"),
) -> Curriculum:
    """Draws prompts without replacement, with chances (1 - ε) w(s) / Σ w(s) + ε / P.

    s is the exponential average of a prompt's pass rates, s' = d · s + (1 - d) · rate. A prompt
    that reaches the limit in one visit is not drawn again, until fewer than a step's prompts are
    left: then all are drawn. The shares of kinds in the task's mixture do not count.

    Args:
      weight: (s [P]) -> w [P], at least 0: `hard_first` or `undecided`.
      explore: ε in [0, 1], share of a uniform draw, so that no prompt starves.
      decay: d in [0, 1].
      prior: s before the first visit, in [0, 1].
      resample_below: the limit; infinite: none is left out.
    Metrics: solved_share (of all prompts, left out), mean_history (of s).
    """

    def init(setting):
        prompts = len(setting.task.train)
        return _State(no_history(prompts, prior=prior), np.zeros(prompts, bool))

    def propose(asks, state, turn):
        del asks
        left = ~state.solved
        if left.sum() < turn.setting.prompts:
            left = np.ones_like(left)
        chances = np.zeros(left.shape)
        chances[left] = mixed(weight(state.history.mean[left].astype(float)), explore)
        return asks_for(turn, of_round(weighted_order(turn.random(), chances), turn))

    def observe(state, turn, seen, learned):
        del learned
        visits = visits_of(seen, len(state.solved))
        numbers = [visit.number for visit in visits]
        rates = [visit.rate for visit in visits]
        history = visited(state.history, turn.step, numbers, rates, decay)
        done = state.solved.copy()
        done[np.array(numbers, int)[solved(rates, resample_below)]] = True
        told = {"solved_share": float(done.mean()), "mean_history": float(history.mean.mean())}
        return _State(history, done), told

    return Curriculum(propose, init, observe)


class KeepRate(NamedTuple):
    """Lowest share of groups that was kept so far, as a fraction of whole numbers (int32)."""

    kept: np.ndarray
    drawn: np.ndarray


def lower_rate(rate: KeepRate, kept: int, drawn: int) -> KeepRate:
    """min(ρ̂, kept / drawn); of nothing kept, as if it were one group."""
    kept = max(kept, 1)
    if kept * int(rate.drawn) >= int(rate.kept) * drawn:
        return rate
    return KeepRate(np.array(kept, np.int32), np.array(drawn, np.int32))


def next_pool(missing: int, rate: KeepRate) -> int:
    """⌈missing / ρ̂⌉, prompts that are likely to give the groups that are missing."""
    return -(-missing * int(rate.drawn) // int(rate.kept))


@part
def adaptive_refill(when: GroupTest, rounds: Count) -> Stage:
    """Draws further prompts as `refill` does, as many as are likely to fill the batch.

    With ρ = kept / drawn groups of the step so far, ρ̂ = min(ρ̂, ρ) over the run, from 1, and a round
    asks ⌈missing / ρ̂⌉ prompts. The estimate only falls.

    Args:
      when: which groups are dropped, such as `uniform`. Groups without a verdict always are.
      rounds: draws at most, the first one included; a round of more prompts than a step has uses
        up several batches of the curriculum.
    Reads: outcome. Writes: mask, of groups that fill the batch.
    Metrics: those of `refill`; refill/keep_rate (ρ̂).
    """

    def init(setting):
        del setting
        return KeepRate(np.array(1, np.int32), np.array(1, np.int32))

    def apply(batch, actor, state, turn):
        rate = KeepRate(*state)

        def pool(missing, kept, drawn):
            nonlocal rate
            rate = lower_rate(rate, kept, drawn)
            return next_pool(missing, rate)

        batch, told = refilled(batch, actor, turn, when, rounds, pool)
        return batch, rate, {**told, "refill/keep_rate": int(rate.kept) / int(rate.drawn)}

    return Stage(apply, init, rounds=rounds - 1)


def dynamic_sampling(
    max_rounds: int = 10,
    weight: Callable[[np.ndarray], np.ndarray] = hard_first,
    explore: float = 0.1,
    decay: float = 0.7,
    prior: float = 0.5,
    resample_below: float = 0.875,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on the token mean of groups of mixed outcomes, of prompts drawn by their pass rates.

    Args:
      max_rounds: draws at most to fill one update.
      weight: of a prompt by its average pass rate, `hard_first` or `undecided`.
      explore: share of uniform draws (ε).
      decay: of the average pass rate.
      prior: average pass rate before the first visit.
      resample_below: pass rate of a visit from which on a prompt is left out (r_max).
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=group_normalized(epsilon)
        ),
        experience=experience(
            curriculum=prioritized(weight, explore, decay, prior, resample_below),
            stages=[adaptive_refill(uniform, max_rounds)],
        ),
    )


METHOD = Method(
    dynamic_sampling,
    "Dynamic sampling: DAPO's group filter and its relatives",
    "https://github.com/verl-project/verl-recipe",
    changes="selection, curriculum",
    reports="Qwen2.5-32B on AIME24: 44 without the filter and the token mean, 50 with both (DAPO)",
    traps=(
        "a prompt solved 7 times of 8 in one visit is left out while others remain; the filter "
        "takes hard and easy prompts out of the gradient, and draws more the more there are; "
        "surplus groups are thrown away"
    ),
)
