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

from rlvr_jax.experience import experience, without_prompt
from rlvr_jax.objectives.advantages.group_relative import group_centered
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.surrogates.prompt_free import keep_negative_rollouts, under_second_prompt
from rlvr_jax.objectives.transforms.weights import scale_weight
from rlvr_jax.types import Method, Recipe


def prerl(
    coefficient: float = 0.01,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float = 10.0,
) -> Recipe:
    """Centered rewards on the log-probs without prompt, for negative rollouts alone.

    Args:
      coefficient: factor on the loss.
      clip_low, clip_high: half-widths of the trust region (ε).
      dual_clip: bound of the loss of a negative advantage, in units of -A (c).
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
