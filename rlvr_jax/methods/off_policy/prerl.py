"""NSR-PreRL: push wrong answers down as texts of their own, without the prompt.

"From P(y|x) to P(y): Investigating Reinforcement Learning in Pre-train Space",
https://github.com/Trae1ounG/Pretrain_Space_RLVR

    A_i  = R_i - mean;  ρ = P(y_t | y_<t) / P_old(y_t | y_<t), no prompt in either
    l_t  = max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)), at most -c A
    loss = 0.01 · Σ l_t / Σ n_i over the rollouts with A < 0

The second prompt of `second_prompt_logp` is the empty one: a start token, then the response, with
positions from 0. Positive rollouts would teach to write any answer to anything. Under Adam the
coefficient matters only relative to weight decay and gradient clipping. In DSRL, the whole method,
this is the first stage, of 10 to 25 updates (20 for most models); the second is GRPO on P(y|x),
with the reference reset to the weights at the switch. Constants are those of the authors' code.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rlvr_jax.experience import experience
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.rewards.second_prompt import GIVES
from rlvr_jax.objectives.advantages.group_relative import group_centered
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.algebra.parts import Surrogate, Transform
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.weights import scale_weight
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, DualClip
from rlvr_jax.types.parts import part


@part(writes=GIVES)
def without_prompt() -> Stage:
    """Says that responses are also scored as texts of their own, behind a start token alone.

    The start token is the one that all prompts of the batch begin with (of a chat template, or the
    beginning of a sequence); where they begin otherwise, the last one of the row's prompt.

    Writes: second_tokens, second_length.
    """

    def apply(batch, actor, state, turn):
        del actor, turn
        prompts, length = batch.rollouts.prompt_tokens, batch.rollouts.prompt_length
        first = prompts[:, :1]
        last = np.take_along_axis(prompts, length[:, None] - 1, axis=1)
        start = first if (first == first[0]).all() else last
        return (
            batch.with_rollouts(second_tokens=start, second_length=np.ones_like(length)),
            state,
            {},
        )

    return apply


@part
def under_second_prompt(surrogate: Surrogate) -> Surrogate:
    """The surrogate with the log-probs that the response has under the second prompt.

    `logp` and `old_logp` become `second_prompt_logp` and `old_second_prompt_logp`. With an empty
    second prompt the loss acts on P(y), and its gradient is shared by all prompts.
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
    """Trains on the tokens with negative advantage alone: mask' = mask ∧ (A < 0)."""
    return _keep(lambda advantage: advantage < 0)


@part(writes={"mask"})
def keep_positive_rollouts() -> Transform:
    """Trains on the tokens with positive advantage alone: mask' = mask ∧ (A > 0)."""
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


def prerl(
    coefficient: float = 0.01,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    dual_clip: DualClip = 10.0,
) -> Recipe:
    """Centered rewards on the log-probs without prompt, for negative rollouts alone.

    Args:
      coefficient: factor on the loss.
    """
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            transforms=[keep_negative_rollouts(), scale_weight(coefficient)],
            surrogate=under_second_prompt(ppo_clip(low=clip_low, high=clip_high, dual=dual_clip)),
            aggregation=token_mean(),
        ),
        experience=experience(stages=[without_prompt()]),
    )


METHOD = Method(
    prerl,
    "From P(y|x) to P(y): Investigating Reinforcement Learning in Pre-train Space",
    "https://github.com/Trae1ounG/Pretrain_Space_RLVR",
    changes="advantage, mask, surrogate",
    ratio="other",
    left_out="the switch to GRPO after 20 updates (`stage_weights`)",
    reports=(
        "wrong answers alone: 14.89 times as many transitions and 6.54 times as many reflections; "
        "DSRL is above GRPO's kin on maths"
    ),
    traps=(
        "a first stage of 10 to 25 updates, not a whole run; a batch without negative advantages "
        "does nothing; under Adam the factor 0.01 hardly matters; sampled log-probs have the "
        "prompt and are not its old ones"
    ),
)
