"""EPO: an entropy bonus for agents, with a penalty for entropies unlike those of the past.

"EPO: Entropy-regularized Policy Optimization for LLM Agents Reinforcement Learning",
https://github.com/WujiangXu/EPO

    loss = Σ PPO clip with dual clip / Σ n_i - λ [mean H - β w mean P]
    P_t  = 0 if κ_l H̄_s < H_t < κ_r H̄_s, else a;   w falls from 1 to 0.04 over training

H̄_s is the mean over past updates of the mean entropy at step s of an episode; a row is one step, a
turn of the policy behind all that was said before, and has the reward of its episode.
P is a comparison and has no gradient: as coded, EPO trains like an entropy bonus of λ, and this
recipe follows the code. `hinge=True` is ours: P is a times the distance to the band and acts on the
policy, against the bonus too where β w a is above 1. `per_rollout=True` compares the mean entropy
of the row (their code averages it over pads, we over tokens). The penalty waits for rows in the
second half of an episode. Past means and w move with every update, theirs once per batch and per
epoch. κ is 0.8 / 1.2 in the config, 0.5 / 1.5 in the scripts and 0 / 2 in the
README; a is 0.05 for ScienceWorld. Their weight w stands behind a switch, here it always acts.
"""

from collections.abc import Sequence

from rlvr_jax.experience import experience, turn_rows
from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.arguments import check_count
from rlvr_jax.objectives.regularizers.entropy_band import banded_entropy_bonus
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.tools import named_toolbox
from rlvr_jax.types import Method, Recipe


def epo(
    entropy_coefficient: float = 0.001,
    smooth_coefficient: float = 1.0,
    band_low: float = 0.8,
    band_high: float = 1.2,
    penalty: float = 0.1,
    per_rollout: bool = False,
    hinge: bool = False,
    max_steps: int = 50,
    max_epochs: int = 150,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float = 3.0,
    epsilon: float = 1e-6,
    tools: Sequence[str] | None = None,
    style: str = "json",
    reply_tokens: int = 512,
    describe: bool = True,
) -> Recipe:
    """GRPO on the token mean with a bonus for entropy inside a band of past entropies.

    Args:
      entropy_coefficient: weight of the bracket (λ).
      smooth_coefficient: weight of the penalty within it (β).
      band_low, band_high: edges of the band, relative to the past mean (κ_l, κ_r).
      penalty: outside the band (a); with a hinge per nat of the distance to it.
      per_rollout: compare the mean entropy of a row instead of each token's.
      hinge: whether the penalty grows with the distance and has a gradient (ours).
      max_steps: longest episode, at least 2; 50 is the default of the authors' code. A batch may
        have so many rows for each answer, and updates are compiled for them.
      max_epochs: updates over which w falls: epochs times updates per epoch.
      clip_low, clip_high, dual_clip: trust region.
      epsilon: added to the standard deviation of the rewards of a group's rows.
      tools: that may be called, by name (`named_toolbox`); None: the task has an environment.
      style: how calls are written: "json", "tags" or "fenced".
      reply_tokens: of a reply at most.
      describe: a system message says what tools there are; it needs a chat template.
    """
    check_count(2, "epo", max_steps=max_steps)
    replies = max_steps - 1
    world = named_toolbox(tools, style, most=replies, describe=describe)
    bonus = banded_entropy_bonus(
        entropy_coefficient,
        smooth_coefficient,
        band_low,
        band_high,
        penalty,
        steps=max_steps,
        max_epochs=max_epochs,
        per_rollout=per_rollout,
        hinge=hinge,
    )
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high, dual=dual_clip),
            regularizers=[bonus],
            aggregation=token_mean(),
        ),
        experience=experience(draw=turn_rows(world, limit=replies, reply_tokens=reply_tokens)),
    )


METHOD = Method(
    epo,
    "EPO: Entropy-regularized Policy Optimization for LLM Agents Reinforcement Learning",
    "https://github.com/WujiangXu/EPO",
    changes="sampling, regularizer",
    reports=(
        "Qwen2.5-3B and 7B over PPO and GRPO: up to 152 % on ScienceWorld and 19.8 % on ALFWorld "
        "(abstract)"
    ),
    traps=(
        "without `hinge` the penalty has no gradient: it trains as an entropy bonus and only moves "
        "the loss's curve; the band stands around an all-time mean, which lags behind a falling "
        "entropy"
    ),
)
