"""All updates of one step: what is measured before them, what is decided once, the updates."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from rlvr_jax.objectives import Objective
from rlvr_jax.parallel import fetch
from rlvr_jax.policy import Params, lora
from rlvr_jax.rollout import named_key
from rlvr_jax.training.critic import CriticState
from rlvr_jax.training.pieces import spread
from rlvr_jax.training.plan import BatchPlan
from rlvr_jax.training.programs import Programs
from rlvr_jax.training.update import TrainState, old_shapes
from rlvr_jax.types import Rollouts, replace

__all__ = ["Learner", "learn"]

Metrics = dict[str, float]
Records = dict[str, np.ndarray]


@dataclass(frozen=True)
class Learner:
    """What learns from batches of one kind.

    Fields:
      objective: the loss.
      programs: compiled for it.
      plan: how a batch is split into updates.
      seed: of the run.
      mesh: where the policy is trained.
      frozen: weights that stay as they are: below adapters, or of the reference; None: neither.
      adapts: adapters are trained, on top of `frozen`.
    """

    objective: Objective
    programs: Programs
    plan: BatchPlan
    seed: int
    mesh: Mesh
    frozen: Params | None
    adapts: bool

    def policy_params(self, state: TrainState) -> Params:
        """All weights of the policy in a state, adapters attached; nothing is copied."""
        return lora.attach(self.frozen, state.params) if self.adapts else state.params


def learn(
    learner: Learner, state: TrainState, rollouts: Rollouts, step: int
) -> tuple[TrainState, Metrics, Records]:
    """All updates of one step.

    Args:
      rollouts: the batch as numpy arrays, groups one after the other.
    Returns:
      The new state, metrics averaged over the updates, and the per-token record of the first pass
      over the batch, rows in the batch's order.
    """
    orders = _orders(learner, rollouts, step)
    parts = orders[: learner.plan.minibatches]
    # The policy's update is compiled for a state without a critic, which it would leave alone.
    critic, state = state.critic, replace(state, critic=None)
    decide_once = learner.programs.decide_once
    once = len(orders) > 1 and decide_once is not None
    rollouts = _measured(learner, state, critic, rollouts, parts, once)
    decided = {}
    if once:
        key = named_key(learner.seed, "decide_once", step)
        told, method_state, decided = decide_once(rollouts, state.method_state, key)
        names = ("advantage", "weight", "kept")
        rollouts = replace(rollouts, **fetch({name: getattr(told, name) for name in names}))
        state = replace(state, method_state=method_state)
    state, rollouts, metrics, records = _updated(learner, state, rollouts, orders, step)
    if critic is not None:
        critic, fitted = _fitted(learner, critic, rollouts, parts)
        state, metrics = replace(state, critic=critic), metrics | fitted
    for name, value in fetch(decided).items():
        metrics[f"batch/{name}" if name in metrics else name] = float(value)
    return state, metrics, records


def _orders(learner: Learner, rollouts: Rollouts, step: int) -> list[np.ndarray]:
    """The rows of each update in turn; those of the first `minibatches` are all rows once."""
    plan = learner.plan
    groups = plan.prompts // plan.minibatches
    # Groups of equal rewards, most of which get no gradient, come last: micro-batches of them alone
    # are not pulled back.
    several = "component_rewards" in learner.objective.needs
    rewards = np.asarray(rollouts.component_rewards if several else rollouts.reward)
    equal = (np.ptp(rewards.reshape(plan.prompts, plan.samples, -1), axis=1) == 0).all(-1)
    orders = []
    for epoch in range(plan.epochs):
        order = np.arange(plan.prompts)
        if plan.updates > 1:
            seed = [learner.seed, zlib.crc32(b"minibatches"), step, epoch]
            order = np.random.default_rng(seed).permutation(plan.prompts)
        for start in range(0, plan.prompts, groups):
            part = np.sort(order[start : start + groups])
            part = spread(part[np.argsort(equal[part], kind="stable")], learner.mesh)
            orders.append((part[:, None] * plan.samples + np.arange(plan.samples)).reshape(-1))
    return orders


def _measured(
    learner: Learner,
    state: TrainState,
    critic: CriticState | None,
    rollouts: Rollouts,
    parts: Sequence[np.ndarray],
    once: bool,
) -> Rollouts:
    """The rollouts with what the objective reads of the critic, the reference, the old policy.

    The old statistics of the first part are left at 0, for its update is the first one and has them
    in its own pass; unless something is decided once (`once`) that compares them with the others.
    """
    objective, programs = learner.objective, learner.programs
    policy = learner.policy_params(state)

    def over(parts, program, params) -> Records:
        found = ((rows, fetch(program(params, _rows(rollouts, rows)))) for rows in parts)
        return _joined(len(rollouts.group), found)

    known = {}
    if critic is not None:
        known |= over(parts, programs.values, critic.params)
    if "reference_logp" in objective.needs:
        reference = over(parts, programs.score, learner.frozen)
        known["reference_logp"] = reference["old_logp"]
    if "prompt_logp" in objective.needs:
        known |= over(parts, programs.score_prompts, policy)
    old = {
        field: np.zeros(shape, rollouts.behaviour_logp.dtype)
        for field, shape in old_shapes(objective, rollouts.tokens.shape).items()
    }
    compared = once and bool({"logp", *old} & objective.once_needs)
    old |= over(parts if compared else parts[1:], programs.score, policy)
    return replace(rollouts, **known, **old)


def _updated(
    learner: Learner,
    state: TrainState,
    rollouts: Rollouts,
    orders: Sequence[np.ndarray],
    step: int,
) -> tuple[TrainState, Rollouts, Metrics, Records]:
    """The state after the updates, the rollouts with all old statistics, metrics and record."""
    parts = learner.plan.minibatches
    metrics, recorded = [], []
    empty = []
    for number, rows in enumerate(orders):
        if number == parts:
            # The next epoch meets the rows of the first update with other weights than it had.
            rollouts = _with_old(rollouts, _joined(len(rollouts.group), recorded))
        key = named_key(learner.seed, "objective", step, number)
        own = _rows(rollouts, rows)
        state, measured, record = learner.programs.update(state, own, key, number == 0)
        metrics.append(measured)
        empty.append(not own.mask.any())
        if number < parts:
            recorded.append((rows, fetch(record)))
    records = _joined(len(rollouts.group), recorded)
    return state, _with_old(rollouts, records), _average(fetch(metrics), empty), records


def _fitted(
    learner: Learner, critic: CriticState, rollouts: Rollouts, parts: Sequence[np.ndarray]
) -> tuple[CriticState, Metrics]:
    """The critic after its passes over the batch, and metrics averaged over its updates."""
    metrics = []
    passes = [_rows(rollouts, rows) for rows in parts]
    for own in passes * learner.plan.critic_epochs:
        critic, measured = learner.programs.fit_critic(critic, own)
        metrics.append(measured)
    empty = [not own.mask.any() for own in passes] * learner.plan.critic_epochs
    return critic, _average(fetch(metrics), empty)


def _rows(rollouts: Rollouts, rows: np.ndarray) -> Rollouts:
    return jax.tree.map(lambda x: x[rows], rollouts)


def _joined(count: int, found: Iterable[tuple[np.ndarray, Mapping[str, np.ndarray]]]) -> Records:
    """One array of `count` rows by name, from rows and what was measured of them."""
    whole: Records = {}
    for rows, values in found:
        for name, value in values.items():
            blank = np.zeros((count, *value.shape[1:]), value.dtype)
            whole.setdefault(name, blank)[rows] = value
    return whole


def _with_old(rollouts: Rollouts, records: Records) -> Rollouts:
    """The rollouts with the old statistics as they were used."""
    known = {name: x for name, x in records.items() if getattr(rollouts, name, None) is not None}
    return replace(rollouts, **{name: x for name, x in known.items() if name.startswith("old_")})


# Of every update; a number that is not finite must not hide behind those of the others.
_WHOLE = {"loss", "gradient_norm", "critic/loss", "critic/gradient_norm", "skipped_updates"}


def _average(updates: Sequence[Mapping[str, Any]], empty: Sequence[bool]) -> Metrics:
    """Means over the updates of a step; extremes of extremes; NaN where nothing was measured.

    Args:
      empty: which updates had no token, whose zeros are no measurements.
    """
    metrics = {}
    for name in updates[0]:
        values = np.array([float(update[name]) for update in updates])
        if name not in _WHOLE:
            values = values[~np.isnan(values) & ~np.array(empty)]
        if not len(values):
            metrics[name] = float("nan")
        elif name.endswith("/min"):
            metrics[name] = float(values.min())
        elif name.endswith("/max"):
            metrics[name] = float(values.max())
        else:
            metrics[name] = float(values.mean())
    return metrics
