"""The composition of parts to a loss.

An objective turns token statistics `[B, T]` into a scalar. The surrogate sets the ratio and the
trust region. Then the advantage and the transforms decide, the regularizers add to the penalty or
to the term, and the aggregation averages:

    loss = aggregate(weight · surrogate + penalty) + term

Decisions (advantage, weight, mask, clip bounds) carry no gradient: it is stopped after each part.
Values off the mask are never read: each, NaN included, is replaced by 0 first.
"""

import functools
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives.algebra.inputs import (
    check_answer,
    check_carried,
    check_inputs,
    check_new_state,
    check_reads,
    check_recorded,
    measured,
    on_mask,
    wide,
)
from rlvr_jax.objectives.algebra.parts import (
    Aggregation,
    Context,
    Options,
    Records,
    Spec,
    Surrogate,
    Transform,
    UpdatePlan,
    no_state,
)
from rlvr_jax.objectives.algebra.summary import summarize
from rlvr_jax.types import Rollouts, Signals, TokenStats, replace
from rlvr_jax.types.parts import Part, named_parts, part
from rlvr_jax.types.token_stats import statistic_of

__all__ = ["Objective", "objective"]

_DECIDED = ("advantage", "weight", "mask", "clip_low", "clip_high")


@dataclass(frozen=True, eq=False, repr=False)
class Objective(Part):
    """A loss on `[B, T]` arrays, composed of parts by `objective`.

    Fields:
      init: (spec) -> state, a dict with one entry per part that has state.
      loss: (stats, rollouts, state, key) -> (loss, (state, metrics)); differentiable in `stats`.
        The loss is 0 for a batch without tokens on the mask, and NaN if a reward or an outcome is
        not finite. The state does not change if the loss is not finite.
      decide_once: (rollouts, state, key) -> (rollouts, state, metrics): the decisions about the
        whole batch, for a batch that is split into several updates. The returned rollouts hold
        them (`advantage`, `weight`, `decided_mask`) for the losses of the updates. None if even
        the first part is called at every update.
      signals: (stats, rollouts, state, key) -> `Signals` after the transforms and before the
        regularizers (which act on every token). `chosen` includes the tokens of the regularizers.
      token_loss: (stats, rollouts, state, key) -> [B, T], the input of the aggregation; 0 off the
        mask.
      reads: see `Transform`; always contains "logp".
      once_reads: the reads of `decide_once`, where "logp" means `old_logp`.
      options, records: see `Transform`; those of all parts together.
      labels: one per part, in the order in which the parts act.
      remarks: (plan) -> sentences about parts that have no effect under this plan.
    """

    init: Callable[[Spec], dict[str, Any]]
    loss: Callable[..., tuple[Float[Array, ""], tuple[dict, dict]]]
    decide_once: Callable[..., tuple[Rollouts, dict, dict]] | None
    signals: Callable[..., Signals]
    token_loss: Callable[..., Float[Array, "B T"]]
    reads: frozenset[str]
    once_reads: frozenset[str]
    options: Options
    records: Records
    labels: tuple[str, ...]
    remarks: Callable[[UpdatePlan], list[str]]

    @functools.cached_property
    def lasting(self) -> bool:
        """As for every part, except that a statistic of a third party may be declared again."""
        read = map(statistic_of, self.reads)
        return super().lasting and all(one is None or one.in_library for one in read)


