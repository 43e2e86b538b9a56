"""Intrinsic rewards: a response is paid for how sure the policy was, or for being in the majority.

"How Far Can Unsupervised RLVR Scale LLM Training?"; Intuitor, https://arxiv.org/abs/2505.19590

    certainty_of_distribution  (1/n) Σ_t (log Σ exp z - mean z), KL(uniform ‖ π) but for ln V
    certainty_of_entropy       -(1/n) Σ_t H_t (RENT)
    certainty_of_response      (1/n) Σ_t ln π(o_t)
    certainty_of_probability   Π_t π(o_t) (RLSC)
    certainty_of_margin        (1/n) Σ_t (p₁ - p₂) (RLSF, here over all tokens)
    majority_vote              1 for the answer of most of the group (TTRL)
    A_i = (r_i - mean) / (std + 1e-6), std with n - 1;  loss = mean_i (1/n_i) Σ_t [PPO clip + β k3]

Such rewards rise and then accuracy falls: certainty sharpens what the policy began with.
Probability pays short responses (of long ones it is far below the 1e-6, and teaches nothing),
entropy and likelihood pay repetition; a vote is without signal once all agree. A tie of votes goes
to the answer that comes first. TTRL votes with 64 responses and learns from 32; here all vote. β is
Intuitor's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.experience import experience, shape
from rlvr_jax.objectives import (
    Shaping,
    agreement,
    group_normalized,
    rollout_mean_token_mean,
)
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.regularizers.preferences import outcome_is_right
from rlvr_jax.objectives.statistics.certainty import self_certainty
from rlvr_jax.objectives.statistics.groups import (
    group_deviation,
    group_has_tokens,
    group_std,
    has_tokens,
)
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, KLCoefficient, Positive
from rlvr_jax.types.parts import part
from rlvr_jax.types.rollouts import Rollouts


@dataclass(frozen=True, repr=False)
class Certainty:
    """How sure the policy was of each row.

    Fields:
      of: (rollouts, old log-probs [B, T], mask) -> [B].
      reads: statistics of the old policy and records that it reads.
      name: for labels.
      top_k: how many of the likeliest tokens it reads; 0: none.
    """

    of: Callable[[Rollouts, Array, Array], Array]
    reads: frozenset[str]
    name: str
    top_k: int = 0

    def __repr__(self) -> str:
        return self.name


@part(writes={"advantage"})
def certainty_normalized(certainty: Certainty, epsilon: Positive = 1e-6) -> Transform:
    """A_i = (c_i - mean) / (std + ε) over the rollouts of a prompt; std with n - 1.

    Rows without tokens have no certainty: they are not compared.

    Args:
      certainty: c, of `rlvr_jax.objectives.rewards.certainty`.
      epsilon: ε, added to the deviation.
    Metrics: certainty, its mean over the rows with tokens, and certainty/right and /wrong.
    """

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        own = jax.lax.stop_gradient(certainty.of(rollouts, context.old_logp, mask))
        group, written = rollouts.group, has_tokens(mask)
        spread = group_std(own, group, where=written)
        advantage = group_deviation(own, group, where=written) / (spread + epsilon)
        counted = written & group_has_tokens(rollouts.mask, group)
        right = outcome_is_right(rollouts.outcome)
        metrics = {
            "certainty": masked_mean(own, counted),
            "certainty/right": masked_mean(own, counted & right),
            "certainty/wrong": masked_mean(own, counted & ~right),
        }
        advantage = jax.numpy.where(mask, advantage[:, None], 0)
        return replace(signals, advantage=advantage), state, metrics

    def remark(plan):
        if plan.group_size == 1:
            return "is 0 everywhere: a group of one has no baseline."
        return None

    options = (("top_k", certainty.top_k),) if certainty.top_k else ()
    return Transform(
        apply,
        reads=certainty.reads | {"batch_statistics"},
        remark=remark,
        options=options,
        once=not certainty.top_k,
    )


def _mean(values: Float[Array, "B T"], mask: Bool[Array, "B T"]) -> Float[Array, "B"]:
    return masked_mean(values, mask, axis=1)


def _of_distribution(rollouts, old_logp, mask):
    del old_logp
    return _mean(self_certainty(rollouts.old_logsumexp, rollouts.old_mean_logit), mask)


def _of_entropy(rollouts, old_logp, mask):
    del old_logp
    return -_mean(rollouts.entropy, mask)


def _of_response(rollouts, old_logp, mask):
    del rollouts
    return _mean(old_logp, mask)


def _of_probability(rollouts, old_logp, mask):
    del rollouts
    return jnp.where(jnp.any(mask, axis=1), jnp.exp(masked_sum(old_logp, mask, axis=1)), 0)


def _of_margin(rollouts, old_logp, mask):
    del old_logp
    return _mean(top_margin(rollouts.old_topk_logp), mask)


certainty_of_distribution: Certainty = Certainty(
    _of_distribution, frozenset({"old_logsumexp", "old_mean_logit"}), "certainty_of_distribution"
)
"""Mean of log Σ exp z - mean z, which is KL(uniform ‖ p) but for a constant (Intuitor)."""


certainty_of_entropy: Certainty = Certainty(
    _of_entropy, frozenset({"sampled_entropy"}), "certainty_of_entropy"
)
"""Minus the mean entropy when the tokens were drawn (RENT)."""


certainty_of_response: Certainty = Certainty(
    _of_response, frozenset({"logp"}), "certainty_of_response"
)
"""Mean log-prob of the tokens that were drawn."""


certainty_of_probability: Certainty = Certainty(
    _of_probability, frozenset({"logp"}), "certainty_of_probability"
)
"""Probability of the whole response (RLSC): it prefers short ones."""


certainty_of_margin: Certainty = Certainty(
    _of_margin, frozenset({"topk_ids", "old_topk_logp"}), "certainty_of_margin", top_k=2
)
"""Mean of p₁ - p₂, the likeliest token's probability minus the second's (RLSF); in training with
one update per batch, as the likeliest tokens are known in an update's own pass only."""


