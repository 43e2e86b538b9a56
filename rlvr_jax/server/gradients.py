"""Compiled functions of a model in training: token statistics, losses, gradients, steps."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import optax

from rlvr_jax.policy import Model, Params, hidden_states
from rlvr_jax.policy.scoring import score_hidden
from rlvr_jax.server.datums import Batch
from rlvr_jax.server.losses import LOSSES
from rlvr_jax.server.models import whole_params
from rlvr_jax.types import Rollouts, TokenStats


@dataclass(frozen=True)
class AdamParams:
    """Numbers of one AdamW step; their defaults are those of the protocol.

    Fields:
      grad_clip_norm: largest norm of the gradient; 0: any.
    """

    learning_rate: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-12
    weight_decay: float = 0.0
    grad_clip_norm: float = 0.0


def target_statistics(model: Model, params: Params, batch: Batch) -> TokenStats:
    """Log-prob and entropy [B, N] of `targets[:, n]` after `tokens[:, : n + 1]`, 0 on padding."""
    rows = len(batch.tokens)
    fed = Rollouts.of_responses(
        # The first token is the prompt of the others, and the last response token is never read.
        jnp.pad(batch.tokens[:, 1:], ((0, 0), (0, 1))),
        batch.present,
        jnp.zeros(rows, jnp.float32),
        jnp.arange(rows),
        prompt_tokens=batch.tokens[:, :1],
        prompt_length=jnp.ones(rows, jnp.int32),
    )
    hidden = hidden_states(model, params, fed)
    unembedding = model.unembedding(params).astype(hidden.dtype)
    scored = fed.replace(tokens=batch.targets)
    return score_hidden(model, hidden, unembedding, scored, {"logp", "entropy"})


@partial(jax.jit, static_argnames=("model", "adapted"))
def statistics(model, base, trained, batch, *, adapted):
    """Log-probs and entropies of the targets, [B, T].

    Args:
      model: the policy.
      base: weights under the adapters; empty without adapters.
      trained: adapters if `adapted`, else all weights.
      batch: datums, padded to one length.
      adapted: whether `trained` are adapters.
    """
    stats = target_statistics(model, whole_params(base, trained, adapted), batch)
    return stats.logp, stats.entropy


def _loss(model, base, trained, batch, numbers, *, loss, adapted):
    stats = target_statistics(model, whole_params(base, trained, adapted), batch)
    losses = LOSSES[loss].token_loss(stats.logp, batch.inputs, numbers)
    total = jnp.sum(jnp.where(batch.present, losses, 0))
    return total, (stats.logp, stats.entropy)


@partial(jax.jit, static_argnames=("model", "loss", "adapted"))
def loss_of(model, base, trained, batch, numbers, *, loss, adapted):
    """A loss of the protocol, summed over tokens, with log-probs and entropies [B, T].

    Args:
      model: the policy.
      base: weights under the adapters; empty without adapters.
      trained: adapters if `adapted`, else all weights.
      batch: datums, padded to one length.
      numbers: values of `loss_fn_config` by name.
      loss: a name of `LOSSES`.
      adapted: whether `trained` are adapters.
    """
    return _loss(model, base, trained, batch, numbers, loss=loss, adapted=adapted)


@partial(jax.jit, static_argnames=("model", "loss", "adapted"))
def gradient_of(model, base, trained, batch, numbers, *, loss, adapted):
    """The loss of `loss_of`, log-probs and entropies, and the gradient of the trained weights.

    Args:
      model, base, trained, batch, numbers, loss, adapted: as for `loss_of`.
    """
    own = partial(_loss, model, base, batch=batch, numbers=numbers, loss=loss, adapted=adapted)
    (total, stats), gradient = jax.value_and_grad(own, has_aux=True)(trained)
    return total, stats, gradient


@jax.jit
def added(one, other):
    """The sum of two gradients."""
    return jax.tree.map(jnp.add, one, other)


@jax.jit
def adamw(trained, gradient, moments, numbers):
    """AdamW as in torch.optim, after `clip_grad_norm_` if a norm above 0 is given.

    Args:
      trained: adapters, or all weights.
      gradient: summed over the requests of the step.
      moments: state of `optax.scale_by_adam`.
      numbers: fields of `AdamParams` by name.
    """
    norm, most = optax.tree.norm(gradient), numbers["grad_clip_norm"]
    factor = jnp.where(most > 0, jnp.minimum(1.0, most / (norm + 1e-6)), 1.0)
    gradient = jax.tree.map(lambda g: factor * g, gradient)
    adam = optax.scale_by_adam(numbers["beta1"], numbers["beta2"], numbers["eps"])
    # optax mixes dtypes, which a caller who is strict about promotion would be refused.
    with jax.numpy_dtype_promotion("standard"):
        steps, moments = adam.update(gradient, moments)
    rate, decay = numbers["learning_rate"], numbers["weight_decay"]
    trained = jax.tree.map(lambda p, u: p * (1 - rate * decay) - rate * u, trained, steps)
    return trained, moments, norm
