"""The algebra: what a part of an objective is, and how parts make a loss.

An objective turns token statistics `[B, T]` into a scalar, in this order: the surrogate sets the
ratio and the trust region, the advantage and the transforms decide, the regularizers add to the
penalty or to the term, and the aggregation averages

    loss = aggregate(weight · surrogate + penalty) + term

What is decided (advantage, weight, mask, clip bounds) carries no gradient: the chain stops it after
each part. Off the mask nothing is read: whatever stands there, NaN included, is replaced by 0
first.
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives.inputs import (
    MEASURED,
    check_inputs,
    check_needs,
    check_recorded,
    on_mask,
)
from rlvr_jax.objectives.summary import summarize
from rlvr_jax.types import Rollouts, Signals, TokenStats, replace

__all__ = [
    "Aggregation",
    "Context",
    "Objective",
    "Spec",
    "Surrogate",
    "Transform",
    "UpdatePlan",
    "describe",
    "objective",
    "stateless",
]

Options = tuple[tuple[str, float], ...]
Records = tuple[tuple[str, int | tuple[float, ...]], ...]
DECIDED = ("advantage", "weight", "mask", "clip_low", "clip_high")


@dataclass(frozen=True)
class Spec:
    """Sizes that the state of a transform may depend on: prompts of the task, rows and tokens."""

    prompts: int
    B: int
    T: int


@dataclass(frozen=True)
class UpdatePlan:
    """What a part may know about the run: optimizer steps per batch, and rollouts per prompt."""

    updates_per_batch: int
    group_size: int


@dataclass(frozen=True)
class Context:
    """What a part may read.

    Fields:
      stats: `TokenStats` of the current policy, 0 off the mask, differentiable.
      rollouts: the batch, in the dtype of the statistics, per-token numbers 0 off the mask.
      old_logp: [B, T], denominator of the ratio: `rollouts.old_logp`, or the current log-probs
        without gradient where that is None (the ratio is then exactly 1).
      key: PRNG key of this part alone, to be used once.
    """

    stats: TokenStats
    rollouts: Rollouts
    old_logp: Float[Array, "B T"]
    key: Any


def _silent(plan: UpdatePlan) -> None:
    del plan


@dataclass(frozen=True)
class Transform:
    """A part that decides something: an advantage, a token transform or a regularizer.

    Fields:
      init: (spec) -> state, a pytree whose shapes and dtypes never change; () if there is none.
      apply: (signals, context, state) -> (signals, state, metrics).
      needs: names among the fields of `TokenStats`, the optional fields of `Rollouts`
        ("reference_logp", "values", …) and "batch_statistics" (a statistic of the current policy is
        taken over the batch; with micro-batches this costs a second pass).
      label: the call that makes it, e.g. "keep_top_entropy(fraction=0.2)"; what stands before the
        bracket names its state and its random stream.
      remark: (plan) -> one sentence if the part cannot act under this plan, else None.
      options: arguments of `token_stats` with which its needs are to be measured, name and value,
        e.g. (("top_k", 8),).
      once: it decides about the whole batch before that is split into updates, for it compares
        rollouts with each other. It may read `old_logp` and `rollouts` of the context, not `stats`,
        and write advantage, weight and mask. An advantage that needs no statistics is decided once
        in any case; behind a part that is not, all are asked at every update.
      records: how fields of the rollouts that it reads must have been made, name and value: the
        temperatures of "old_tempered_logp", the number of "component_rewards".
    """

    init: Callable[[Spec], Any]
    apply: Callable[[Signals, Context, Any], tuple[Signals, Any, dict[str, Array]]]
    needs: frozenset[str]
    label: str
    remark: Callable[[UpdatePlan], str | None] = _silent
    options: Options = ()
    once: bool = False
    records: Records = ()


@dataclass(frozen=True)
class Surrogate:
    """The policy loss of a token.

    Fields:
      prepare: (signals, context) -> signals with `ratio`, `clip_low` and `clip_high`.
      loss: (signals, context) -> [B, T], before weight and penalty.
      label, remark, needs, options: as in `Transform`.
    """

    prepare: Callable[[Signals, Context], Signals]
    loss: Callable[[Signals, Context], Float[Array, "B T"]]
    label: str
    remark: Callable[[UpdatePlan], str | None] = _silent
    needs: frozenset[str] = frozenset()
    options: Options = ()


@dataclass(frozen=True)
class Aggregation:
    """How token losses become one number: loss = Σ weights(mask) · values over the mask.

    Fields:
      weights: (mask [B, T], dtype) -> [B, T], d loss / d token loss; read on the mask only.
      label: the call that makes it.
    """

    weights: Callable[[Array, Any], Float[Array, "B T"]]
    label: str

    def __str__(self) -> str:
        return self.label

    def __call__(self, values: Float[Array, "B T"], mask) -> Float[Array, ""]:
        """The aggregate of the values on the mask; 0 for an empty mask."""
        return jnp.sum(jnp.where(mask, values * self.weights(mask, values.dtype), 0))


@dataclass(frozen=True)
class Objective:
    """A loss in token space.

    Fields:
      init: (spec) -> state, a dict from the names of the parts that have state.
      loss: (stats, rollouts, state, key) -> (loss, (state, metrics)); differentiable in `stats`.
        0 for a batch without tokens on the mask; NaN if a reward or outcome is not finite.
      decide_once: (rollouts, state, key) -> (rollouts, state, metrics): for a batch that is split
        into several updates, what its first parts decide about the batch as a whole. The rollouts
        that come back say it (`advantage`, `weight`, `kept`), and the losses of the updates go on
        from there. None if already the first part has to be asked at every update.
      signals: (stats, rollouts, state, key) -> `Signals` after the transforms, before the
        regularizers (which act on every token): what was decided about each token.
      token_loss: (stats, rollouts, state, key) -> [B, T], what the aggregation averages; 0 off the
        mask.
      needs: what must be measured, see `Transform`; always contains "logp".
      once_needs: those of `decide_once`: "logp" stands for `old_logp`, the others for themselves.
      options: with which arguments of `token_stats`, of all parts together.
      records: see `Transform`, of all parts together.
      labels: one per part, in order of action.
      remarks: (plan) -> sentences about parts that cannot act under this plan.
    """

    init: Callable[[Spec], dict[str, Any]]
    loss: Callable[..., tuple[Float[Array, ""], tuple[dict, dict]]]
    decide_once: Callable[..., tuple[Rollouts, dict, dict]] | None
    signals: Callable[..., Signals]
    token_loss: Callable[..., Float[Array, "B T"]]
    needs: frozenset[str]
    once_needs: frozenset[str]
    options: Options
    records: Records
    labels: tuple[str, ...]
    remarks: Callable[[UpdatePlan], list[str]]


def stateless(
    apply: Callable,
    needs: Iterable[str] = (),
    label: str = "",
    remark: Callable[[UpdatePlan], str | None] = _silent,
    options: Options = (),
    once: bool = False,
) -> Transform:
    """Makes a transform without state; `label` is the function that made `apply` if not given."""
    label = label or apply.__qualname__.split(".")[0]
    return Transform(lambda spec: (), apply, frozenset(needs), label, remark, options, once)


def describe(name: str, **arguments) -> str:
    """The call as text, functions by name: describe("f", a=1.0, g=max) is "f(a=1, g=max)"."""

    def text(value):
        return f"{value:g}" if isinstance(value, float) else getattr(value, "__name__", str(value))

    return f"{name}({', '.join(f'{key}={text(value)}' for key, value in arguments.items())})"


def objective(
    advantage: Transform,
    transforms: Sequence[Transform] = (),
    *,
    surrogate: Surrogate,
    regularizers: Sequence[Transform] = (),
    aggregation: Aggregation,
) -> Objective:
    """Composes parts into a loss on `[B, T]` arrays.

    Args:
      advantage: writes `advantage`.
      transforms: change what was decided, in the given order.
      surrogate: sets ratio and trust region before all of them, and the token loss after.
      regularizers: add to `penalty` or `term`, with gradient.
      aggregation: token losses to scalar.
    Metrics of the loss: clipped_share (of the tokens, those where the clip decides), covariance
      (of advantage and log-prob over the tokens), ratio/min, ratio/mean, ratio/max and
      ratio/effective_sample_size (share of the tokens) before any clipping; and those of the parts.
      Where two parts have a metric of one name, the later one is called <part>/<metric>.
    Raises:
      ValueError: a part needs what nobody measures, or two parts want one option at two values;
        when `loss` is called, a statistic that is needed is missing, or shapes disagree.
    """
    decisions = _named([advantage, *transforms])
    additions = _named(regularizers, taken=decisions)
    parts = {**decisions, **additions}
    readers = (surrogate, *parts.values())
    for part in readers:
        check_needs(part)
    needs = frozenset({"logp"}).union(*(part.needs for part in readers))
    whole = _decided_once(decisions, advantage)
    once_needs = frozenset().union(*(part.needs for part in whole.values()))
    reads = False
    for part in decisions.values():
        reads |= bool(part.needs & MEASURED)
        # Of a batch that is one update, its own pass measures what is compared over it.
        if part.once and part is not advantage and reads:
            needs |= {"batch_statistics"}

    def init(spec: Spec) -> dict[str, Any]:
        states = {name: part.init(spec) for name, part in parts.items()}
        return {name: state for name, state in states.items() if jax.tree.leaves(state)}

    def run(chain, signals, context, state, key, metrics):
        state, metrics = dict(state), dict(metrics)
        for name, part in chain.items():
            own = replace(context, key=jax.random.fold_in(key, zlib.crc32(name.encode())))
            signals, new_state, measured = part.apply(signals, own, state.get(name, ()))
            stopped = {field: jax.lax.stop_gradient(getattr(signals, field)) for field in DECIDED}
            signals = replace(signals, **stopped)
            if name in state:
                state[name] = new_state
            for metric, value in measured.items():
                metrics[f"{name}/{metric}" if metric in metrics else metric] = value
        return signals, state, metrics

    def decide(stats, rollouts, state, key):
        check_inputs(stats, rollouts, readers)
        stats, rollouts = on_mask(stats, rollouts)
        old_logp = rollouts.old_logp
        if old_logp is None:
            old_logp = jax.lax.stop_gradient(stats.logp)
        context = Context(stats, rollouts, old_logp, key)
        signals = Signals.neutral(rollouts.mask, stats.logp.dtype)
        signals = surrogate.prepare(signals, context)
        done = ()
        if rollouts.advantage is not None:
            signals = replace(signals, advantage=rollouts.advantage)
            done = [name for name, part in decisions.items() if part is advantage]
        if rollouts.kept is not None:
            weight, mask = signals.weight * rollouts.weight, signals.mask & rollouts.kept
            signals, done = replace(signals, weight=weight, mask=mask), whole
        chain = {name: part for name, part in decisions.items() if name not in done}
        signals, state, metrics = run(chain, signals, context, state, key, {})
        return signals, context, state, metrics

    def losses(stats, rollouts, state, key):
        signals, context, state, metrics = decide(stats, rollouts, state, key)
        metrics = {**summarize(signals, context.stats.logp), **metrics}
        signals, state, metrics = run(additions, signals, context, state, key, metrics)
        values = signals.weight * surrogate.loss(signals, context) + signals.penalty
        return values, signals, state, metrics

    def loss(stats: TokenStats, rollouts: Rollouts, state: dict, key):
        values, signals, state, metrics = losses(stats, rollouts, state, key)
        total = aggregation(values, signals.mask) + signals.term
        # A grade that is no number could vanish in a comparison with those of its group.
        graded = jnp.isfinite(rollouts.reward) & jnp.isfinite(rollouts.outcome)
        total = jnp.where(jnp.all(graded), total, jnp.nan)
        return total, (state, jax.lax.stop_gradient(metrics))

    def token_loss(stats: TokenStats, rollouts: Rollouts, state: dict, key):
        values, signals, _, _ = losses(stats, rollouts, state, key)
        return jnp.where(signals.mask, values, 0)

    def decide_once(rollouts: Rollouts, state: dict, key):
        check_recorded(rollouts, whole.values())
        nothing = jnp.zeros_like(rollouts.behaviour_logp)
        _, clean = on_mask(TokenStats(logp=nothing), rollouts)
        old_logp = nothing if clean.old_logp is None else clean.old_logp
        # There is no policy yet and no trust region: who reads them fails.
        context = Context(TokenStats(), clean, old_logp, key)
        signals = Signals.neutral(clean.mask, nothing.dtype)
        signals = replace(signals, clip_low=None, clip_high=None, ratio=None)
        signals, state, metrics = run(whole, signals, context, state, key, {})
        decided = {"advantage": signals.advantage, "weight": signals.weight, "kept": signals.mask}
        return replace(rollouts, **decided), state, metrics

    def signals(stats: TokenStats, rollouts: Rollouts, state: dict, key) -> Signals:
        return decide(stats, rollouts, state, key)[0]

    def remarks(plan: UpdatePlan) -> list[str]:
        found = [part.remark(plan) for part in readers]
        return [sentence for sentence in found if sentence]

    labels = [surrogate.label, *(part.label for part in parts.values()), aggregation.label]
    return Objective(
        init=init,
        loss=loss,
        decide_once=decide_once if whole else None,
        signals=signals,
        token_loss=token_loss,
        needs=needs,
        once_needs=once_needs,
        options=_merged({part.label: part.options for part in readers}),
        records=_merged({part.label: part.records for part in parts.values()}),
        labels=tuple(labels),
        remarks=remarks,
    )


def _decided_once(decisions, advantage):
    """The parts that come before any that has to be asked at every update."""
    chosen = {}
    for name, part in decisions.items():
        if not (part.once or (part is advantage and not part.needs & MEASURED)):
            break
        chosen[name] = part
    return chosen


def _named(parts, taken=()):
    """Parts by name; the second use of one function is called name_2, and so on."""
    named = {}
    for part in parts:
        name = base = part.label.split("(")[0]
        number = 1
        while name in named or name in taken:
            number += 1
            name = f"{base}_{number}"
        named[name] = part
    return named


def _merged(parts):
    """What parts want, by their labels, as one; they must not want different things."""
    merged, owner = {}, {}
    for label, pairs in parts.items():
        for name, value in pairs:
            if merged.setdefault(name, value) != value:
                raise ValueError(
                    f"objective: {name} must be one value for all parts, got {merged[name]} from"
                    f" {owner[name]} and {value} from {label}"
                )
            owner.setdefault(name, label)
    return tuple(sorted(merged.items()))
