"""The parts of an objective and their inputs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.types import Part, Rollouts, Signals, TokenStats

Options = tuple[tuple[str, float], ...]
Records = tuple[tuple[str, int | tuple[float, ...]], ...]


@dataclass(frozen=True)
class Spec:
    """Sizes from which a part makes its state: prompts of the task, rows and tokens.

    Examples:
      >>> from rlvr_jax import Spec, methods
      >>> methods.recipe("grpo").objective.init(Spec(8, 64, 128))
      {}
    """

    prompts: int
    B: int
    T: int


@dataclass(frozen=True)
class UpdatePlan:
    """The plan of a run: optimizer steps per batch, and rollouts per prompt."""

    updates_per_batch: int
    group_size: int


@dataclass(frozen=True)
class Context:
    """The input of a part of a loss: statistics of the tokens, rollouts, a random key.

    Fields:
      stats: `TokenStats` of the current policy, 0 off the mask, differentiable.
      rollouts: the batch, in the dtype of the statistics, per-token numbers 0 off the mask.
      old_logp: denominator of the ratio: `rollouts.old_logp`, or the current log-probs without
        gradient where that is None (the ratio is then exactly 1).
      key: PRNG key of this part, used once.
      scored_logp: current log-probs of the tokens on the mask and of supervised rows;
        differentiable, for `imitate`.
    """

    stats: TokenStats
    rollouts: Rollouts
    old_logp: Float[Array, "B T"]
    key: Any
    scored_logp: Float[Array, "B T"] | None = None


def no_state(spec: Spec) -> tuple[()]:
    """The state of a part that has none."""
    del spec
    return ()


def no_remark(plan: UpdatePlan) -> None:
    """The remark of a part that acts under every plan: None."""
    del plan


def at_one_update(text: str) -> Callable[[UpdatePlan], str | None]:
    """The remark that a run prints for a part without effect at one update per batch."""
    return lambda plan: text if plan.updates_per_batch == 1 else None


@dataclass(frozen=True, eq=False, repr=False)
class Transform(Part):
    """A part that decides something: an advantage, a token transform or a regularizer.

    Examples:
      >>> from rlvr_jax.objectives import keep_top_entropy
      >>> part = keep_top_entropy(0.2)
      >>> type(part).__name__, sorted(part.reads)
      ('Transform', ['batch_statistics', 'entropy'])

    Fields:
      apply: (signals, context, state) -> (signals, state, metrics).
      init: (spec) -> state, a pytree whose shapes and dtypes never change; () if there is none.
      reads: names of fields of `TokenStats`, of records of `Rollouts` ("values", "cell", …),
        "reference_logp", and "batch_statistics". The last one is for a statistic of the current
        policy over the batch, which costs a second pass with micro-batches.
      writes: the signals that it changes; a change of another signal raises. None: not checked.
      remark: (plan) -> the rest of a sentence that begins with the part's label, if the part has no
        effect under this plan, else None.
      options: arguments of `token_stats` for its statistics, e.g. (("top_k", 8),).
      once: it decides about the whole batch before the split into updates, because it compares
        rollouts. It may read `old_logp` and `rollouts` of the context, not `stats`, and write
        advantage, weight and mask. An advantage that reads no statistics always decides once. All
        parts after one that does not decide once are called at every update.
      records: properties of the rollouts' fields that it reads: the temperatures of
        "old_tempered_logp", the number of "component_rewards".
    """

    apply: Callable[[Signals, Context, Any], tuple[Signals, Any, dict[str, Array]]]
    init: Callable[[Spec], Any] = no_state
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] | None = None
    remark: Callable[[UpdatePlan], str | None] = no_remark
    options: Options = ()
    once: bool = False
    records: Records = ()


@dataclass(frozen=True, eq=False, repr=False)
class Surrogate(Part):
    """A part that defines the policy loss of each token, such as `ppo_clip`.

    Fields:
      prepare: (signals, context) -> signals with `ratio`, `clip_low` and `clip_high`.
      loss: (signals, context) -> [B, T], before weight and penalty.
      remark, reads, options: as in `Transform`.
    """

    prepare: Callable[[Signals, Context], Signals]
    loss: Callable[[Signals, Context], Float[Array, "B T"]]
    remark: Callable[[UpdatePlan], str | None] = no_remark
    reads: frozenset[str] = frozenset()
    options: Options = ()


@dataclass(frozen=True, eq=False, repr=False)
class Aggregation(Part):
    """The weighted sum of token losses: loss = Σ weights(mask) · values over the mask.

    Fields:
      weights: (mask [B, T], dtype) -> [B, T], d loss / d token loss; read on the mask only.
    """

    weights: Callable[[Array, Any], Float[Array, "B T"]]

    def __call__(self, values: Float[Array, "B T"], mask: Bool[Array, "B T"]) -> Float[Array, ""]:
        """The aggregate of the values on the mask; 0 for an empty mask."""
        return jnp.sum(jnp.where(mask, values * self.weights(mask, values.dtype), 0))
