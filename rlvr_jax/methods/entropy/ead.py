"""EAD: a temperature that is high at the start of every response, low at its end.

Yang et al. 2025, "Let it Calm", https://arxiv.org/abs/2510.05251

    τ_n  = max(1 + τ_max - exp(n / (20 d_s)), τ_min), d_s = min(d_0 + 5 s, 40000)
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ min(max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)), -3 A where A < 0) / Σ n_i

The n-th token is sampled at τ_n (the first ten at 1); s counts the steps of the run. As s grows,
the temperature falls later within a response. The ratio ρ is that of temperature 1. By default,
nothing corrects for the temperature of sampling, as in the authors' script. Two options do:

- `cap`: the authors' option, each token's loss times min(exp(old_logp - behaviour_logp), C). Their
C was not found; 2 is usual.
- `tempered`: ours, ρ = π^τ / π_old^τ, its logarithm clamped to ±20. It trains the tempered policy,
which sampled.

The README writes exp(n / d) without the factor 20, as does the trainer's own correction. The
sampler has the factor. This recipe has one schedule.

Reports: small Qwen2.5-Math and Llama models: pass@16 and worst@16 above any fixed temperature,
under GRPO, DAPO and Clip-Cov. Entropy falls later.
Traps: With short responses all tokens are hot, unless `decay_scale` is smaller; see the metric
`cooled_fraction`. Temperatures fall to 0.1 without a correction. After about 37 steps, a response
of 3072 tokens ends before the lowest temperature.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience import Stage, experience, plain
from rlvr_jax.objectives import clipped_objective, truncate_importance
from rlvr_jax.objectives.statistics.ratios import clamped_token_ratio, token_ratio
from rlvr_jax.rollout import annealed
from rlvr_jax.rollout.temperatures import annealed_temperature
from rlvr_jax.types import Function, Method, Recipe, Shown, arguments_of, part
from rlvr_jax.types.hyperparameters import (
    Bound,
    DualClip,
    NonNegative,
    NonNegativeInt,
    Positive,
    Temperature,
)


@part
def growing_horizon(start: Positive, growth: NonNegative, most: Positive) -> Function:
    """The horizon of `annealed` grows with the steps, in tokens: min(start + growth · s, most)."""

    def constants(turn):
        return {"horizon": np.float32(min(start + growth * turn.step, most))}

    return constants


@part
def count_cooled(
    hottest: Temperature, coldest: Temperature, untouched: NonNegativeInt, horizon: Function
) -> Stage:
    """Counts the tokens that were sampled at a temperature below 1. The batch does not change.

    Args:
      hottest, coldest, untouched: as for `annealed`.
      horizon: (turn) -> constants of the processor, such as `growing_horizon`.
    Metrics: cooled_fraction (fraction of the tokens), last_temperature (mean temperature of the
      last token of a response).
    """

    def apply(batch, actor, state, turn):
        mask, length = batch.rollouts.mask, batch.rollouts.length
        place = jnp.arange(mask.shape[1])
        constants = horizon(turn)
        temperature = np.asarray(
            annealed_temperature(place, constants["horizon"], hottest, coldest, untouched)
        )
        metrics = {
            "cooled_fraction": float((mask & (temperature < 1)).sum() / max(mask.sum(), 1)),
            "last_temperature": float(temperature[np.maximum(length - 1, 0)].mean()),
        }
        return batch, state, metrics

    return apply


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon", clip_high=0.28)
def ead(
    hottest: Temperature = 1.2,
    coldest: Temperature = 0.1,
    decay_start: Positive = 25.0,
    decay_growth: NonNegative = 5.0,
    decay_most: Positive = 40000.0,
    decay_scale: Positive = 20.0,
    untouched: NonNegativeInt = 10,
    cap: Bound | None = None,
    tempered: bool = False,
    dual: DualClip = 3.0,
    **clip: Any,
) -> Recipe:
    """Applies GRPO's clipped ratio to responses sampled with a falling temperature.

    Args:
      hottest, coldest: τ_max and τ_min.
      decay_start, decay_growth, decay_most: d_0, its increase per step, and the largest d_s.
      decay_scale: tokens of the horizon for each unit of d (20).
      untouched: number of first tokens that are sampled at temperature 1.
      cap: largest importance weight of a token (C); None: no weight.
      tempered: whether log-probs are scored at τ_n, not at 1.
    """
    horizon = growing_horizon(*(decay_scale * d for d in (decay_start, decay_growth, decay_most)))
    return Recipe(
        objective=clipped_objective(
            transforms=[] if cap is None else [truncate_importance(cap)],
            ratio=clamped_token_ratio if tempered else token_ratio,
            dual_clip=dual,
            **clip,
        ),
        experience=experience(
            draw=plain(
                processor=annealed(hottest, coldest, untouched),
                constants=horizon,
                scored_as_sampled=tempered,
            ),
            stages=[count_cooled(hottest, coldest, untouched, horizon)],
        ),
    )


METHOD = Method(
    ead,
    "Let it Calm: Exploratory Annealed Decoding for Verifiable Reinforcement Learning",
    "https://arxiv.org/abs/2510.05251",
    changes="sampling",
    # Responses have 24 tokens, those of the paper 3072: the horizon is a tenth.
    shown=Shown(
        "brackets",
        "experience/cooled_fraction",
        hyperparameters={"decay_scale": 2, "decay_growth": 0, "untouched": 2},
    ),
)
