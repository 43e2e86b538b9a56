"""What those earn who write problems: by how well the current policy solves them.

Rates are shares of right answers, in [0, 1].
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

__all__ = [
    "adversarial",
    "composed_proposer_reward",
    "composed_solver_reward",
    "learnability",
    "parabola",
    "within_band",
]

Rate = Float[Array, "..."]
ROUNDING = 1e-9
"""Shares at a bound count as within it: 0.3 · 10 is not 3."""


def learnability(rate: Rate) -> Rate:
    """1 - s where s is above 0, else 0: hard and not hopeless.

    Source: Absolute Zero, https://github.com/LeapLabTHU/Absolute-Zero-Reasoner.
    """
    return jnp.where(rate > 0, 1 - rate, 0)


def parabola(rate: Rate, left: float = 0.0, right: float = 1.0) -> Rate:
    """4 (l + s) (r - s) where s is strictly between 0 and 1, else 0.

    Source: SSP, https://github.com/Alibaba-Quark/SSP.
    """
    return jnp.where((rate > 0) & (rate < 1), 4 * (left + rate) * (right - rate), 0)


def within_band(rate: Rate, low: float, high: float) -> Bool[Array, "..."]:
    """Whether a rate is in [low, high], both ends included, whatever rounding does.

    Source: SvS, https://github.com/MasterVito/SvS.
    """
    return (rate >= low - ROUNDING) & (rate <= high + ROUNDING)


def adversarial(rate: Rate, altered: Rate) -> Rate:
    """(1 - p) (1 - m), 0 where nothing is solved.

    Args:
      rate: p.
      altered: m, share of the answers that are to another statement than the given one.
    Source: GAR.
    """
    return jnp.where(rate > 0, (1 - rate) * (1 - altered), 0)


def composed_solver_reward(
    right: Bool[Array, "..."],
    well_formed: Bool[Array, "..."],
    wrong: float = -0.5,
    malformed: float = -1.0,
) -> Rate:
    """1 for a right answer, `wrong` for another; `malformed` for ill-formed ones, right or not."""
    return jnp.where(well_formed, jnp.where(right, 1.0, wrong), malformed)


def composed_proposer_reward(
    learnable: Rate,
    well_formed: Bool[Array, "..."],
    worthless: float = -0.5,
    malformed: float = -1.0,
) -> Rate:
    """The learnability where it is above 0, `worthless` where it is not; `malformed` for what is
    no problem."""
    value = jnp.where(learnable > 0, learnable, worthless)
    return jnp.where(well_formed, value, malformed)
