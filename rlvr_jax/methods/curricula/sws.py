"""SwS: kinds of prompts that the first epochs do not learn get more prompts.

"SwS: Self-aware Weakness-driven Problem Synthesis in Reinforcement Learning for LLM Reasoning",
https://github.com/MasterVito/SwS

    F(x)    = 1 if the accuracy of x was below ½ in each of T1 epochs, and its slope below 0
    budget  of a kind ∝ the fraction of its prompts with F = 1
    phase 2 starts from the initial weights, on the prompts and on new ones of the weak kinds
    loss    = PPO's clip-higher on the token mean, of groups with accuracy in [1/8, 7/8], no KL

A prompt that is never solved has slope 0, and the paper's rule ignores it. With `included` it
counts as failed, as in the released list. Other models write new problems before the run, from
concepts that co-occur (`rlvr_jax.tasks.synthesis.concepts`). They are filtered by agreement and by
the policy's accuracy (`outside`), and are part of the task (`Prompt.meta["synthetic"]`). The
`fraction` of weak prompts and T1 (`epochs`) are ours.

Left out: other models that write, judge and answer new problems.
Reports: mean of eight benchmarks over the same RL without new problems: 7B 10.0 %, 32B 7.7 %.
Traps: Without new problems in the task, a kind repeats its failed prompts. One epoch has no slope.
The released sampler confuses neighbours.
"""

from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.experience import Curriculum, experience, outside, refill
from rlvr_jax.experience.batch import ROUNDING
from rlvr_jax.experience.curricula.batches import order_of, requests_for
from rlvr_jax.experience.curricula.history import visits_of
from rlvr_jax.experience.curricula.picks import mixed
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks.synthesis.concepts import budgets, failed
from rlvr_jax.types import Method, Recipe, part
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, Unit
from rlvr_jax.types.passing import arguments_of


class _State(NamedTuple):
    """Accuracy of each prompt in each epoch, [P, T], NaN without a visit; the step at which phase 2
    begins; the failed prompts, bool [P], and the weight of each kind, [K], from then on.
    """

    accuracy: np.ndarray
    shift: np.ndarray
    fail: np.ndarray
    weight: np.ndarray


@part
def shift_to_weaknesses(
    epochs: Count, threshold: Unit, fraction: Unit, included: bool = False
) -> Curriculum:
    """Trains some epochs on all prompts, and then more on the kinds with many failed prompts.

    A prompt has failed if its accuracy was below the threshold in every epoch and fell (`failed`).
    After the epochs, the weights are reset to the initial ones. From then on, `fraction` of a
    step's prompts come from kinds in proportion to their fraction of failed prompts. They are
    synthetic prompts, which the first phase does not use, or failed prompts for a kind without any.
    If none has failed, all kinds with synthetic prompts count equally. Other prompts come in
    shuffled epochs.

    Args:
      epochs: epochs of the first phase (T1).
      threshold: accuracy that a failed prompt never reaches.
      fraction: fraction of a step's prompts in the second phase that come from weak kinds.
      included: whether a slope of exactly 0 counts as falling, as for prompts never solved.
    Metrics: failed_prompts (prompts), weak_asks (fraction of the prompts that come from weak
      kinds).
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

    def propose(requests, state, turn):
        setting, wanted = turn.setting, turn.setting.prompts
        _, kind, made = of_task(setting)
        originals = np.flatnonzero(~made)
        if turn.step < state.shift:
            # Every original prompt once per epoch, in a new order.
            each = int(state.shift) // epochs
            epoch, place = divmod(turn.step, each)
            random = np.random.default_rng([setting.seed, epoch, len(originals)])
            first = (place + turn.round * each) * wanted
            order = random.permutation(originals)
            return requests_for(turn, order[(first + np.arange(wanted)) % len(order)])
        random = turn.random().spawn(turn.round + 1)[-1]
        weak = int(fraction * wanted) if state.weight.any() else 0
        chosen = []
        chances = mixed(state.weight.astype(float), 0.0)
        for place in random.choice(len(chances), weak, p=chances):
            members = np.flatnonzero((kind == place) & made)
            members = members if len(members) else np.flatnonzero((kind == place) & state.fail)
            chosen.append(int(random.choice(members)))
        plain = order_of(setting).indices(turn.step, turn.round, setting.rounds)
        plain = [number for number in plain if not made[number]] or originals.tolist()
        chosen += np.resize(plain, wanted - weak).tolist()
        return requests_for(turn, chosen)

    def observe(state, turn, seen, learned):
        kinds, kind, made = of_task(turn.setting)
        metrics = {"failed_prompts": float(state.fail.sum()), "weak_asks": 0.0}
        if turn.step >= state.shift:
            weak = int(fraction * turn.setting.prompts) if state.weight.any() else 0
            return state, metrics | {"weak_asks": weak / turn.setting.prompts}
        accuracy = state.accuracy.copy()
        epoch = turn.step // (int(state.shift) // epochs)
        for visit in visits_of(seen, len(accuracy)):
            accuracy[visit.number, epoch] = visit.rate
        state = state._replace(accuracy=accuracy)
        if turn.step + 1 < state.shift:
            return state, metrics
        # Prompts that were not visited or not graded have not failed.
        known = ~np.isnan(accuracy).any(axis=1) & ~made
        fail = known & failed(np.nan_to_num(accuracy, nan=1.0), threshold, included=included)
        rate = budgets(fail[~made], kind[~made], len(kinds), 1.0)
        # If none has failed, all kinds with prompts to request count equally.
        there = np.bincount(kind, weights=made | fail, minlength=len(kinds)) > 0
        weight = np.where(there, rate, 0)
        metrics["failed_prompts"] = float(fail.sum())
        return state._replace(fail=fail, weight=weight.astype(np.float32)), metrics

    def events(state, step):
        return frozenset({"restart", "reset"} if step == int(state.shift) else ())

    return Curriculum(propose, init, observe, events=events)


@arguments_of(shift_to_weaknesses, epochs=2, threshold=0.5, fraction=0.5)
def sws(
    low: float = 0.125,
    high: float = 0.875,
    max_rounds: Count = 1,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    epsilon: Epsilon = 1e-6,
    **phases: Any,
) -> Recipe:
    """Applies clip-higher GRPO without KL, later on kinds that the first phase did not learn.

    Args:
      low, high: accuracies of groups that are trained on, both included.
      max_rounds: maximum number of batches to fill one update; 1: no further ones.
    """
    dropped = outside(low - ROUNDING, high + ROUNDING)
    return Recipe(
        objective=clipped_objective(clip_low, clip_high, epsilon=epsilon),
        experience=experience(shift_to_weaknesses(**phases), stages=[refill(dropped, max_rounds)]),
    )


METHOD = Method(sws, changes="curriculum, selection")
