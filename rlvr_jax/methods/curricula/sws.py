"""SwS: what the first epochs leave unlearned says of which kinds there is to be more.

"SwS: Self-aware Weakness-driven Problem Synthesis in Reinforcement Learning for LLM Reasoning",
https://github.com/MasterVito/SwS

    F(x)   = 1 if the accuracy of x was below ½ in every one of T1 epochs, and its slope below 0
    budget of a kind ∝ the share of its prompts with F = 1
    phase 2 begins with the first weights, on prompts and on new ones of the weak kinds
    loss   = PPO's clip-higher on the token mean, of groups with accuracy in [1/8, 7/8], no KL

A prompt that is never solved has slope 0 and is left out by the paper's rule; `included` takes it,
as the released list does. New problems are made before the run by other models, from concepts that
go together (`rlvr_jax.tasks.synthesis.concepts`), filtered by agreement and by the policy's
accuracy (`outside`), and come with the task as `Prompt.meta["synthetic"]`; a kind without any gets
its failed prompts again. Share and T1 are ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlvr_jax.experience import experience, outside, refill
from rlvr_jax.experience.curricula.batches import asks_for, order_of
from rlvr_jax.experience.curricula.history import visits_of
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks.synthesis.concepts import budgets, failed
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, Unit
from rlvr_jax.types.parts import part


class _State(NamedTuple):
    """Accuracy of each prompt in each epoch, [P, T], NaN where it was not asked; the step of the
    shift; which prompts have failed, bool [P], and how much weight each kind has, [K], from then
    on."""

    accuracy: np.ndarray
    shift: np.ndarray
    fail: np.ndarray
    weight: np.ndarray


@part
def shift_to_weaknesses(
    epochs: Count, threshold: Unit, share: Unit, included: bool = False
) -> Curriculum:
    """Trains some epochs on the prompts, and then more on kinds of which many have failed.

    Failed is a prompt whose accuracy was below the threshold in every epoch and fell (`failed`).
    After the epochs the run begins with its first weights again, and of the prompts of a step a
    share is drawn from kinds in proportion to their share of failed prompts: synthetic prompts of
    the kind (`Prompt.meta["synthetic"]`), which are not asked before, or where it has none its
    failed ones; if nothing has failed, from all kinds alike that have synthetic ones. The others
    come in shuffled epochs.

    Args:
      epochs: of the first phase (T1).
      threshold: of the accuracy, in [0, 1].
      share: of a step's prompts, in [0, 1].
      included: a slope of exactly 0 counts as falling, as that of a prompt that was never solved.
    Metrics: failed_prompts, weak_asks (share of the asks that are drawn by weakness).
    """

    def of_task(setting):
        prompts = setting.task.train
        kinds = sorted({prompt.kind for prompt in prompts})
        kind = np.array([kinds.index(prompt.kind) for prompt in prompts])
        made = np.array([bool(prompt.meta.get("synthetic")) for prompt in prompts])
        return kinds, kind, made

    def init(setting):
        kinds, _, made = of_task(setting)
        prompts = len(made)
        steps = -(-(prompts - int(made.sum())) // setting.prompts)
        return _State(
            np.full((prompts, epochs), np.nan, np.float32),
            np.int32(epochs * steps),
            np.zeros(prompts, bool),
            np.zeros(len(kinds), np.float32),
        )

    def propose(asks, state, turn):
        del asks
        setting, wanted = turn.setting, turn.setting.prompts
        _, kind, made = of_task(setting)
        originals = np.flatnonzero(~made)
        if turn.step < state.shift:
            # Every original once in each epoch, in an order of its own.
            each = int(state.shift) // epochs
            epoch, place = divmod(turn.step, each)
            random = np.random.default_rng([setting.seed, epoch, len(originals)])
            first = (place + turn.round * each) * wanted
            order = random.permutation(originals)
            return asks_for(turn, order[(first + np.arange(wanted)) % len(order)])
        random = turn.random().spawn(turn.round + 1)[-1]
        weak = int(share * wanted) if state.weight.any() else 0
        chosen = []
        for place in random.choice(len(state.weight), weak, p=_chances(state.weight)):
            members = np.flatnonzero((kind == place) & made)
            members = members if len(members) else np.flatnonzero((kind == place) & state.fail)
            chosen.append(int(random.choice(members)))
        plain = order_of(setting).indices(turn.step, turn.round, setting.rounds)
        plain = [number for number in plain if not made[number]] or originals.tolist()
        chosen += np.resize(plain, wanted - weak).tolist()
        return asks_for(turn, chosen)

    def observe(state, turn, seen, learned):
        del learned
        kinds, kind, made = of_task(turn.setting)
        told = {"failed_prompts": float(state.fail.sum()), "weak_asks": 0.0}
        if turn.step >= state.shift:
            weak = int(share * turn.setting.prompts) if state.weight.any() else 0
            return state, told | {"weak_asks": weak / turn.setting.prompts}
        accuracy = state.accuracy.copy()
        epoch = turn.step // (int(state.shift) // epochs)
        for visit in visits_of(seen, len(accuracy)):
            accuracy[visit.number, epoch] = visit.rate
        state = state._replace(accuracy=accuracy)
        if turn.step + 1 < state.shift:
            return state, told
        # What was never asked, or never graded, has not failed.
        known = ~np.isnan(accuracy).any(axis=1) & ~made
        fail = known & failed(np.nan_to_num(accuracy, nan=1.0), threshold, included=included)
        rate = budgets(fail[~made], kind[~made], len(kinds), 1.0)
        # Where nothing has failed all kinds count alike, of those that have prompts to ask.
        there = np.bincount(kind, weights=made | fail, minlength=len(kinds)) > 0
        weight = np.where(there, rate, 0)
        told["failed_prompts"] = float(fail.sum())
        return state._replace(fail=fail, weight=weight.astype(np.float32)), told

    def events(state, step):
        return frozenset({"restart", "reset"} if step == int(state.shift) else ())

    return Curriculum(propose, init, observe, events=events)


def _chances(weight: np.ndarray) -> np.ndarray:
    weight = weight.astype(float)
    total = weight.sum()
    return weight / total if total > 0 else np.full(len(weight), 1 / len(weight))


ROUNDING = 1e-6
"""A group at a bound is kept."""


def sws(
    epochs: int = 2,
    threshold: float = 0.5,
    share: float = 0.5,
    included: bool = False,
    low: float = 0.125,
    high: float = 0.875,
    max_rounds: int = 1,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Clip-higher GRPO without KL, in its second phase on what the first one did not learn.

    Args:
      epochs: of the first phase (T1).
      threshold: accuracy that a failed prompt never reaches.
      share: of the prompts of a step in the second phase that are of weak kinds.
      included: a slope of exactly 0 counts as falling.
      low, high: accuracies of groups that are learned from, both included.
      max_rounds: batches that are drawn at most to fill one update; 1: none more.
    """
    kept = outside(low - ROUNDING, high + ROUNDING)
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=group_normalized(epsilon)
        ),
        experience=experience(
            shift_to_weaknesses(epochs, threshold, share, included),
            stages=[refill(kept, max_rounds)],
        ),
    )


METHOD = Method(
    sws,
    "SwS: Self-aware Weakness-driven Problem Synthesis in Reinforcement Learning for LLM Reasoning",
    "https://github.com/MasterVito/SwS",
    changes="curriculum, selection",
    left_out="writing, judging and answering new problems by other models",
    reports="eight benchmarks, over the same RL without new problems: 10.0 % (7B) and 7.7 % (32B)",
    traps=(
        "without `included` prompts that are never solved are no weakness; without new problems "
        "in the task failed ones only come again; one epoch has no slope; the released sampler "
        "mixes up its neighbours"
    ),
)