CERTAINTIES = {
    "self_certainty": certainty_of_distribution,
    "token_entropy": certainty_of_entropy,
    "trajectory_logp": certainty_of_response,
    "probability": certainty_of_probability,
    "disparity": certainty_of_margin,
}
"""By the names that papers use."""


def unanimous_mass(share: Float[Array, "B"], beta: float) -> Float[Array, "B"]:
    """p e^{1/β} / (p e^{1/β} + 1 - p): a share after one ideal step towards it under a KL of β.

    Repeated it goes to 1: what is rewarded for agreeing sharpens what it began with, right or
    wrong.

    Args:
      share: p, of what is rewarded.
      beta: β of the KL, positive.
    """
    grown = share * jnp.exp(1 / beta)
    return grown / (grown + 1 - share)


def token_certainty(
    logsumexp: Float[Array, "B T"], mean_logit: Float[Array, "B T"], vocabulary: int
) -> Float[Array, "B T"]:
    """KL(uniform ‖ p) = -ln V - mean_v ln p_v of each token, nats, at least 0."""
    return self_certainty(logsumexp, mean_logit) - math.log(vocabulary)


def top_margin(topk_logp: Float[Array, "B T K"]) -> Float[Array, "B T"]:
    """p of the likeliest token minus p of the second."""
    return jnp.exp(topk_logp[..., 0]) - jnp.exp(topk_logp[..., 1])


majority_vote: Shaping = agreement(vote=True)


def intrinsic_rewards(
    signal: Certainty | Shaping = certainty_of_distribution,
    kl_coefficient: KLCoefficient = 0.005,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on a reward that no verifier gives.

    Args:
      signal: a `Certainty`, or a reward such as `majority_vote`.
    """
    sure = isinstance(signal, Certainty)
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=certainty_normalized(signal, epsilon) if sure else group_normalized(epsilon),
            kl_coefficient=kl_coefficient,
            aggregation=rollout_mean_token_mean(),
        ),
        experience=None if sure else experience(stages=[shape(signal)]),
    )


METHOD = Method(
    intrinsic_rewards,
    "How Far Can Unsupervised RLVR Scale LLM Training?",
    "https://arxiv.org/abs/2505.19590",
    changes="reward, advantage",
    baseline="signal",
    left_out="more votes than rows; votes over rephrased questions",
    reports=(
        "Qwen3-1.7B base on DAPO-17k: five such rewards rise, then fall, within about 1000 steps; "
        "sets of 32 to 128 prompts did not collapse"
    ),
    traps=(
        "probability pays short answers, entropy and likelihood repetition; certainty keeps "
        "pushing on solved prompts; a vote locks in the first majority, right or wrong"
    ),
)
