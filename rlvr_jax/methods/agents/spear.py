"""SPEAR: a bonus for tool calls that fades, and a replay of good responses that grows.

"Learn the Ropes, Then Trust the Wins: Self-imitation with Progressive Exploration for Agentic
Reinforcement Learning", https://github.com/TencentYoutuResearch/SPEAR

    R      = ±1 + μ(s) min(0.1 calls, 1), μ falls by a cosine to 0 at step 200
    A_i    = R_i - mean of the group;  b = median of the last group means
    replay once more than 1.5 × 32 stored rows have R > b: at most 32 of them, with A = R - b > 0,
           times γ(s), which rises by a cosine to 1 at step 300
    loss   = mean_i (1/T) Σ_t max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)), T the budget, without a
           few tokens of high covariance: 0.02 % of the new ones, 2 % of the replayed ones

μ is the weight of the bonus, γ that of the replay. Rows that are better than their group are stored
for five steps, with the old log-probs of sampling time. If rows have calls, only rows with a call
are stored. The number of calls is a reward of the task (`calls`), or the number of replies that a
row has read (`tools`).

The authors' branch for mathematics does not use the thresholds for replayed tokens. Their loop over
small batches replays the last new batch. Their sum is not divided by the rows.

Of the new groups, the 75 % with the largest deviation of R are trained. The store and b read all.
`--mask-truncated` is the authors' filter of unfinished responses.

Left out: the filters of repetitive and of unreadable responses, as their rules were not found.
Reports: above GRPO, GiGPO and Dr.BoT on ALFWorld, WebShop and AIME24/25 with Qwen2.5 (no numbers).
Traps: The weight of the replay rises from 0 to its full size at step 300, and the bonus ends at
step 200. Set both for short runs. A replay needs 48 stored rows above the median.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience import Batch, Stage, experience, replies_read, shape, signed_outcome
from rlvr_jax.experience.grades import component_rewards
from rlvr_jax.experience.rewards.composition import Part, bounded, total
from rlvr_jax.experience.rewards.parts import Shaping, as_shaping, shaping
from rlvr_jax.experience.store import (
    Store,
    empty_replay,
    oldest,
    pop_oldest,
    push,
    records_of,
    repeatable,
    replayed,
    taken,
)
from rlvr_jax.methods._tools import Tools
from rlvr_jax.objectives import drop_high_covariance, group_centered, random_choice
from rlvr_jax.objectives.algebra.parts import Aggregation, Spec, Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.surrogates.aggregations import at_least_one, rollouts_with_tokens
from rlvr_jax.tasks.base import Task
from rlvr_jax.types import Function, Method, Recipe, Shown, arguments_of, part, replace
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Count,
    Finite,
    MaxLength,
    NonNegativeInt,
    Share,
)


@part
def over_steps(reward: Part, factor: Callable[[int], float]) -> Shaping:
    """μ(s) r: a reward whose weight changes with the step s; 0 for μ = 0, even if r is NaN.

    Args:
      factor: μ, such as `falling_cosine(200)`.
    Metrics: reward_factor (weight μ of the reward); those of the reward.
    """
    own = as_shaping(reward)

    def apply(rollouts, state, moment):
        value, state, metrics = own.apply(rollouts, state, moment)
        weight = float(factor(moment.step))
        weighed = weight * value if weight else jnp.zeros_like(value)
        return weighed, state, {**metrics, "reward_factor": weight}

    return replace(own, apply=apply)


@part
def falling_cosine(steps: Count) -> Function:
    """μ(s) = (cos(π s / S) + 1) / 2: from 1 to 0 at step S, and 0 from there.

    Args:
      steps: steps until the value is 0 (S).
    """

    def falling_cosine_of_step(step):
        return (math.cos(math.pi * min(step, steps) / steps) + 1) / 2

    return falling_cosine_of_step


@part
def call_bonus(bonus: Finite = 0.1, column: NonNegativeInt | None = None) -> Shaping:
    """`bonus` for each tool call.

    Args:
      column: of the task's rewards, the number of calls; None: the turns of a row, where rows have
        any.
    Reads: component_rewards, or turn.
    """

    def reward(rollouts):
        if column is not None:
            return bonus * rollouts.records["component_rewards"][:, column]
        if "turn" not in rollouts.records:
            return jnp.zeros_like(rollouts.outcome)
        last = jnp.max(jnp.where(rollouts.mask, rollouts.records["turn"], -1), axis=1)
        return bonus * (last + 1).astype(rollouts.outcome.dtype)

    return shaping(reward, columns=0 if column is None else column + 1)


@part
def reply_bonus(bonus: Finite = 0.1) -> Shaping:
    """`bonus` for each reply that a row has read, of rows that are written in turns.

    Reads: turn, length.
    """
    return shaping(lambda rollouts: bonus * replies_read(rollouts))


FULL = 1.5
"""A replay needs this multiple of its rows above the usual reward."""


@part
def replay_good(
    replay_rows: Count = 32,
    replay_age: Count = 5,
    replay_groups: Count = 32,
    replay_steps: Count = 300,
    where: Callable[[Batch, Task], np.ndarray] | None = None,
) -> Stage:
    """Stores responses that were better than their group, and trains on them again later.

    The usual reward b is the median of the mean rewards of the last groups, including this step.
    Rows without a reward (NaN) are in no mean. A replay begins when more than 1.5 times
    `replay_rows` stored responses have R > b. It is a further update on a random choice of them: a
    power of two, at most `replay_rows`. The update has the advantage R - b, the weight γ(s) = (1 -
    cos(π s / S)) / 2 and the stored old log-probs. The store is then empty. Only responses to
    unmodified train prompts are stored.

    Args:
      replay_rows: maximum number of rows of a replay update; the store holds twice as many.
      replay_age: steps that a response is stored.
      replay_groups: groups whose mean rewards give the usual reward (b).
      replay_steps: step at which replayed responses count in full (S).
      where: (batch, task) -> bool [B], rows that may be stored; None: all.
    Reads: reward. Writes: `Batch.further`, of rows that are stored. Metrics: usual_reward (baseline
      b), stored_rows (rows in the store), replayed_rows (rows of the further update), replay_weight
      (weight γ of the replayed rows).
    """
    falling = falling_cosine(replay_steps)

    def init(setting):
        means = np.full(replay_groups, np.nan, np.float32)
        return ReplayState(empty_replay(2 * replay_rows, setting), means)

    def apply(batch, actor, state, turn):
        reward, known = batch.rollouts.reward, batch.rollouts.valid
        mean = np.full(len(batch), np.nan)
        for own in batch.groups:
            if known[own].any():
                mean[own] = reward[own][known[own]].mean()
        new = [mean[own[0]] for own in batch.groups if not np.isnan(mean[own[0]])]
        means = np.concatenate([state.means, np.array(new, np.float32)])[-replay_groups:]
        usual = usual_reward(means)
        old = int(np.sum(state.store.step[oldest(state.store)] < turn.step - replay_age))
        _, store = pop_oldest(state.store, old)
        good = known & (reward > mean) & repeatable(batch, turn.setting)
        if where is not None:
            good &= where(batch, turn.setting.task)
        if good.any():
            store = push(store, records_of(batch.take(np.flatnonzero(good)), actor), turn.step)
        places = oldest(store)
        places = places[store.rows["reward"][places] > usual]
        further, weight = list(batch.further), 1 - falling(turn.step)
        metrics = {"usual_reward": usual, "replay_weight": weight, "replayed_rows": 0.0}
        if len(places) > FULL * replay_rows:
            size = replay_size(len(places), replay_rows)
            own = taken(store, np.sort(turn.random().permutation(places)[:size]))
            mask, written = own["mask"], replayed(actor, turn.setting.task, own)
            kind = written.rollouts.reward.dtype
            advantage = np.where(mask, (own["reward"] - usual)[:, None], 0).astype(kind)
            signals = {"advantage": advantage, "weight": np.where(mask, weight, 0).astype(kind)}
            further.append(written.with_rollouts(decided_mask=mask, **signals))
            store = store._replace(held=np.int32(0))
            metrics["replayed_rows"] = float(size)
        metrics["stored_rows"] = float(store.held)
        return replace(batch, further=further), ReplayState(store, means), metrics

    return Stage(apply, init, updates=1, by_row=True)


class ReplayState(NamedTuple):
    """State that is stored between steps.

    Fields:
      store: good rows with their old log-probs.
      means: float32 [Q], rewards of the last groups, NaN before there are any.
    """

    store: Store
    means: np.ndarray


def usual_reward(means: np.ndarray) -> float:
    """The median of the known means; NaN without any."""
    known = means[~np.isnan(means)]
    return float(np.median(known)) if len(known) else float("nan")


def replay_size(number: int, most: int) -> int:
    """The largest power of two up to both numbers; 0 of none."""
    number = min(number, most)
    return 2 ** (number.bit_length() - 1) if number > 0 else 0


@part
def by_stored(new: Transform, stored: Transform) -> Transform:
    """One transform for new rows, another for rows of an earlier step (`Rollouts.stored`).

    Each reads only the tokens of its rows. A batch without the record has new rows.

    Args:
      new, stored: without state; they change only signals of tokens.
    Metrics: stored/<name> (metric of `stored`, where there are such rows); those of `new`.
    Raises:
      ValueError: a transform with a state.
    """
    for name, one in (("new", new), ("stored", stored)):
        if jax.tree.leaves(one.init(Spec(1, 1, 1))):
            raise ValueError(f"by_stored: {name} must be a part without state, got {one.label}")

    def apply(signals, context, state):
        old = context.rollouts.records.get("stored")
        if old is None:
            own, _, metrics = new.apply(signals, context, ())
            return own, state, metrics
        rows = old[:, None]
        one, _, metrics = new.apply(replace(signals, mask=signals.mask & ~rows), context, ())
        two, _, more = stored.apply(replace(signals, mask=signals.mask & rows), context, ())
        names = ("advantage", "weight", "chosen", "clip_low", "clip_high", "ratio", "penalty")
        merged = {name: jnp.where(rows, getattr(two, name), getattr(one, name)) for name in names}
        of_stored = {f"stored/{name}": value for name, value in more.items()}
        return replace(signals, **merged), state, {**metrics, **of_stored}

    return Transform(apply, reads=new.reads | stored.reads)


@part
def rollout_mean_fixed_length(length: Count) -> Aggregation:
    """Mean over the rollouts with tokens of (1/T) Σ_t l_t.

    Args:
      length: T, one constant for the whole run: the budget of response tokens.
    """

    def weights(mask, dtype):
        return jnp.full(mask.shape, 1 / length, dtype) / at_least_one(
            rollouts_with_tokens(mask), dtype
        )

    return Aggregation(weights)


@part
def train_varied_groups(fraction: Share) -> Stage:
    """Removes the groups from the loss whose rewards have the smallest standard deviation.

    If groups have equal deviations, the earlier ones stay. Rows without a reward do not count.

    Args:
      fraction: fraction of the groups that stay, rounded up.
    Reads: reward. Metrics: varied_groups (fraction of the groups that stay).
    """

    def apply(batch, actor, state, turn):
        reward, known = batch.rollouts.reward, batch.rollouts.valid
        graded = [reward[rows][known[rows]] for rows in batch.groups]
        spread = [np.std(own) if len(own) else 0.0 for own in graded]
        order = np.argsort(np.negative(spread), kind="stable")
        dropped = np.zeros(len(batch), bool)
        removed = order[math.ceil(fraction * len(order)) :]
        for group in removed:
            dropped[batch.groups[group]] = True
        metrics = {"varied_groups": 1 - len(removed) / len(order)}
        return batch.without(dropped), state, metrics

    return Stage(apply)


@arguments_of(Tools, into="tools")
@arguments_of(replay_good, "replay_rows", "replay_age", "replay_groups", "replay_steps")
def spear(
    max_length: MaxLength = 4096,
    calls: NonNegativeInt | None = None,
    bonus: Finite = 0.1,
    bonus_cap: float = 1.0,
    bonus_steps: Count = 200,
    fraction: Share = 2e-4,
    covariance_low: float = 1.0,
    covariance_high: float = 5.0,
    replay_fraction: Share = 0.02,
    replay_covariance_low: float = 1.0,
    replay_covariance_high: float = 40.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    choice: Callable = random_choice,
    varied: Share = 0.75,
    *,
    tools: Tools,
    **replay: Any,
) -> Recipe:
    """Applies the clipped loss to group-centered rewards, with a bonus, a replay and Clip-Cov.

    Args:
      calls: index of the task's reward that counts tool calls. None: the replies that a row has
        read, or without tools its turns.
      bonus, bonus_cap: bonus of a call, and limit for all calls of a response.
      bonus_steps: step at which the bonus is 0.
      fraction, covariance_low, covariance_high: arguments of Clip-Cov for new tokens.
      replay_fraction, replay_covariance_low, replay_covariance_high: for replayed tokens.
      choice: function that chooses the dropped tokens among the eligible ones.
      varied: fraction of the new groups that are trained, those of the largest deviation.
    """
    draw = tools.draw() if tools else None

    def called(batch, task):
        if calls is not None:
            return component_rewards(batch, task)[:, calls] > 0
        return np.asarray(replies_read(batch.rollouts)) > 0

    earned = reply_bonus(bonus) if draw and calls is None else call_bonus(bonus, calls)
    reward = {
        "outcome": signed_outcome,
        "calls": over_steps(bounded(earned, high=bonus_cap), falling_cosine(bonus_steps)),
    }
    clip_cov = by_stored(
        drop_high_covariance(fraction, covariance_low, covariance_high, choice),
        drop_high_covariance(
            replay_fraction, replay_covariance_low, replay_covariance_high, choice
        ),
    )
    where = called if draw or calls is not None else None
    stages = [shape(total(reward)), replay_good(where=where, **replay)]
    if varied < 1:
        stages.append(train_varied_groups(varied))
    return Recipe(
        objective=clipped_objective(
            clip_low,
            clip_high,
            advantage=group_centered(),
            transforms=[clip_cov],
            aggregation=rollout_mean_fixed_length(max_length),
        ),
        experience=experience(draw=draw, stages=stages),
    )


METHOD = Method(
    spear,
    changes="sampling, reward, weight, selection",
    random=True,
    shown=Shown(
        "noted_calculations",
        "experience/replayed_rows",
        without="verltool",
        hyperparameters={"bonus_steps": 80, "replay_steps": 120},
    ),
)
