"""Soft thinking: the next input is a mixture of embeddings, not that of one token."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from rlvr_jax.objectives import (
    GumbelNoise,
    mixture_weights,
    nucleus_candidates,
    perturbed,
    soft_token_logp,
)
from rlvr_jax.policy import products

BOUNDS = GumbelNoise()


@dataclass(frozen=True)
class SoftThinking:
    """Soft thinking of a row before it samples tokens.

    Fields:
      end: tokens that end the thinking if one has the largest weight of a mixture. This token, or a
        stop token, is fed as itself. Later tokens are sampled as usual.
      candidates: largest number of tokens of a mixture (k).
      top_p: mass of their nucleus.
      temperature: of the mixture (τ).
      noise: bounds of the noise.
    Raises:
      ValueError: no candidate, a top_p outside (0, 1], or a temperature that is not positive.
    """

    end: tuple[int, ...] = ()
    candidates: int = 5
    top_p: float = 0.95
    temperature: float = 0.1
    noise: GumbelNoise = BOUNDS

    def __post_init__(self) -> None:
        checks = {
            "candidates": (self.candidates >= 1, "at least 1"),
            "top_p": (0 < self.top_p <= 1, "in (0, 1]"),
            "temperature": (self.temperature > 0, "positive"),
        }
        for name, (holds, wanted) in checks.items():
            if not holds:
                raise ValueError(
                    f"SoftThinking: {name} must be {wanted}, got {getattr(self, name)}"
                )


class Mixture(NamedTuple):
    """The next mixtures of rows, candidates by falling weight.

    Fields:
      soft: bool [R], that feed a mixture; False where they do not think, or where their most
        weighty token ends it.
      token: int [R], the most weighty one.
      candidate_ids: int [R, k].
      candidate_weight, candidate_noisy_logp: [R, k].
      logp: [R], log-density of the noise where soft.
    """

    soft: Bool[Array, "R"]
    token: Int[Array, "R"]
    candidate_ids: Int[Array, "R k"]
    candidate_weight: Float[Array, "R k"]
    candidate_noisy_logp: Float[Array, "R k"]
    logp: Float[Array, "R"]


def thinks(
    tokens: Int[Array, "R S"], mask: Bool[Array, "R S"], end: tuple[int, ...]
) -> Bool[Array, "R"]:
    """Rows that have not sampled a token that ends their thinking."""
    ends = jnp.isin(tokens, jnp.asarray(end, tokens.dtype)) & mask
    return ~jnp.any(ends, axis=1)


def mixture(
    how: SoftThinking,
    logits: Float[Array, "R V"],
    thinking: Bool[Array, "R"],
    key: Key[Array, "R"],
    position: Int[Array, "R"],
    stop_tokens: Int[Array, "n"],
) -> Mixture:
    """The mixture of each row's next place.

    Args:
      how: settings of the soft tokens.
      logits: that are sampled.
      thinking: of `thinks`.
      key, position: of the rows; apart from the numbers that draw tokens.
      stop_tokens: ids that end a response; a mixture that one of them leads is replaced by it.
    """
    ids, p = nucleus_candidates(logits, how.candidates, how.top_p)

    def gumbel(key, position):
        # 2 apart from the numbers of `decode` and `verify`.
        own = jax.random.fold_in(jax.random.fold_in(key, position), 2)
        return jax.random.gumbel(own, (how.candidates,), jnp.float32)

    noise = jax.vmap(gumbel)(key, position).astype(p.dtype)
    noisy = perturbed(p, noise, how.noise)
    weight = mixture_weights(noisy, how.temperature)
    order = jnp.argsort(-weight, axis=-1, stable=True)
    ids, weight, noisy = (jnp.take_along_axis(x, order, axis=-1) for x in (ids, weight, noisy))
    ids = ids.astype(jnp.int32)
    ends = jnp.isin(ids[:, 0], jnp.concatenate([jnp.asarray(how.end, jnp.int32), stop_tokens]))
    logp = jnp.take_along_axis(jax.nn.log_softmax(logits, axis=-1), ids, axis=-1)
    soft = thinking & ~ends
    shown = soft[:, None]
    return Mixture(
        soft,
        ids[:, 0],
        jnp.where(shown, ids, 0),
        jnp.where(shown, weight, 0),
        jnp.where(shown, noisy, 0),
        soft_token_logp(logp, noisy, how.noise),
    )


def mixture_input(
    embedding: Float[Array, "V D"],
    token: Int[Array, "R"],
    soft: Bool[Array, "R"],
    ids: Int[Array, "R k"],
    weight: Float[Array, "R k"],
) -> Float[Array, "R 1 D"]:
    """Input of rows: the mixture of their last place, or the embedding of its token.

    Args:
      embedding: input embeddings of the vocabulary.
      token: last token of each row.
      soft: rows whose last place is a mixture.
      ids: tokens of the mixture.
      weight: their weights, which sum to 1.
    """
    mixed = products.einsum("rk,rkd->rd", weight.astype(embedding.dtype), embedding[ids])
    return jnp.where(soft[:, None], mixed, embedding[token])[:, None]
