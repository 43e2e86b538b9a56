"""Training the marginal P(y): the loss of a response as it would be scored without its prompt."""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.objectives.algebra.parts import Surrogate, Transform
from rlvr_jax.types import replace
from rlvr_jax.types.parts import part

__all__ = [
    "keep_negative_rollouts",
    "keep_positive_rollouts",
    "stage_weights",
    "under_second_prompt",
]


@part
def under_second_prompt(surrogate: Surrogate) -> Surrogate:
    """The surrogate with the log-probs that the response has under the second prompt.

    `logp` and `old_logp` become `second_prompt_logp` and `old_second_prompt_logp`. With an empty
    second prompt the loss acts on P(y), and its gradient is shared by all prompts.
    Reads: what the surrogate reads, second_prompt_logp, old_second_prompt_logp.
    Source: PreRL, https://github.com/Trae1ounG/Pretrain_Space_RLVR.
    """

    def shown(context):
        stats = replace(context.stats, logp=context.stats.second_prompt_logp)
        old_logp = context.rollouts.old_second_prompt_logp
        return replace(context, stats=stats, old_logp=old_logp)

    return Surrogate(
        prepare=lambda signals, context: surrogate.prepare(signals, shown(context)),
        loss=lambda signals, context: surrogate.loss(signals, shown(context)),
        remark=surrogate.remark,
        reads=surrogate.reads | {"second_prompt_logp", "old_second_prompt_logp"},
        options=surrogate.options,
    )


@part(writes={"mask"})
def keep_negative_rollouts() -> Transform:
    """Trains on the tokens with negative advantage alone: mask' = mask ∧ (A < 0).

    Reads: advantage. Writes: mask. Metrics: none.
    """
    return _keep(lambda advantage: advantage < 0)


@part(writes={"mask"})
def keep_positive_rollouts() -> Transform:
    """Trains on the tokens with positive advantage alone: mask' = mask ∧ (A > 0).

    Reads: advantage. Writes: mask. Metrics: none.
    """
    return _keep(lambda advantage: advantage > 0)


def stage_weights(
    update: Int[Array, "..."], switch: int, coefficient: float
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Weights of the loss on P(y) and of that on P(y|x): (c, 0) for the first updates, then (0, 1).

    Args:
      update: number of the update, from 0.
      switch: how many updates the first stage has.
      coefficient: c.
    """
    first = update < switch
    return jnp.where(first, coefficient, 0.0), jnp.where(first, 0.0, 1.0)


def _keep(wanted: Callable):
    def apply(signals, context, state):
        del context
        return replace(signals, mask=signals.mask & wanted(signals.advantage)), state, {}

    return apply
