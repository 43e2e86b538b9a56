"""Soft prefixes that a latent chooses: a small variational autoencoder of mean embeddings.

    μ, log σ² = encode(x)       linear, x the mean of the embeddings of a question and its answer
    prefix    = decode(z)       one hidden layer, tanh; P vectors of the model's width
    loss      = ‖x - mean_P prefix‖² + β_KL KL(N(μ, σ²) ‖ N(0, I))

Source: "Reasoning Palette", from its abstract: sizes, layers and β_KL are ours.
"""

from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from rlvr_jax.policy import products


class PrefixVAE(NamedTuple):
    """Weights.

    Fields:
      mean, log_variance: [D + 1, Z], the last row is a bias.
      hidden: [Z + 1, H].
      output: [H + 1, P, D].
    """

    mean: Float[Array, "I Z"]
    log_variance: Float[Array, "I Z"]
    hidden: Float[Array, "J H"]
    output: Float[Array, "K P D"]


def new_prefix_vae(
    key: jax.Array, width: int, latent: int, prefix: int, hidden: int = 64, scale: float = 1.0
) -> PrefixVAE:
    """Random weights; decoded vectors have entries of about `scale`.

    Args:
      key: of the random weights.
      width: D of the model's embeddings.
      latent: width of the latent code (Z).
      prefix: number of prefix vectors (P).
      hidden: width of the hidden layers (H).
      scale: size of the decoded entries.
    """
    keys = jax.random.split(key, 4)
    sizes = (width, latent), (width, latent), (latent, hidden)
    first = [
        jax.random.normal(k, (rows + 1, columns), jnp.float32) / jnp.sqrt(rows)
        for k, (rows, columns) in zip(keys, sizes, strict=False)
    ]
    last = jax.random.normal(keys[3], (hidden + 1, prefix, width), jnp.float32)
    return PrefixVAE(*first, output=scale * last / jnp.sqrt(hidden))


def _linear(x: Array, weights: Array) -> Array:
    flat = weights.reshape(len(weights), -1)
    moved = products.matmul(x, flat[:-1]) + flat[-1][None]
    return moved.reshape(len(x), *weights.shape[1:])


def encode_latent(
    vae: PrefixVAE, mean_embedding: Float[Array, "N D"]
) -> tuple[Float[Array, "N Z"], Float[Array, "N Z"]]:
    """μ and log σ²."""
    return _linear(mean_embedding, vae.mean), _linear(mean_embedding, vae.log_variance)


def decode_prefix(vae: PrefixVAE, latent: Float[Array, "N Z"]) -> Float[Array, "N P D"]:
    """The vectors before the prompt."""
    return _linear(jnp.tanh(_linear(latent, vae.hidden)), vae.output)


def gaussian_kl(mean: Float[Array, "N Z"], log_variance: Float[Array, "N Z"]) -> Float[Array, "N"]:
    """KL(N(μ, σ²) ‖ N(0, I)) = ½ Σ (μ² + σ² - ln σ² - 1)."""
    terms = mean**2 + jnp.exp(log_variance) - log_variance - 1
    return jnp.sum(terms, axis=-1) / 2


def vae_loss(
    vae: PrefixVAE,
    mean_embedding: Float[Array, "N D"],
    key: jax.Array,
    kl_coefficient: float = 1e-3,
) -> Float[Array, ""]:
    """The mean over the texts of reconstruction and KL, with one z of each from its encoder.

    Args:
      vae: weights of encoder and decoder.
      mean_embedding: mean embedding of each of N texts.
      key: of the random z.
      kl_coefficient: weight of the KL term.
    """
    mean, log_variance = encode_latent(vae, mean_embedding)
    noise = jax.random.normal(key, mean.shape, mean.dtype)
    prefix = decode_prefix(vae, mean + jnp.exp(log_variance / 2) * noise)
    missed = jnp.sum((mean_embedding - jnp.mean(prefix, axis=1)) ** 2, axis=-1)
    return jnp.mean(missed + kl_coefficient * gaussian_kl(mean, log_variance))


def fit_prefix_vae(
    vae: PrefixVAE,
    mean_embedding: Float[Array, "N D"],
    key: jax.Array,
    *,
    steps: int = 1000,
    learning_rate: float = 1e-2,
    kl_coefficient: float = 1e-3,
) -> tuple[PrefixVAE, float]:
    """Fits the autoencoder to texts by Adam, over all texts in each step.

    Args:
      vae: weights of encoder and decoder.
      mean_embedding: mean embedding of each of N texts.
      key: of the random z.
      steps: number of updates.
      learning_rate: of Adam.
      kl_coefficient: weight of the KL term.
    Returns:
      The weights, and the loss of the last step.
    """
    optimizer = optax.adam(learning_rate)

    def step(carry, key):
        vae, state = carry
        loss, slope = jax.value_and_grad(vae_loss)(vae, mean_embedding, key, kl_coefficient)
        with jax.numpy_dtype_promotion("standard"):  # Adam raises its decay to an integer power
            changes, state = optimizer.update(slope, state)
        return (optax.apply_updates(vae, changes), state), loss

    @jax.jit
    def fit(vae):
        keys = jax.random.split(key, steps)
        return jax.lax.scan(step, (vae, optimizer.init(vae)), keys)

    (vae, _), losses = fit(vae)
    return vae, float(losses[-1])


def save_prefix_vae(path: str | Path, vae: PrefixVAE) -> None:
    """Writes the weights to a file of numpy, `.npz`."""
    np.savez(path, **{name: np.asarray(value) for name, value in vae._asdict().items()})


def load_prefix_vae(path: str | Path) -> PrefixVAE:
    """Reads the weights that `save_prefix_vae` wrote.

    Raises:
      ValueError: no such file, or one with other arrays.
    """
    try:
        with np.load(path) as arrays:
            return PrefixVAE(*(arrays[name] for name in PrefixVAE._fields))
    except (OSError, KeyError, ValueError) as error:
        raise ValueError(
            f"load_prefix_vae: path must be a file of save_prefix_vae, got {str(path)!r}"
            f" ({type(error).__name__}). `python -m experiments.palette` makes one"
        ) from error
