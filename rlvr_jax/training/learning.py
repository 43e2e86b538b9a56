"""All updates of one step: measurements before them, decisions once per batch, the updates."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from rlvr_jax.objectives import Objective
from rlvr_jax.parallel import fetch
from rlvr_jax.policy import Params, lora
from rlvr_jax.policy.scoring import run_in_chunks, without_routes
from rlvr_jax.rollout import named_key
from rlvr_jax.training.arrangement import Shuffle, arrange
from rlvr_jax.training.critic import CriticState, critic_params
from rlvr_jax.training.plan import BatchPlan
from rlvr_jax.training.programs import Programs, apart
from rlvr_jax.training.records import Records, joined_records, prompts_where, rows_of, with_old
from rlvr_jax.training.statistics import DIVERGENCES
from rlvr_jax.training.update import TrainState, old_shapes
from rlvr_jax.types import Rollouts, replace

Metrics = dict[str, float]


class OtherPolicies(NamedTuple):
    """All weights of the other policies of a step; None: the step does not use one."""

    teacher: Params | None
    reference: Params | None


@dataclass(frozen=True)
class Learner:
    """Updates a policy with batches, by one objective and its compiled functions.

    Fields:
      objective: the loss.
      programs: the compiled functions of the objective.
      plan: split of a batch into updates.
      seed: seed of the run.
      mesh: the training mesh.
      frozen: frozen weights: those under adapters, or of the reference; None: neither.
      adapts: adapters are trained, on top of `frozen`.
      variant: (plan) -> functions for batches with another split; compiled at the first use.
      most: largest number of rows of a batch, as a multiple of the rows of the plan.
      teacher: (state) -> all weights of the teacher; None: the recipe has none.
      decay: of the average that a state's `teacher` is; None: it has none.
      scorer_needs: records that a learned scorer in the critic's place reads.
    """

    objective: Objective
    programs: Programs
    plan: BatchPlan
    seed: int
    mesh: Mesh
    frozen: Params | None
    adapts: bool
    variant: Callable[[BatchPlan], Programs] | None = None
    most: float = 1.0
    teacher: Callable[[TrainState], Params] | None = None
    decay: float | None = None
    scorer_needs: frozenset[str] = frozenset()

    def programs_of(self, plan: BatchPlan) -> Programs:
        """The programs for a plan: the learner's own for its own."""
        return self.programs if plan == self.plan else self.variant(plan)

    def policy_params(self, state: TrainState) -> Params:
        """All weights of the policy in a state, adapters attached; nothing is copied."""
        return lora.attach(self.frozen, state.params) if self.adapts else state.params

    def other_policies(self, state: TrainState) -> OtherPolicies:
        """The policies that a step compares with."""
        reference = self.frozen
        if state.reference is not None:
            reference = self.policy_params(replace(state, params=state.reference))
        return OtherPolicies(self.teacher and self.teacher(state), reference)


@dataclass(frozen=True)
class Scorer:
    """Measures token statistics of rollouts under a policy, with the scoring function of updates.

    Fields:
      params: weights of the current policy.
      start: returns the weights of the initial policy.
      teacher: returns the weights of the teacher of the recipe; None: it has none.
    """

    learner: Learner
    params: Params
    start: Callable[[], Params]
    teacher: Callable[[], Params] | None = None

    def score(self, rollouts: Rollouts, needs: Iterable[str], of: str = "current") -> Records:
        """Returns statistics by name, [B, T]. Exceptions are "all_logp" [B, T, V], "mean_hidden"
        [B, D] and "verdict_logp" [B, K].

        Args:
          needs: of "logp", "entropy", and one of "all_logp", "mean_hidden", "max_id" and
            "verdict_logp".
          of: "current", "start" or "teacher".
        Raises:
          ValueError: another need or policy.
        """
        needs = {*needs}
        large = needs - {"logp", "entropy"}
        unknown = large.difference(apart())
        whose = {"current": lambda: self.params, "start": self.start, "teacher": self.teacher}
        if unknown or len(large) > 1 or whose.get(of) is None:
            raise ValueError(
                f"score: needs must be among logp, entropy and one of {', '.join(apart())}, of the"
                f" current or the start policy or a recipe's teacher, got {sorted(needs)} of {of!r}"
            )
        params = whose[of]()
        if of != "current":
            rollouts = without_routes(rollouts)
        programs = self.learner.programs
        program = programs.measures[large.pop() if large else ""]
        size = self.learner.plan.rows
        whole = run_in_chunks(lambda rows: fetch(program(params, rows)), rollouts, size)
        return {name: whole[name] for name in needs}


