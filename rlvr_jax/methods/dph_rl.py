"""DPH-RL: rehearse what the base policy could already do, by a mass-covering divergence.

"The Choice of Divergence: A Neglected Key to Mitigating Diversity Collapse in Reinforcement
Learning with Verifiable Reward", https://github.com/seamoke/DPH-RL

    own rows:      A_i = (R_i - mean) / (std + 1e-6) among them, PPO clip with dual clip, token mean
    rehearsed rows (`off_policy`), u = π / π_ref:   c · mean over their tokens of f(u)
    forward KL     f(u) = u - log u - 1
    JS             f(u) = u log u - (u + 1) log((u + 1) / 2)
    alpha          f(u) = (u^(1 - α) - (1 - α) u - α) / (α (α - 1))

In the first step, before its update, the base policy answers some prompts; those it solves every
time are put aside, each with one right answer. From then on a chunk of these (256 to 1024 rows)
joins every batch; their log-probs under the base policy are the reference's, which the paper stores
instead. The other prompts are trained on without KL. The loss here is the sum of both; the authors'
code averages over micro-batches of either kind. Coefficients of the README: forward 0.01 to 0.05,
JS 0.05 to 0.2, alpha (0.2) 0.01 to 0.05; the scripts have 0.01 and the forward KL. Their code
clamps log u (±20) and the value (10) for the forward KL; the clamp of log u for the others is ours.
The paper splits prompts by 8 of 8 right answers, the script by 4 of 4. The reverse KL on fresh
rollouts, which the paper compares with, is `kl_penalty` with `k3`; JS by its definition is
`kl_penalty` with `policy_to_mixture` there and `off_policy_divergence(c, reference_to_mixture)` on
the rehearsed rows, with the loss by reward on a random tenth of the micro-batches.
"""

from rlvr_jax.experience import experience, rehearse, set_solved_aside, shuffled_epochs
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.statistics.divergences import Divergence
from rlvr_jax.objectives.statistics.f_divergences import forward_kl_generator
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.origins import (
    drop_off_policy,
    off_policy_divergence,
    on_policy_normalized,
)
from rlvr_jax.types import Method, Recipe


def dph_rl(
    coefficient: float = 0.01,
    divergence: Divergence = forward_kl_generator,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    dual_clip: float = 3.0,
    epsilon: float = 1e-6,
    rated: int = 1024,
    rating_samples: int = 8,
    share: float = 0.25,
) -> Recipe:
    """Clip-higher on the policy's own rows, a divergence from the base policy on rehearsed ones.

    Args:
      coefficient: weight of the divergence (c).
      divergence: `forward_kl_generator`, `jensen_shannon_generator` or `alpha_generator(0.2)`.
      clip_low, clip_high, dual_clip: trust region.
      epsilon: added to the standard deviation of a group's rewards.
      rated: prompts that the base policy answers before training; the paper's are all.
      rating_samples: answers to each, all of which must be right for the prompt to be put aside.
      share: rehearsed rows of a batch, as a share of its own.
    """
    return Recipe(
        objective=objective(
            advantage=on_policy_normalized(epsilon),
            transforms=[drop_off_policy()],
            surrogate=ppo_clip(low=clip_low, high=clip_high, dual=dual_clip),
            regularizers=[off_policy_divergence(coefficient, divergence)],
            aggregation=token_mean(),
        ),
        experience=experience(
            [shuffled_epochs(), set_solved_aside(rated, rating_samples)],
            stages=[rehearse(share, capacity=rated)],
        ),
    )


METHOD = Method(
    dph_rl,
    "The Choice of Divergence: A Neglected Key to Mitigating Diversity Collapse in Reinforcement"
    " Learning with Verifiable Reward",
    "https://github.com/seamoke/DPH-RL",
    changes="mask, regularizer, curriculum, guidance",
    reports=(
        "maths and SQL (Llama-3.1-8B and others): pass@1 and pass@k rise where plain RLVR, and a "
        "reverse KL faster, lose pass@k"
    ),
    traps=(
        "without prompts that the base always solves there is nothing to rehearse, and it is "
        "DAPO's clip; JS saturates at ln 2, so it forgives what the policy has given up"
    ),
)
