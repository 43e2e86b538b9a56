"""HAPO's adaptive temperature: uncertain tokens are drawn a little hotter, sure ones colder.

"From Uniform to Heterogeneous" (HAPO), https://github.com/starriver030515/HAPO

    e    = ln H of a token; c its 0.8 quantile over the last batch, s its root mean square around c
    ĥ    = (e - c) / s, divided by the largest of the last batch above c, by the smallest below it
    T    = 1 + τ clip(ĥ, -1, 1)
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

The ratio ρ is that of temperature 1. T differs from it by 5 % at most and nothing repairs it;
`cap` is ours: each token's loss times min(exp(old_logp - behaviour_logp), C). The released code
has a sign the other way round, by which the surest tokens are drawn hotter, too (`mirrored`); the
default is what the paper says. With it most tokens are drawn colder than 1. This is one of four
parts of HAPO, the others are `hapo`; the loss here is DAPO's, our choice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlvr_jax.experience import experience
from rlvr_jax.experience.draws.plain import plain
from rlvr_jax.experience.parts import Draw
from rlvr_jax.objectives import (
    group_normalized,
    truncate_importance,
)
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.rollout.temperatures import heated_by_entropy
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, Unit
from rlvr_jax.types.parts import part

LEAST_ENTROPY = 1e-8


LEAST_VARIANCE = 1e-8


LEAST_EXTREME = 1e-8


class EntropyScale(NamedTuple):
    """The logarithms of a batch's entropies; float64 scalars.

    Fields:
      center: c, their quantile.
      spread: s, root of the mean square distance from it.
      highest, lowest: largest distance above and below, in units of s (h⁺ > 0 and h⁻ < 0).
    """

    center: np.ndarray
    spread: np.ndarray
    highest: np.ndarray
    lowest: np.ndarray


def entropy_scale(entropy: np.ndarray, mask: np.ndarray, pivot: float) -> EntropyScale:
    """The scale of the tokens on the mask, of which there is at least one.

    With e = ln max(H, 1e-8): c is the entry of the sorted e at index round(pivot · (n - 1)),
    s² = max(mean (e - c)², 1e-8), h = (e - c) / s.

    Args:
      entropy: H of the policy, nats, [B, T].
      mask: bool [B, T].
      pivot: share of the tokens that lie below the center, in [0, 1].
    """
    e = np.log(np.maximum(np.asarray(entropy)[np.asarray(mask)].astype(np.float64), LEAST_ENTROPY))
    center = np.sort(e)[round(pivot * (len(e) - 1))]
    spread = np.sqrt(max(np.mean((e - center) ** 2), LEAST_VARIANCE))
    h = (e - center) / spread
    found = (center, spread, max(h.max(), LEAST_EXTREME), min(h.min(), -LEAST_EXTREME))
    return EntropyScale(*map(np.float64, found))


@part
def entropy_heated(strength: Unit, pivot: Unit, mirrored: bool = False) -> Draw:
    """Draws tokens hotter where the policy is uncertain, colder where it is sure.

    The temperature is multiplied by 1 + τ ĥ, with ĥ in [-1, 1] on the `entropy_scale` of the batch
    that was learned from last; until there is one it stays. A batch without tokens leaves the
    scale as it is. The entropies are the sampler's record, those of the policy at the run's
    temperature. Evaluations draw plainly.

    Args:
      strength: τ, largest change of the temperature as a share of it, in [0, 1).
      pivot: quantile of the entropies whose tokens keep their temperature, in [0, 1].
      mirrored: tokens below the pivot are drawn hotter as well, see `entropy_position`.
    Reads: entropy, mask. Metrics: entropy_scale/center (log nats) and /spread.
    Raises:
      ValueError: a strength or a pivot outside its range.
    """
    if strength == 1:
        raise ValueError(f"entropy_heated: strength must be below 1, got {strength}")
    processor = heated_by_entropy(mirrored)

    def init(setting):
        del setting
        scale = EntropyScale(*map(np.float64, (0, 1, 1, -1)))
        return {"scale": scale, "known": np.bool_(False)}

    def apply(asks, actor, state, turn):
        told = state["scale"]._asdict() | {"strength": strength if state["known"] else 0.0}
        constants = {name: np.float32(x) for name, x in told.items()}
        batch, _, metrics = plain(processor, lambda turn: constants).apply(asks, actor, (), turn)
        return batch, state, metrics

    def observe(state, turn, seen, learned):
        del turn, seen
        rollouts = learned.rollouts
        if not rollouts.mask.any():
            return state, {}
        scale = entropy_scale(rollouts.entropy, rollouts.mask, pivot)
        told = {"center": float(scale.center), "spread": float(scale.spread)}
        metrics = {f"entropy_scale/{name}": value for name, value in told.items()}
        return {"scale": scale, "known": np.bool_(True)}, metrics

    return Draw(apply, init, observe)


def hapo_temperature(
    strength: float = 0.05,
    pivot: float = 0.8,
    mirrored: bool = False,
    cap: float | None = None,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """A clipped ratio on the token mean, on responses drawn at a temperature for each token.

    Args:
      strength: largest change of the temperature (τ).
      pivot: quantile of the entropies at which it changes sign.
      mirrored: the sign of the released code.
      cap: largest importance weight of a token (C); None: no weight.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            transforms=[] if cap is None else [truncate_importance(cap)],
        ),
        experience=experience(draw=entropy_heated(strength, pivot, mirrored)),
    )


METHOD = Method(
    hapo_temperature,
    "From Uniform to Heterogeneous: Tailoring Policy Optimization to Every Token's Nature",
    "https://github.com/starriver030515/HAPO",
    changes="sampling",
    left_out="its advantage, weights and clip bounds, which are hapo",
    reports="as a part of HAPO, which is above DAPO at several sizes; its own share is not told",
    traps=(
        "a single token of almost no entropy stretches the scale, so that other sure tokens hardly "
        "change; the first step has no statistics and draws at 1; most tokens are drawn colder"
    ),
)
