"""NSR-PreRL: lowers the probability of incorrect responses as texts without the prompt.

"From P(y|x) to P(y): Investigating Reinforcement Learning in Pre-train Space",
https://github.com/Trae1ounG/Pretrain_Space_RLVR

    A_i  = R_i - mean;  ρ = P(y_t | y_<t) / P_old(y_t | y_<t), no prompt in either
    l_t  = max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)), at most -c A
    loss = 0.01 · Σ l_t / Σ n_i over the rollouts with A < 0

The second prompt of `second_prompt_logp` is empty: a start token, then the response, with positions
from 0. Positive rollouts would teach to write any answer to any prompt. In DSRL, the whole method,
this is the first stage, of 10 to 25 updates (20 for most models). The second stage is GRPO on
P(y|x), with the reference reset to the weights at the switch. Constants are the authors'.

Left out: the switch to GRPO after 20 updates.
Reports: with incorrect responses only, 14.89 times as many transitions and 6.54 times as many
reflections. DSRL is above methods like GRPO on maths (no numbers).
Traps: Use it for 10 to 25 updates, not for a whole run. A batch without negative advantages trains
nothing. Under Adam, the factor 0.01 matters only relative to weight decay and gradient clipping.
Sampled log-probs have the prompt and are not the old ones of this loss.
"""

import numpy as np

from rlvr_jax.experience import Stage, experience
from rlvr_jax.experience.stages.rounds.another_view import GIVES
from rlvr_jax.objectives import group_centered, objective, part, ppo_clip, scale_weight, token_mean
from rlvr_jax.objectives.algebra.parts import Surrogate, Transform
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, DualClip


@part(writes={"mask"})
def keep_negative_rollouts() -> Transform:
    """Trains only tokens with negative advantage: mask' = mask ∧ (A < 0)."""

    def apply(signals, context, state):
        return replace(signals, mask=signals.mask & (signals.advantage < 0)), state, {}

    return apply


@part
def under_second_prompt(surrogate: Surrogate) -> Surrogate:
    """The surrogate with the log-probs of the response under the second prompt.

    `logp` and `old_logp` become `second_prompt_logp` and `old_second_prompt_logp`. With an empty
    second prompt the loss acts on P(y), and its gradient is shared by all prompts.
    """

    def shown(context):
        stats = context.stats.replace(logp=context.stats.records["second_prompt_logp"])
        old_logp = context.rollouts.records["old_second_prompt_logp"]
        return replace(context, stats=stats, old_logp=old_logp)

    return Surrogate(
        prepare=lambda signals, context: surrogate.prepare(signals, shown(context)),
        loss=lambda signals, context: surrogate.loss(signals, shown(context)),
        remark=surrogate.remark,
        reads=surrogate.reads | {"second_prompt_logp", "old_second_prompt_logp"},
        options=surrogate.options,
    )


@part(writes=GIVES)
def without_prompt() -> Stage:
    """Scores responses also as texts after a start token only.

    The start token is the common first token of all prompts of the batch (of a chat template, or
    the beginning of a sequence). Without a common one it is the last token of the row's prompt.

    Writes: second_tokens, second_length.
    """

    def apply(batch, actor, state, turn):
        prompts, length = batch.rollouts.prompt_tokens, batch.rollouts.prompt_length
        first = prompts[:, :1]
        last = np.take_along_axis(prompts, length[:, None] - 1, axis=1)
        start = first if (first == first[0]).all() else last
        batch = batch.with_rollouts(second_tokens=start, second_length=np.ones_like(length))
        return batch, state, {}

    return apply


def prerl(
    coefficient: float = 0.01,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    dual_clip: DualClip = 10.0,
) -> Recipe:
    """Applies centered rewards to log-probs without the prompt, for negative rollouts only.

    Args:
      coefficient: factor on the loss.
    """
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            transforms=[keep_negative_rollouts(), scale_weight(coefficient)],
            surrogate=under_second_prompt(ppo_clip(clip_low, clip_high, dual=dual_clip)),
            aggregation=token_mean(),
        ),
        experience=experience(stages=[without_prompt()]),
    )


METHOD = Method(
    prerl,
    changes="advantage, mask, surrogate",
    ratio="other",
    shown=LOSS_ON_BRACKETS,
)