@part
def objective(
    advantage: Transform,
    transforms: Sequence[Transform] = (),
    *,
    surrogate: Surrogate,
    regularizers: Sequence[Transform] = (),
    aggregation: Aggregation,
) -> Objective:
    """Composes parts into a loss on `[B, T]` arrays.

    Examples:
      >>> from rlvr_jax.objectives import group_normalized, objective, ppo_clip, token_mean
      >>> parts = dict(surrogate=ppo_clip(0.2, 0.28), aggregation=token_mean())
      >>> sorted(objective(group_normalized(), **parts).reads)
      ['logp']

    Args:
      advantage: signed credit; acts before the transforms.
      transforms: act in the given order.
      surrogate: sets ratio and trust region before all of them, and the token loss after them.
      regularizers: add to `penalty` or `term`, with gradient.
      aggregation: averages the token losses.
    Metrics of the loss: those of the parts; clipped_fraction (tokens where the clip decides);
      covariance (of advantage and log-prob over the tokens). Before any clipping: ratio/min,
      ratio/mean, ratio/max, ratio/effective_sample_size (fraction of the tokens). If two metrics
      have one name, the later one is called <part>/<metric>.
    Raises:
      ValueError: a part reads an unknown statistic, or two parts set one option to two values. From
        `loss`: a required statistic is missing, or shapes disagree.
    """
    decisions = named_parts([advantage, *transforms])
    additions = named_parts(regularizers, taken=decisions)
    parts = {**decisions, **additions}
    readers = (surrogate, *parts.values())
    for reader in readers:
        check_reads(reader)
    reads = frozenset({"logp"}).union(*(reader.reads for reader in readers))
    whole = _decided_once(decisions, advantage)
    once_reads = frozenset().union(*(one.reads for one in whole.values()))
    late = False
    for one in decisions.values():
        late |= bool(measured(one.reads))
        # If a batch is one update, the update's own pass measures the statistics over the batch.
        if one.once and one is not advantage and late:
            reads |= {"batch_statistics"}

    def init(spec: Spec) -> dict[str, Any]:
        states = {name: one.init(spec) for name, one in parts.items()}
        return {name: state for name, state in states.items() if jax.tree.leaves(state)}

    def run(chain, signals, context, state, key, metrics):
        state, metrics = dict(state), dict(metrics)
        for name, one in chain.items():
            own = replace(context, key=jax.random.fold_in(key, zlib.crc32(name.encode())))
            answer = _applied(one, name, signals, own, state)
            check_answer(one, signals, answer, context.rollouts.mask)
            signals, new_state, measured = answer
            stopped = {field: jax.lax.stop_gradient(getattr(signals, field)) for field in _DECIDED}
            signals = replace(signals, **stopped)
            check_new_state(name, state.get(name, ()), new_state)
            if name in state:
                state[name] = new_state
            for metric, value in measured.items():
                metrics[f"{name}/{metric}" if metric in metrics else metric] = value
        return signals, state, metrics

    def decide(stats, rollouts, state, key):
        check_carried(state, key)
        check_inputs(stats, rollouts, readers)
        scored_logp = jnp.where(rollouts.scored, stats.logp, 0).astype(wide(stats.logp.dtype))
        stats, rollouts = on_mask(stats, rollouts)
        old_logp = rollouts.old_logp
        if old_logp is None:
            old_logp = jax.lax.stop_gradient(stats.logp)
        context = Context(stats, rollouts, old_logp, key, scored_logp)
        signals = Signals.neutral(rollouts.mask, stats.logp.dtype)
        signals = surrogate.prepare(signals, context)
        done = ()
        if "advantage" in rollouts.records:
            signals = replace(signals, advantage=rollouts.records["advantage"])
            done = [name for name, one in decisions.items() if one is advantage]
        if "decided_mask" in rollouts.records:
            weight = signals.weight * rollouts.records["weight"]
            mask = signals.mask & rollouts.records["decided_mask"]
            signals, done = replace(signals, weight=weight, mask=mask), whole
        chain = {name: one for name, one in decisions.items() if name not in done}
        signals, state, metrics = run(chain, signals, context, state, key, {})
        taken_out = rollouts.mask & ~signals.mask
        return replace(signals, chosen=signals.chosen | taken_out), context, state, metrics

    def losses(stats, rollouts, state, key):
        signals, context, state, metrics = decide(stats, rollouts, state, key)
        metrics = {**summarize(signals, context.stats.logp), **metrics}
        signals, state, metrics = run(additions, signals, context, state, key, metrics)
        values = signals.weight * surrogate.loss(signals, context) + signals.penalty
        return values, signals, state, metrics

    def loss(stats: TokenStats, rollouts: Rollouts, state: dict, key):
        values, signals, moved, metrics = losses(stats, rollouts, state, key)
        total = aggregation(values, signals.mask) + signals.term
        # A NaN grade could disappear in a comparison with the other grades of its group.
        total = jnp.where(_graded(rollouts), total, jnp.nan)
        state = _state_if_usable(jnp.isfinite(total), moved, state)
        return total, (state, jax.lax.stop_gradient(metrics))

    def token_loss(stats: TokenStats, rollouts: Rollouts, state: dict, key):
        values, signals, _, _ = losses(stats, rollouts, state, key)
        return jnp.where(signals.mask, values, 0)

    def decide_once(rollouts: Rollouts, state: dict, key):
        check_carried(state, key)
        check_recorded(rollouts, whole.values())
        nothing = jnp.zeros(rollouts.mask.shape, wide(rollouts.reward.dtype))
        _, clean = on_mask(TokenStats(logp=nothing), rollouts)
        old_logp = nothing if clean.old_logp is None else clean.old_logp
        # Policy and trust region do not exist yet: parts that read them fail here.
        context = Context(TokenStats(), clean, old_logp, key)
        signals = Signals.neutral(clean.mask, nothing.dtype)
        signals = replace(signals, clip_low=None, clip_high=None, ratio=None)
        chain = whole
        if "advantage" in clean.records:
            signals = replace(signals, advantage=clean.records["advantage"])
            chain = {name: one for name, one in whole.items() if one is not advantage}
        signals, moved, metrics = run(chain, signals, context, state, key, {})
        usable = _graded(clean) & jnp.all(jnp.isfinite(signals.advantage))
        state = _state_if_usable(usable, moved, state)
        decided = {
            "advantage": signals.advantage,
            "weight": signals.weight,
            "decided_mask": signals.mask,
        }
        return rollouts.replace(**decided), state, metrics

    def signals(stats: TokenStats, rollouts: Rollouts, state: dict, key) -> Signals:
        decided, context, state, _ = decide(stats, rollouts, state, key)
        return replace(decided, chosen=run(additions, decided, context, state, key, {})[0].chosen)

    def remarks(plan: UpdatePlan) -> list[str]:
        found = [(one.label, one.remark(plan)) for one in readers]
        return [f"{label} {rest}" for label, rest in found if rest]

    labels = [surrogate.label, *(one.label for one in parts.values()), aggregation.label]
    return Objective(
        init=init,
        loss=loss,
        decide_once=decide_once if whole else None,
        signals=signals,
        token_loss=token_loss,
        reads=reads,
        once_reads=once_reads,
        options=merged({one.label: one.options for one in readers}),
        records=merged({one.label: one.records for one in parts.values()}),
        labels=tuple(labels),
        remarks=remarks,
    )