def learn(
    learner: Learner,
    state: TrainState,
    rollouts: Rollouts,
    step: int,
    further: Sequence[Rollouts] = (),
) -> tuple[TrainState, Metrics, Records]:
    """Makes all updates of one step.

    Args:
      learner: objective, optimizer and compiled functions.
      state: state before the step.
      rollouts: the batch as numpy arrays; rows of a group are adjacent.
      step: number of the step, for random keys.
      further: batches for additional updates afterwards, in order. They have their advantages and
        old log-probs.
    Returns:
      The new state; metrics, averaged over the updates; and the record per token of the first
      epoch, with rows in the order of the batch.
    """
    several = "component_rewards" in learner.objective.reads
    shuffle = Shuffle(learner.seed, step)
    made = arrange(learner.plan, rollouts, several, learner.mesh, shuffle, learner.most)
    own = replace(learner, plan=made.plan, programs=learner.programs_of(made.plan))
    state, metrics, records = _learned(own, state, made.rollouts.only_valid(), made.orders, step)
    if made.count < len(made.rollouts.group):
        records = {name: x[: made.count] for name, x in records.items()}
    if made.left_out or learner.most > 1:
        metrics["left_out_rows"] = float(made.left_out)
    if learner.decay is not None:
        teacher = _average_of(state.teacher, state.params, jnp.asarray(learner.decay))
        state = replace(state, teacher=teacher)
    parts = [part for rows in further for part in _of_an_update(rows, learner.plan.rows)]
    for number, rows in enumerate(parts):
        state, measured = _learned_further(learner, state, rows, step, number)
        for name in ("loss", "gradient_norm"):
            metrics[f"further/{name}"] = measured[name]
        metrics["further/updates"] = float(number + 1)
    return state, metrics, records


def _learned(
    learner: Learner,
    state: TrainState,
    rollouts: Rollouts,
    orders: Sequence[np.ndarray],
    step: int,
) -> tuple[TrainState, Metrics, Records]:
    """The updates of a batch that is dealt out to them."""
    parts = orders[: learner.plan.minibatches]
    # The policy's update is compiled for a state without a critic, which it does not change.
    critic, aside = state.critic, _aside(state)
    other = _second_policy(learner, state)
    state = replace(state, critic=None, **dict.fromkeys(aside))
    decide_once = learner.programs.decide_once
    once = len(orders) > 1 and decide_once is not None
    others = learner.other_policies(replace(state, **aside))
    rollouts = _measured(learner, state, critic, rollouts, parts, once=once, others=others)
    decided = {}
    if once:
        key = named_key(learner.seed, "decide_once", step)
        signals, method_state, decided = decide_once(rollouts, state.method_state, key)
        names = ("advantage", "weight", "decided_mask")
        rollouts = rollouts.replace(**fetch({name: signals.records[name] for name in names}))
        state = replace(state, method_state=method_state)
    state, rollouts, metrics, records = _updated(learner, state, rollouts, orders, step, other)
    if critic is not None:
        policy = None if "trunk" in critic.params else learner.policy_params(state)
        critic, fitted = _fitted(learner, critic, rollouts, parts, policy)
        state, metrics = replace(state, critic=critic), metrics | fitted
    state = replace(state, **aside)
    for name, value in fetch(decided).items():
        metrics[f"batch/{name}" if name in metrics else name] = float(value)
    return state, metrics, records


