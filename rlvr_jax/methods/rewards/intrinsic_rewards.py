"""Intrinsic rewards: rewards a response for the policy's certainty, or for the majority's answer.

"How Far Can Unsupervised RLVR Scale LLM Training?"; Intuitor, https://arxiv.org/abs/2505.19590

    certainty_of_distribution  (1/n) Σ_t (log Σ exp z - mean z), KL(uniform ‖ π) + ln V
    certainty_of_entropy       -(1/n) Σ_t H_t (RENT)
    certainty_of_response      (1/n) Σ_t ln π(o_t)
    certainty_of_probability   Π_t π(o_t) (RLSC)
    certainty_of_margin        (1/n) Σ_t (p₁ - p₂) (RLSF, here over all tokens)
    majority_vote              1 for the most frequent answer of the group, else 0 (TTRL)
    A_i = (r_i - mean) / (std + 1e-6), std with n - 1;  loss = mean_i (1/n_i) Σ_t [PPO clip + β k3]

The reward rises first, and later accuracy falls: certainty sharpens the initial policy.

- Probability rewards short responses. For a long response it is far below 1e-6, without a gradient.
- A vote has no gradient once all answers agree. A tie goes to the answer that comes first.

TTRL votes with 64 responses and trains on 32. Here all responses vote. β is Intuitor's. With a
vote, the Model Collapse Step is the first step with `experience/reward_accuracy` below 0.01.

Left out: more votes than rows; votes over rephrased questions; the Model Collapse Step of rewards
by certainty, as certainty is not a label.
Reports: Qwen3-1.7B base on DAPO-17k: five such rewards rise, then fall, within about 1000 steps.
Sets of 32 to 128 prompts did not collapse.
Traps: Entropy and likelihood reward repetition. Certainty still trains solved prompts. A vote fixes
the first majority, correct or not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.experience import Shaping, agreement, experience, part, shape
from rlvr_jax.objectives import Transform, group_normalized, rollout_mean_token_mean, self_certainty
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.groups import (
    group_deviation,
    group_has_tokens,
    group_std,
    has_tokens,
)
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.types import (
    LOSS_ON_BRACKETS,
    Method,
    Recipe,
    Rollouts,
    arguments_of,
    is_correct,
    replace,
)
from rlvr_jax.types.hyperparameters import Epsilon


@dataclass(frozen=True, repr=False)
class Certainty:
    """The certainty of the policy about each row.

    Fields:
      name: for labels.
      reads: statistics of the old policy and records that it reads.
      of: (rollouts, old log-probs [B, T], mask) -> [B].
      top_k: number of likeliest tokens that it reads; 0: none.
    """

    name: str
    reads: frozenset[str]
    of: Callable[[Rollouts, Array, Array], Array]
    top_k: int = 0

    def __repr__(self) -> str:
        return self.name


def _mean(values: Float[Array, "B T"], mask: Bool[Array, "B T"]) -> Float[Array, "B"]:
    return masked_mean(values, mask, axis=1)


certainty_of_distribution: Certainty = Certainty(
    "certainty_of_distribution",
    frozenset({"old_logsumexp", "old_mean_logit"}),
    lambda own, _, mask: _mean(
        self_certainty(own.records["old_logsumexp"], own.records["old_mean_logit"]), mask
    ),
)
certainty_of_entropy: Certainty = Certainty(
    "certainty_of_entropy",
    frozenset({"sampled_entropy"}),
    lambda own, _, mask: -_mean(own.entropy, mask),
)
certainty_of_response: Certainty = Certainty(
    "certainty_of_response", frozenset({"logp"}), lambda _, old_logp, mask: _mean(old_logp, mask)
)
certainty_of_probability: Certainty = Certainty(
    "certainty_of_probability",
    frozenset({"logp"}),
    lambda _, old, mask: jnp.where(has_tokens(mask), jnp.exp(masked_sum(old, mask, axis=1)), 0),
)
certainty_of_margin: Certainty = Certainty(
    "certainty_of_margin",
    frozenset({"topk_ids", "old_topk_logp"}),
    lambda own, _, mask: _mean(
        jnp.exp(own.records["old_topk_logp"][..., 0])
        - jnp.exp(own.records["old_topk_logp"][..., 1]),
        mask,
    ),
    top_k=2,
)
"""In training for one update per batch only: the likeliest tokens are known in an update's own
pass."""

majority_vote: Shaping = agreement(vote=True)


@part(writes={"advantage"})
def certainty_normalized(certainty: Certainty, epsilon: Epsilon = 1e-6) -> Transform:
    """A_i = (c_i - mean) / (std + ε) over the rollouts of a prompt; std with n - 1.

    Rows without tokens have no certainty and are not compared.

    Metrics: certainty (mean over the rows with tokens), certainty/correct, certainty/incorrect
      (means over correct and incorrect rows).
    """

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        own = jax.lax.stop_gradient(certainty.of(rollouts, context.old_logp, mask))
        group, written = rollouts.group, has_tokens(mask)
        spread = group_std(own, group, where=written)
        advantage = group_deviation(own, group, where=written) / (spread + epsilon)
        counted = written & group_has_tokens(rollouts.mask, group)
        correct = is_correct(rollouts.outcome)
        metrics = {
            "certainty": masked_mean(own, counted),
            "certainty/correct": masked_mean(own, counted & correct),
            "certainty/incorrect": masked_mean(own, counted & ~correct),
        }
        advantage = jnp.where(mask, advantage[:, None], 0)
        return replace(signals, advantage=advantage), state, metrics

    def remark(plan):
        if plan.group_size == 1:
            return "is 0 everywhere: a group of one has no baseline."
        return None

    return Transform(
        apply,
        reads=certainty.reads | {"batch_statistics"},
        remark=remark,
        options=(("top_k", certainty.top_k),) if certainty.top_k else (),
        once=not certainty.top_k,
    )


@arguments_of(clipped_objective, "clip_low", "clip_high", "kl_coefficient", kl_coefficient=0.005)
def intrinsic_rewards(
    signal: Certainty | Shaping = certainty_of_distribution, epsilon: Epsilon = 1e-6, **clip: Any
) -> Recipe:
    """Applies GRPO to a reward that requires no verifier.

    Args:
      signal: one of the six names of the table above, another `Certainty`, or another reward.
    """
    sure = isinstance(signal, Certainty)
    return Recipe(
        objective=clipped_objective(
            advantage=certainty_normalized(signal, epsilon) if sure else group_normalized(epsilon),
            aggregation=rollout_mean_token_mean(),
            **clip,
        ),
        experience=None if sure else experience(stages=[shape(signal)]),
    )


METHOD = Method(
    intrinsic_rewards,
    changes="reward, advantage",
    baseline="signal",
    shown=LOSS_ON_BRACKETS,
)
