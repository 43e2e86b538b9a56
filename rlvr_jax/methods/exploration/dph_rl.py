"""DPH-RL: rehearses the prompts that the base policy solves, by a mass-covering divergence.

"The Choice of Divergence: A Neglected Key to Mitigating Diversity Collapse in Reinforcement
Learning with Verifiable Reward", https://github.com/seamoke/DPH-RL

    own rows:      A_i = (R_i - mean) / (std + 1e-6) among them, PPO clip with dual clip, token mean
    rehearsed rows (`off_policy`), u = π / π_ref:   c · mean over their tokens of f(u)
    forward KL     f(u) = u - log u - 1
    JS             f(u) = u log u - (u + 1) log((u + 1) / 2)
    alpha          f(u) = (u^(1 - α) - (1 - α) u - α) / (α (α - 1))

In the first step, before its update, the base policy answers some prompts. Those that it solves
every time are set aside, each with one correct response. From then on, some of these (256 to 1024
rows) are added to every batch. Their log-probs under the base policy are the reference's; the paper
stores them instead. Other prompts train without KL. The loss here is the sum of both. The authors'
code averages over micro-batches of either kind.

The README's coefficients are 0.01 to 0.05 (forward KL), 0.05 to 0.2 (JS), and 0.01 to 0.05 (alpha
of 0.2). The scripts use 0.01 and the forward KL. The authors' code clamps log u (±20) and the value
(10) of the forward KL. The clamp of log u for the others is ours. The paper sets prompts aside at 8
of 8 correct responses, the script at 4 of 4. The paper compares with the reverse KL on fresh
rollouts, which is `kl_penalty` with `k3`.

Left out: JS by its definition, on own and rehearsed rows.
Reports: maths and SQL (Llama-3.1-8B and others): pass@1 and pass@k rise where plain RLVR loses
pass@k. A reverse KL loses it faster (no numbers).
Traps: If the base policy never solves a prompt every time, there are no rows to rehearse, and the
method is DAPO's clip. JS saturates at ln 2, so lost mass is not recovered.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rlvr_jax.experience import Curriculum, experience, rehearse, shuffled_epochs
from rlvr_jax.experience.curricula.batches import requests_for
from rlvr_jax.objectives import Divergence, Transform, clipped_objective, rollout_advantage
from rlvr_jax.objectives.statistics.groups import group_deviation, group_std
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.objectives.transforms.weights import drop_off_policy
from rlvr_jax.types import Function, Method, Recipe, Shown, part, replace
from rlvr_jax.types.hyperparameters import (
    Bound,
    ClipHigh,
    ClipLow,
    Count,
    DualClip,
    Epsilon,
    NonNegative,
    OpenUnit,
    Positive,
)
from rlvr_jax.types.passing import arguments_of


@part
def set_solved_aside(rated: Count, samples: Count) -> Curriculum:
    """Replaces prompts that the first policy solved every time by others.

    In step 0, before any update, some prompts are rated: sampled and graded, never trained. A
    prompt with only correct responses is set aside. Another prompt of uniform choice replaces it.
    It must follow a curriculum that picks prompts.

    Args:
      rated: number of prompts that are rated, without replacement; at most all.
      samples: number of responses to each.
    Metrics: solved_prompts (set aside).
    """

    def init(setting):
        return np.zeros(len(setting.task.train), bool)

    def propose(requests, solved, turn):
        random = turn.random()
        first = turn.step == 0 and turn.round == 0
        chosen = random.permutation(len(solved))[:rated] if first else ()
        ratings = [
            replace(request, samples=samples, rating=True) for request in requests_for(turn, chosen)
        ]
        taken = {request.number for request in requests}
        free = [n for n in random.permutation(len(solved)) if not solved[n] and n not in taken]
        others = iter(requests_for(turn, free[: len(requests)]))
        left = [
            next(others, request)
            if request.number < len(solved) and solved[request.number]
            else request
            for request in requests
        ]
        return [*ratings, *left]

    def observe(solved, turn, seen, learned):
        solved = solved.copy()
        for batch in seen:
            for rows, outcomes in zip(batch.groups, batch.outcomes(), strict=True):
                request = batch.requests[rows[0]]
                if request.rating and request.number < len(solved):
                    solved[request.number] = bool((outcomes == 1).all())
        return solved, {"solved_prompts": float(solved.sum())}

    return Curriculum(propose, init, observe)


@part
def on_policy_normalized(epsilon: Positive = 1e-6) -> Transform:
    """A_i = (R_i - mean) / (std + ε) over the group's own rollouts; 0 on rows of another policy.

    Args:
      epsilon: added to the standard deviation (ε, n - 1).
    """

    def advantage(rollouts):
        reward, group, own = rollouts.reward, rollouts.group, ~rollouts.records["off_policy"]
        centered = group_deviation(reward, group, where=own)
        scaled = centered / (group_std(reward, group, where=own) + epsilon)
        return jnp.where(own, scaled, 0)

    return rollout_advantage(advantage, reads={"off_policy"})


@part(reads={"logp", "reference_logp", "off_policy"}, writes={"term"})
def off_policy_divergence(coefficient: NonNegative, divergence: Divergence) -> Transform:
    """Adds c · mean of a divergence over the tokens that another policy wrote; 0 without any.

    Args:
      coefficient: weight of the divergence (c).
      divergence: `forward_kl_generator`, `jensen_shannon_generator` or `alpha_generator(0.2)`.
    Metrics: off_policy_divergence/<divergence> (mean over the tokens).
    """

    name = divergence.name if isinstance(divergence, Function) else divergence.__name__

    def apply(signals, context, state):
        rollouts = context.rollouts
        written = rollouts.mask & rollouts.records["off_policy"][:, None]
        values = divergence(context.stats.logp, rollouts.reference_logp, context.old_logp)
        mean = masked_mean(values, written)
        signals = replace(signals, term=signals.term + coefficient * mean)
        return signals, state, {f"off_policy_divergence/{name}": mean}

    return apply


Values = Float[Array, "..."]


def forward_kl_generator(logp: Values, reference_logp: Values, old_logp: Values) -> Values:
    """min(u - log u - 1, 10), of KL(π_ref ‖ π): grows like -log u where the policy loses mass."""
    log_u = _clamped(logp - reference_logp)
    value = jnp.expm1(log_u) - log_u
    return jnp.where(value <= 10, value, 10)


def jensen_shannon_generator(logp: Values, reference_logp: Values, old_logp: Values) -> Values:
    """u log u - (u + 1) log((u + 1) / 2), of twice the JS divergence.

    It saturates at log 2 for u → 0, so lost mass is not recovered.
    """
    log_u = _clamped(logp - reference_logp)
    u = jnp.exp(log_u)
    return u * log_u - (u + 1) * (jnp.logaddexp(log_u, 0) - jnp.log(jnp.asarray(2, u.dtype)))


@part
def alpha_generator(alpha: OpenUnit) -> Function:
    """(u^(1 - α) - (1 - α) u - α) / (α (α - 1)): forward KL for α → 1, reverse KL for α → 0."""

    def divergence(logp, reference_logp, old_logp):
        log_u = _clamped(logp - reference_logp)
        power, linear = jnp.exp((1 - alpha) * log_u), (1 - alpha) * jnp.exp(log_u)
        return (power - linear - alpha) / (alpha * (alpha - 1))

    return divergence


def _clamped(log_ratio):
    inside = jnp.abs(log_ratio) <= 20
    return jnp.where(inside, log_ratio, jax.lax.stop_gradient(jnp.clip(log_ratio, -20, 20)))


@arguments_of(off_policy_divergence, coefficient=0.01, divergence=forward_kl_generator)
def dph_rl(
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    dual_clip: DualClip = 3.0,
    epsilon: Epsilon = 1e-6,
    rated: Count = 1024,
    rating_samples: Count = 8,
    fraction: Bound = 0.25,
    **base: Any,
) -> Recipe:
    """Applies clip-higher to the policy's own rows and a divergence to rehearsed ones.

    Args:
      rated: number of prompts that the base policy answers before training; in the paper all.
      rating_samples: responses to each, all of which must be correct to set the prompt aside.
      fraction: rehearsed rows of a batch, as a fraction of its new rows.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low,
            clip_high,
            advantage=on_policy_normalized(epsilon),
            transforms=[drop_off_policy()],
            dual_clip=dual_clip,
            regularizers=[off_policy_divergence(**base)],
        ),
        experience=experience(
            [shuffled_epochs(), set_solved_aside(rated, rating_samples)],
            stages=[rehearse(fraction, capacity=rated)],
        ),
    )


METHOD = Method(
    dph_rl,
    changes="mask, regularizer, curriculum, guidance",
    # None of the 1,024 rated prompts had eight correct samples of the base.
    shown=Shown("brackets", "experience/rehearsed", hyperparameters={"rating_samples": 2}),
)