def _of_an_update(rollouts: Rollouts, rows: int) -> list[Rollouts]:
    """The batch in parts of `rows` at most, as equal as they can be."""
    parts = -(-len(rollouts.group) // rows)
    return [rows_of(rollouts, own) for own in np.array_split(np.arange(len(rollouts.group)), parts)]


def _learned_further(
    learner: Learner, state: TrainState, rollouts: Rollouts, step: int, number: int
) -> tuple[TrainState, Metrics]:
    """One update on rows that carry the batch's decisions."""
    plan = replace(learner.plan, minibatches=1, epochs=1, prompts=learner.plan.rows, samples=1)
    made = arrange(plan, rollouts, False, learner.mesh, Shuffle(learner.seed, step))
    programs = learner.programs_of(made.plan)
    critic, aside = state.critic, _aside(state)
    others = learner.other_policies(state)
    other = _second_policy(learner, state)
    state = replace(state, critic=None, **dict.fromkeys(aside))
    key = named_key(learner.seed, "further", step, number)
    own = replace(learner, plan=made.plan, programs=programs)
    rollouts = made.rollouts.only_valid()
    rollouts = _measured(own, state, critic, rollouts, made.orders, once=False, others=others)
    rows = rows_of(rollouts, made.orders[0])
    state, measured, _ = programs.update(state, rows, key, False, other)
    metrics = {name: float(value) for name, value in fetch(measured).items()}
    return replace(state, critic=critic, **aside), metrics


def _aside(state: TrainState) -> dict[str, Any]:
    """What of a state no compiled program sees."""
    return {name: getattr(state, name) for name in ("teacher", "reference")}


def _second_policy(learner: Learner, state: TrainState) -> Params | None:
    """The weights that divergences compare with: the teacher's, else a copy of those that sampled;
    None if the objective has none."""
    if not DIVERGENCES & learner.objective.reads:
        return None
    if learner.teacher is not None:
        return learner.teacher(state)
    return jax.tree.map(jnp.copy, learner.policy_params(state))


@partial(jax.jit, donate_argnums=0)
def _average_of(teacher, params, decay):
    return jax.tree.map(lambda t, p: (decay * t + (1 - decay) * p).astype(t.dtype), teacher, params)


def _measured(
    learner: Learner,
    state: TrainState,
    critic: CriticState | None,
    rollouts: Rollouts,
    parts: Sequence[np.ndarray],
    *,
    once: bool,
    others: OtherPolicies,
) -> Rollouts:
    """The rollouts with the objective's inputs from the critic, the reference, the old policy.

    The old statistics of the first part are left at 0, for its update is the first one and has them
    in its own pass; unless something is decided once (`once`) that compares them with the others.
    """
    objective, programs = learner.objective, learner.programs
    policy = learner.policy_params(state)

    def over(parts, program, params) -> Records:
        return _scored(parts, program, params, rollouts)

    def of_other(params) -> np.ndarray:
        """Log-probs of another policy, whose router chooses by itself."""
        return _scored(parts, programs.score, params, without_routes(rollouts))["old_logp"]

    known = {}
    if "reference_logp" in objective.reads | learner.scorer_needs:
        known["reference_logp"] = of_other(others.reference)
    if critic is not None:
        # A scorer may read earlier measurements.
        whole = critic_params(critic.params, policy)
        known |= _scored(parts, programs.values, whole, rollouts.replace(**known))
    if "teacher_logp" in objective.reads and others.teacher is not None:
        shown = rollouts.records.get("second_length")
        if shown is None:
            known["teacher_logp"] = of_other(others.teacher)
        else:
            beside = rollouts.replace(
                prompt_tokens=rollouts.records["second_tokens"], prompt_length=shown
            )
            beside = prompts_where(shown > 0, beside, rollouts)
            found = _scored(parts, programs.measures[""], others.teacher, beside)
            known["teacher_logp"] = found["logp"]
    if "prompt_logp" in objective.reads:
        known |= over(parts, programs.score_prompts, policy)
    old = {
        field: np.zeros(shape, rollouts.behaviour_logp.dtype)
        for field, shape in old_shapes(objective, rollouts.tokens.shape).items()
    }
    compared = once and bool({"logp", *old} & objective.once_reads)
    old |= over(parts if compared else parts[1:], programs.score, policy)
    shown = rollouts.records.get("shown_length")
    if shown is not None and shown.any():
        # In the context in which a row was sampled; the update trains it in another.
        sampled = rollouts.replace(
            prompt_tokens=rollouts.records["shown_tokens"], prompt_length=shown
        )
        sampled = prompts_where(shown > 0, sampled, rollouts)
        found = _scored(parts, programs.measures[""], policy, sampled)
        old["old_logp"] = np.where(shown[:, None] > 0, found["logp"], old["old_logp"])
    stored = rollouts.records.get("stored")
    if stored is not None:
        recorded = {name: rollouts.get(name) for name in old}
        for name, value in recorded.items():
            if value is not None:
                rows = stored.reshape(-1, *[1] * (value.ndim - 1))
                old[name] = np.where(rows, value, old[name])
    if shown is not None:
        stored = (shown > 0) | (False if stored is None else stored)
        rollouts = rollouts.replace(stored=stored, shown_tokens=None, shown_length=None)
    return rollouts.replace(**known, **old)


def _scored(parts, program, params, rollouts: Rollouts) -> Records:
    """Results of a compiled function for all rows, part by part."""
    found = ((rows, fetch(program(params, rows_of(rollouts, rows)))) for rows in parts)
    return joined_records(len(rollouts.group), found)


def _updated(
    learner: Learner,
    state: TrainState,
    rollouts: Rollouts,
    orders: Sequence[np.ndarray],
    step: int,
    other: Params | None = None,
) -> tuple[TrainState, Rollouts, Metrics, Records]:
    """The state after the updates, the rollouts with all old statistics, metrics and record."""
    parts = learner.plan.minibatches
    metrics, recorded = [], []
    empty = []
    for number, rows in enumerate(orders):
        if number == parts:
            # The next epoch meets the rows of the first update with other weights than it had.
            rollouts = with_old(rollouts, joined_records(len(rollouts.group), recorded))
        key = named_key(learner.seed, "objective", step, number)
        own = rows_of(rollouts, rows)
        state, measured, record = learner.programs.update(state, own, key, number == 0, other)
        metrics.append(measured)
        empty.append(not own.scored.any())
        if number < parts:
            recorded.append((rows, fetch(record)))
    records = joined_records(len(rollouts.group), recorded)
    return state, with_old(rollouts, records), _average(fetch(metrics), empty), records


def _fitted(
    learner: Learner,
    critic: CriticState,
    rollouts: Rollouts,
    parts: Sequence[np.ndarray],
    policy: Params | None,
) -> tuple[CriticState, Metrics]:
    """The critic after its passes over the batch, and metrics averaged over its updates.

    Args:
      policy: the updated policy, where the critic reads its hidden states.
    """
    metrics = []
    passes = [rows_of(rollouts, rows) for rows in parts]
    for own in passes * learner.plan.critic_epochs:
        critic, measured = learner.programs.fit_critic(critic, own, policy)
        metrics.append(measured)
    empty = [not own.mask.any() for own in passes] * learner.plan.critic_epochs
    return critic, _average(fetch(metrics), empty)


# Of every update; a number that is not finite must not hide behind those of the others.
_WHOLE = {"loss", "gradient_norm", "critic/loss", "critic/gradient_norm", "skipped_updates"}


def _average(updates: Sequence[Mapping[str, Any]], empty: Sequence[bool]) -> Metrics:
    """Means over the updates of a step; extremes of extremes; NaN where nothing was measured.

    Args:
      empty: which updates had no token, whose zeros are no measurements.
    """
    metrics = {}
    for name in dict.fromkeys(name for update in updates for name in update):
        there = np.array([name in update for update in updates])
        values = np.array([float(update[name]) for update in updates if name in update])
        if name not in _WHOLE:
            values = values[~np.isnan(values) & ~np.array(empty)[there]]
        if not len(values):
            metrics[name] = float("nan")
        elif name.endswith("/min"):
            metrics[name] = float(values.min())
        elif name.endswith("/max"):
            metrics[name] = float(values.max())
        else:
            metrics[name] = float(values.mean())
    return metrics
