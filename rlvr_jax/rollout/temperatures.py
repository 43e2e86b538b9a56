"""Temperatures that move while a response is written.

They multiply the temperature that a row has already and are recorded with it, as
the record `sampled_temperature`; log-probs are still scored at `Rollouts.temperature`.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.rollout.processors import Processor
from rlvr_jax.types.hyperparameters import NonNegativeInt, Positive
from rlvr_jax.types.parts import part

_LEAST_ENTROPY = 1e-6
"""Nats, below which all entropies of a decode step count as one."""


def annealed_temperature(
    position: Int[Array, "..."],
    horizon: Float[Array, ""],
    hottest: float,
    coldest: float,
    untouched: int,
) -> Float[Array, "..."]:
    """τ_n = max(1 + τ_max - exp(n / L), τ_min), and 1 for the first tokens.

    Args:
      position: n, response tokens that a row has already.
      horizon: L, tokens.
      hottest, coldest: τ_max, which the formula has at n = 0, and τ_min.
      untouched: so many first tokens have temperature 1.
    """
    falling = 1 + hottest - jnp.exp(position.astype(horizon.dtype) / horizon)
    return jnp.where(position < untouched, 1, jnp.maximum(falling, coldest))


@part
def annealed(hottest: Positive, coldest: Positive, untouched: NonNegativeInt = 0) -> Processor:
    """Divides logits by the `annealed_temperature`, hot at the start and cold at the end.

    The horizon is read from `TokenContext.constants["horizon"]` (tokens): it may move from step to
    step without another compilation.

    Args:
      hottest: τ_max.
      coldest: τ_min, at most τ_max.
      untouched: tokens before it begins, which have temperature 1.
    Raises:
      ValueError: a temperature that is not positive, the colder one above the hotter one, or a
        negative number of tokens.
    Source: Yang et al. 2025, https://arxiv.org/abs/2510.05251.
    """
    if coldest > hottest:
        raise ValueError(f"annealed: coldest must be at most hottest {hottest}, got {coldest}")

    def temperature(carry, context):
        del carry
        horizon = context.constants["horizon"]
        return annealed_temperature(context.position, horizon, hottest, coldest, untouched)

    def apply(logits, carry, context):
        return logits / temperature(carry, context)[:, None].astype(logits.dtype), carry

    return Processor(lambda rows: None, apply, temperature)


def entropy_position(
    entropy: Float[Array, "..."],
    center: Float[Array, ""],
    spread: Float[Array, ""],
    highest: Float[Array, ""],
    lowest: Float[Array, ""],
    mirrored: bool = False,
) -> Float[Array, "..."]:
    """Position of an entropy between the extremes of a batch, in [-1, 1]; 0 at its center.

    h = (ln max(H, 1e-6) - c) / (s + 1e-6), and ĥ = clip(h / h⁺ where h > 0, else -h / h⁻, -1, 1).

    Args:
      entropy: H, nats.
      center, spread, highest, lowest: c, s, h⁺ > 0 and h⁻ < 0, see `entropy_scale`.
      mirrored: h / h⁻ below the center, which is in [0, 1] as above it.
    """
    h = (jnp.log(jnp.maximum(entropy, _LEAST_ENTROPY)) - center) / (spread + 1e-6)
    below = h / lowest if mirrored else -h / lowest
    return jnp.clip(jnp.where(h > 0, h / highest, below), -1, 1)


@part
def heated_by_entropy(mirrored: bool = False) -> Processor:
    """Divides logits by 1 + τ ĥ, ĥ the `entropy_position` of the policy at the token.

    Tokens with an entropy above the center of a batch have a higher temperature, other tokens a
    lower one. `TokenContext.constants` has the scalars center, spread, highest and lowest of
    `entropy_position`, and the strength (τ). A new batch needs no compilation.

    Args:
      mirrored: see `entropy_position`; both sides are then sampled hotter.
    Source: Liu et al., HAPO, https://github.com/starriver030515/HAPO.
    """

    def apply(logits, carry, context):
        del carry
        logp = jax.nn.log_softmax(logits)
        entropy = -jnp.sum(jnp.where(logp > -jnp.inf, jnp.exp(logp) * logp, 0), axis=-1)
        known = {name: x.astype(logits.dtype) for name, x in context.constants.items()}
        strength = known.pop("strength")
        position = entropy_position(entropy, **known, mirrored=mirrored)
        heat = 1 + strength * position
        return logits / heat[:, None], heat.astype(jnp.float32)

    def temperature(carry, context):
        del context
        return carry

    return Processor(lambda rows: jnp.ones(rows, jnp.float32), apply, temperature)
