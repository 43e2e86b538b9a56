"""LaSeR: the policy rewards itself by one log-prob after its last token.

"LaSeR: Reinforcement Learning with Last-Token Self-Rewarding", https://github.com/RUCBM/LaSeR

    s_i  = β (log π(z_c | x, y, end) - c)
    A_i  = 0.9 (R_i - mean) / (std + 1e-6) + 0.1 (s_i - mean s) / std s
    loss = GRPO's clipped loss + 0.1 · mean over rows of w_i (s_i - R_i)², finished rows only

z_c is a token that never occurs, c its log-prob under the reference policy (nearly a constant), so
that s is the implicit reward of the response: right answers raise it to c + 10. w balances right
and wrong. In the advantage s is that of the policy that wrote the row (`self_reward`), clipped to
[0, 1], 0 on cut rows; groups whose scores spread by 0.1 or less use GRPO's alone. For a cut row the
authors' code reads a score from a wrong position there. Training begins without the mixing
(`mix=0`) and, for a base model, without the loss, each for 200 updates. c is -23 for Qwen with z_c
<|vision_start|>, -25 for OctoThinker. At test time s > 0.5 says right, and s weighs votes. Read
from the authors' code, not run against it. The average of the clipped loss is GRPO's, per rollout;
which one the authors use was not found.
"""

from rlvr_jax.experience import ask_verdict, experience, reward_itself
from rlvr_jax.objectives.advantages.self_verification import self_reward_loss, self_rewarded
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Method, Recipe


def laser(
    token: str = "<|vision_start|>",
    coefficient: float = 0.1,
    scale: float = 0.1,
    reference_logp: float = -23.0,
    balanced: bool = True,
    mix: float = 0.1,
    min_std: float = 0.1,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO without KL, with a loss that fits a self-reward and a share of it in the advantage.

    Args:
      token: one that never occurs (z_c), a text of one token of the policy's tokenizer.
      coefficient: weight of the squared error.
      scale: of the log-prob of the special token (β).
      reference_logp: its log-prob under the reference policy (c), nats.
      balanced: right and wrong rows weigh the same in the squared error.
      mix: share of the self-reward in the advantage.
      min_std: spread of a group's scores up to which they are not used.
      clip_low, clip_high: half-widths of the trust region.
      epsilon: added to the standard deviation of a group's rewards.
    """
    fit = [self_reward_loss(coefficient, scale, reference_logp, balanced)] if coefficient else []
    return Recipe(
        objective=objective(
            advantage=self_rewarded(mix, min_std, epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=fit,
            aggregation=rollout_mean_token_mean(),
        ),
        experience=experience(stages=[ask_verdict([token]), reward_itself(scale, reference_logp)]),
    )


METHOD = Method(
    laser,
    "LaSeR: Reinforcement Learning with Last-Token Self-Rewarding",
    "https://github.com/RUCBM/LaSeR",
    changes="advantage, regularizer",
    left_out="the phases of training; the weighted vote at test time",
    reports="several bases: better reasoning than GRPO, and a verdict on itself for one token more",
    traps=(
        "token and c are Qwen's: another base needs a token that never occurs, and its c; groups "
        "whose scores spread little take GRPO's advantage; cut rows count in the mean and have no "
        "loss"
    ),
)
