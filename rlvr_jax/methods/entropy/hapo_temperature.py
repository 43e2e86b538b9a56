"""HAPO's adaptive temperature: uncertain tokens are sampled a little hotter, certain ones colder.

"From Uniform to Heterogeneous" (HAPO), https://github.com/starriver030515/HAPO

    e    = ln H of a token; c its 0.8 quantile over the last batch, s its root mean square around c
    ĥ    = (e - c) / s, divided by the largest of the last batch above c, by the smallest below it
    T    = 1 + τ clip(ĥ, -1, 1)
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

τ is `strength`. The ratio ρ is that of temperature 1. T differs from 1 by at most 5 %, and nothing
corrects for it. `cap` is ours: each token's loss times min(exp(old_logp - behaviour_logp), C). The
released code has the opposite sign below c, so the most certain tokens are also sampled hotter
(`mirrored`). The default follows the paper. This is one of four parts of HAPO; the others are
`hapo`. The loss is DAPO's, which is our choice.

Left out: the advantage, weights and clip bounds of HAPO, which are `hapo`.
Reports: HAPO as a whole is above DAPO at several sizes. The effect of this part is not reported.
Traps: A single token of almost no entropy stretches the scale, so that other certain tokens hardly
change. The first step has no statistics and samples at 1. Most tokens are sampled colder than 1.
"""

from typing import Annotated, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from rlvr_jax.experience import Draw, experience, plain
from rlvr_jax.objectives import clipped_objective, part, truncate_importance
from rlvr_jax.rollout.temperatures import heated_by_entropy
from rlvr_jax.types import Method, Recipe, Shown
from rlvr_jax.types.hyperparameters import Bound, ClipHigh, ClipLow, Epsilon, Range, Unit

Strength = Annotated[float, Range(0, 1, open_high=True)]


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


@part
def entropy_heated(strength: Strength, pivot: Unit, mirrored: bool = False) -> Draw:
    """Samples tokens hotter where the policy is uncertain, colder where it is certain.

    The temperature is multiplied by 1 + τ ĥ, with ĥ in [-1, 1] on the `entropy_scale` of the last
    trained batch. In the first step it does not change. A batch without tokens leaves the scale.
    The entropies are the sampler's record, those of the policy at the run's temperature.
    Evaluations sample plainly.

    Args:
      strength: largest relative change of the temperature (τ).
      pivot: quantile of the entropies at which the change has sign 0.
      mirrored: whether the sign is that of the released code, see `entropy_position`.
    Reads: entropy, mask. Metrics: entropy_scale/center, entropy_scale/spread (mean and deviation of
      the log entropy, log nats).
    """
    processor = heated_by_entropy(mirrored)

    def init(setting):
        scale = EntropyScale(*map(np.float64, (0, 1, 1, -1)))
        return {"scale": scale, "known": np.bool_(False)}

    def apply(requests, actor, state, turn):
        values = state["scale"]._asdict() | {"strength": strength if state["known"] else 0.0}
        constants = {name: np.float32(x) for name, x in values.items()}
        batch, _, metrics = plain(processor, lambda turn: constants).apply(
            requests, actor, (), turn
        )
        return batch, state, metrics

    def observe(state, turn, seen, learned):
        rollouts = learned.rollouts
        if not rollouts.mask.any():
            return state, {}
        scale = entropy_scale(rollouts.entropy, rollouts.mask, pivot)
        metrics = {
            "entropy_scale/center": float(scale.center),
            "entropy_scale/spread": float(scale.spread),
        }
        return {"scale": scale, "known": np.bool_(True)}, metrics

    return Draw(apply, init, observe)


def entropy_scale(
    entropy: Float[np.ndarray, "B T"], mask: Bool[np.ndarray, "B T"], pivot: float
) -> EntropyScale:
    """The scale of the tokens on the mask, of which there is at least one.

    With e = ln max(H, 1e-8): c is the entry of the sorted e at index round(pivot · (n - 1)),
    s² = max(mean (e - c)², 1e-8), h = (e - c) / s; h⁺ and |h⁻| are at least 1e-8.

    Args:
      entropy: H of the policy, nats.
      pivot: fraction of the tokens below the center, in [0, 1].
    """
    e = np.log(np.maximum(np.asarray(entropy)[np.asarray(mask)].astype(np.float64), 1e-8))
    center = np.sort(e)[round(pivot * (len(e) - 1))]
    spread = np.sqrt(max(np.mean((e - center) ** 2), 1e-8))
    h = (e - center) / spread
    found = (center, spread, max(h.max(), 1e-8), min(h.min(), -1e-8))
    return EntropyScale(*map(np.float64, found))


def hapo_temperature(
    strength: Strength = 0.05,
    pivot: Unit = 0.8,
    mirrored: bool = False,
    cap: Bound | None = None,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Applies a clipped ratio to responses that are sampled at a temperature for each token.

    Args:
      strength: largest relative change of the temperature (τ).
      pivot: quantile of the entropies at which the change has sign 0.
      mirrored: whether the sign is that of the released code.
      cap: largest importance weight of a token (C); None: no weight.
    """
    transforms = [] if cap is None else [truncate_importance(cap)]
    objective = clipped_objective(clip_low, clip_high, epsilon=epsilon, transforms=transforms)
    return Recipe(objective, experience=experience(draw=entropy_heated(strength, pivot, mirrored)))


METHOD = Method(
    hapo_temperature,
    "From Uniform to Heterogeneous: Tailoring Policy Optimization to Every Token's Nature",
    "https://github.com/starriver030515/HAPO",
    changes="sampling",
    shown=Shown("brackets", "experience/entropy_scale/spread"),
)