def _graded(rollouts):
    """Whether every grade is a number."""
    return jnp.all(jnp.isfinite(rollouts.reward) & jnp.isfinite(rollouts.outcome))


def _state_if_usable(usable, moved, state):
    """The new state if the batch is usable, so that a bad one has no lasting effect."""
    return jax.tree.map(lambda new, old: jnp.where(usable, new, old), moved, state)


def _applied(own, name, signals, context, state):
    """The result of a part; an error names the part that reads a missing statistic."""
    has_state = name not in state and own.init is not no_state
    if has_state and jax.tree.leaves(jax.eval_shape(lambda: own.init(Spec(1, 1, 1)))):
        raise ValueError(
            f"loss: state must be from the objective's init, with an entry of {name}, got"
            f" {sorted(state)}"
        )
    try:
        return own.apply(signals, context, state.get(name, ()))
    except (AttributeError, TypeError) as error:
        error.add_note(
            f"in {own.label}: statistics and records that it does not name in `reads` may be None"
        )
        raise


def _decided_once(decisions, advantage):
    """The parts that decide once: those before the first one that is called at every update."""
    chosen = {}
    for name, one in decisions.items():
        if not (one.once or (one is advantage and not measured(one.reads))):
            break
        chosen[name] = one
    return chosen


def merged(parts: Mapping[str, Iterable[tuple[str, Any]]]) -> tuple[tuple[str, Any], ...]:
    """The options or records of all parts together, from their labels; they must agree."""
    found, owner = {}, {}
    for label, pairs in parts.items():
        for name, value in pairs:
            if found.setdefault(name, value) != value:
                raise ValueError(
                    f"objective: {name} must be one value for all parts, got {found[name]} from"
                    f" {owner[name]} and {value} from {label}"
                )
            owner.setdefault(name, label)
    return tuple(sorted(found.items()))
