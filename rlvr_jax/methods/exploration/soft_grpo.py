"""SofT-GRPO: GRPO on soft tokens, with the density of their noise in the ratio.

Zheng and Lee 2025, "SofT-GRPO", https://arxiv.org/abs/2511.06411

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    logp = the token's, or where a mixture was fed the mean log-density of its Gumbel noise
           (`rlvr_jax.objectives.surrogates.soft_tokens`)
    loss = Σ [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + β k3(π ‖ π_ref)] / Σ n_i

Defaults are the authors': noise in [-1.5, 3], candidates above log-prob -3, β = 0.001 on the
recorded tokens. Old log-probs are those of soft tokens, too, from the same function. Mixtures are
of the 5 most probable tokens, cut to mass 0.95 and mixed at temperature 0.1; a response thinks up
to `end`.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from rlvr_jax.experience import experience
from rlvr_jax.experience.parts import Draw
from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.algebra.parts import Surrogate
from rlvr_jax.objectives.arguments import check_positive
from rlvr_jax.objectives.regularizers.token_penalties import kl_penalty
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.surrogates.soft_tokens import GumbelNoise, soft_token_logp
from rlvr_jax.rollout.soft import SoftThinking
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, KLCoefficient
from rlvr_jax.types.parts import part

GIVES = frozenset({"soft", "candidate_ids", "candidate_weight", "candidate_noisy_logp"})


@part
def soft_thinking(
    end: str = "</think>",
    candidates: int = 5,
    top_p: float = 0.95,
    mixing_temperature: float = 0.1,
    noise: GumbelNoise | None = None,
    **sampling: Any,
) -> Draw:
    """Samples every response as a whole; up to the end of its thinking it feeds itself mixtures.

    The likeliest tokens at a place are cut to their nucleus, perturbed by Gumbel noise and mixed;
    the mixture of their embeddings is the next input, the most weighty one the recorded token. When
    that is the end of thinking, or ends the response, it is fed as itself and what follows is
    sampled as ever. Rows are trained on the very inputs that they were drawn with.

    Args:
      end: text of the one token that ends the thinking; "": all of a response is thought softly.
      candidates: of a mixture (k).
      top_p: mass of their nucleus.
      mixing_temperature: of the mixture (τ).
      noise: its bounds; None: those of `GumbelNoise`.
      sampling: settings of the sampler that are prescribed, as in `plain`.
    Writes: soft, candidate_ids, candidate_weight, candidate_noisy_logp. Metrics: soft_share (of the
      drawn tokens).
    Raises:
      ValueError: as `SoftThinking`; when it draws, an end that is not one token.
    """
    bounds = GumbelNoise() if noise is None else noise
    SoftThinking((), candidates, top_p, mixing_temperature, bounds)

    def apply(asks, actor, state, turn):
        ids = tuple(actor.encode(end)) if end else ()
        if len(ids) > 1:
            raise ValueError(
                f"soft_thinking: end must be one token of the policy's, got {end!r} of {len(ids)}"
            )
        how = SoftThinking(ids, candidates, top_p, mixing_temperature, bounds)
        batch = actor.draw(asks, turn.key, {"soft": how})
        soft, mask = batch.rollouts.soft, batch.rollouts.mask
        share = 0.0 if soft is None else float(soft.sum() / max(mask.sum(), 1))
        return batch, state, {"soft_share": share}

    named = {"end": end, "candidates": candidates, "top_p": top_p}
    named |= {"mixing_temperature": mixing_temperature, "noise": bounds, **sampling}
    return Draw(apply, sampling=sampling, of_policy=True, writes=GIVES)


@part
def with_soft_tokens(surrogate: Surrogate, bounds: GumbelNoise) -> Surrogate:
    """The same loss, with `soft_token_logp` as log-prob where a mixture was fed.

    That of the old policy is made of `old_candidate_logp` in the same way.

    Args:
      surrogate: any; its ratio and its log-probs become those of soft tokens.
      bounds: of the noise.
    Raises:
      ValueError: bounds whose low is not below their high, whose floor is not negative, or whose
        epsilon is not positive.
    """
    if not bounds.low < bounds.high:
        raise ValueError(
            f"with_soft_tokens: low must be below high {bounds.high}, got {bounds.low}"
        )
    if not bounds.floor < 0:
        raise ValueError(f"with_soft_tokens: floor must be negative, got {bounds.floor}")
    check_positive("with_soft_tokens", epsilon=bounds.epsilon)

    def soft(context):
        stats, rollouts = context.stats, context.rollouts
        own = soft_token_logp(stats.candidate_logp, rollouts.candidate_noisy_logp, bounds)
        logp = jnp.where(rollouts.soft, own, stats.logp)
        old = soft_token_logp(rollouts.old_candidate_logp, rollouts.candidate_noisy_logp, bounds)
        old_logp = jnp.where(rollouts.soft, old, context.old_logp)
        return replace(context, stats=replace(stats, logp=logp), old_logp=old_logp)

    return Surrogate(
        lambda signals, context: surrogate.prepare(signals, soft(context)),
        lambda signals, context: surrogate.loss(signals, soft(context)),
        surrogate.remark,
        surrogate.reads | {"candidate_logp", "old_candidate_logp", "candidate_noisy_logp", "soft"},
        surrogate.options,
    )


def soft_grpo(
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    kl_coefficient: KLCoefficient = 0.001,
    noise_low: float = -1.5,
    noise_high: float = 3.0,
    floor: float = -3.0,
    noise_epsilon: float = 1e-6,
    epsilon: Epsilon = 1e-6,
    end: str = "</think>",
    candidates: int = 5,
    top_p: float = 0.95,
    mixing_temperature: float = 0.1,
) -> Recipe:
    """A clipped ratio on the token mean, of densities where the policy fed itself a mixture.

    Args:
      noise_low, noise_high: bounds of the noise.
      floor: candidates at or below this log-prob do not enter the density, nats.
      noise_epsilon: added to a candidate's probability before its logarithm.
      end: text of the token that ends the thinking; "": a response is nothing else.
      candidates: tokens of a mixture (k).
      top_p: mass of their nucleus.
      mixing_temperature: of the mixture (τ).
    """
    bounds = GumbelNoise(noise_low, noise_high, floor, noise_epsilon)
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=with_soft_tokens(ppo_clip(low=clip_low, high=clip_high), bounds),
            regularizers=[kl_penalty(kl_coefficient)] if kl_coefficient else [],
            aggregation=token_mean(),
        ),
        experience=experience(
            draw=soft_thinking(end, candidates, top_p, mixing_temperature, bounds)
        ),
    )


METHOD = Method(
    soft_grpo,
    "SofT-GRPO: Surpassing Discrete-Token LLM Reinforcement Learning via Gumbel-Reparameterized"
    " Soft-Thinking Policy Optimization",
    "https://arxiv.org/abs/2511.06411",
    changes="sampling, surrogate, regularizer",
    ratio="other",
    left_out="noises other than Gumbel's",
    reports=(
        "1.5B to 7B models, five reasoning sets, over GRPO: pass@1 0.13 and pass@32 2.19 points"
    ),
    traps=(
        "the density is a mean over candidates, not a sum: its ratios are mild; noise at its "
        "bounds and candidates cut by top_p give no gradient; their code falls back to token "
        "log-probs without its kernel, silently"
    ),
)
