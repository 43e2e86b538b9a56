"""Token statistics as one would write them on a blackboard: all logits at once, autodiff backward.

It holds [N, V] arrays and is the yardstick of the other forms, so it shares no formula with them.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.kernels.plan import OtherPolicy, Plan, Policy, Statistics, Tokens


def statistics(plan: Plan, policy: Policy, other: OtherPolicy | None, tokens: Tokens) -> Statistics:
    """Computes the statistics `plan.needs` from full arrays of logits in `plan.dtype`."""
    logits = _logits(plan, policy.hidden, policy.unembedding, policy.bias, tokens)
    logp = jax.nn.log_softmax(logits, axis=-1)
    p = jnp.exp(logp)
    finite_logp = jnp.where(p == 0, 0, logp)  # lim p log p = 0, also in the gradient
    present = logits != -jnp.inf
    size = jnp.sum(present, axis=-1).astype(plan.dtype)
    raw_entropy = -jnp.sum(p * finite_logp, axis=-1)
    largest_p = jnp.max(p, axis=-1, keepdims=True)
    constant = jax.lax.stop_gradient

    def log_other():
        bias = None if policy.bias is None else constant(policy.bias)
        k = _logits(plan, other.hidden, other.unembedding, bias, tokens)
        return jnp.where(present, jax.nn.log_softmax(k, axis=-1), 0)

    def against(first, second):
        """KL(first‖second) of log-probs, over the entries in the vocabulary."""
        return jnp.sum(jnp.where(present, jnp.exp(first) * (first - second), 0), axis=-1)

    def js():
        mine = jnp.where(present, logp, 0)
        mixture = jnp.logaddexp(mine, log_other()) - jnp.log(jnp.asarray(2, plan.dtype))
        return (against(mine, mixture) + against(log_other(), mixture)) / 2

    def varentropy():
        surprise = jnp.where(p == 0, 0, logp + raw_entropy[:, None])
        return jnp.sum(p * surprise * surprise, axis=-1)

    def nucleus_entropy():
        descending = -jnp.sort(-constant(p), axis=-1)
        reached = jnp.cumsum(descending, axis=-1) >= plan.top_p
        # Rounding can leave a cumulative sum below a top_p of 1: then all are inside.
        last = jnp.where(jnp.any(reached, axis=-1), jnp.argmax(reached, axis=-1), p.shape[-1] - 1)
        threshold = jnp.take_along_axis(descending, last[:, None], axis=-1)
        inside = present & ((p >= threshold) if plan.include_crossing else (p > threshold))
        filled = jnp.any(inside, axis=-1)
        own = jax.nn.log_softmax(jnp.where(inside | ~filled[:, None], logits, -jnp.inf), axis=-1)
        own = jnp.where(inside, own, 0)
        entropy = -jnp.sum(jnp.where(inside, jnp.exp(own), 0) * own, axis=-1)
        entropy = jnp.where(filled, entropy, 0 * raw_entropy)  # NaN stays NaN
        return entropy if tokens.nucleus is None else jnp.where(tokens.nucleus, entropy, 0)

    formulas = {
        "logp": lambda: _of_target(logp, tokens.targets),
        "logsumexp": lambda: jax.nn.logsumexp(logits, axis=-1),
        # The bounds undo rounding; they must not cut the gradient.
        "entropy": lambda: (
            raw_entropy + constant(jnp.clip(raw_entropy, 0, jnp.log(size)) - raw_entropy)
        ),
        "p_squared": lambda: jnp.sum(p * p, axis=-1),
        "p_squared_logp": lambda: jnp.sum(p * p * finite_logp, axis=-1),
        "varentropy": varentropy,
        "mean_logit": lambda: constant(jnp.sum(jnp.where(present, logits, 0), axis=-1) / size),
        "max_logp": lambda: constant(jnp.max(logp, axis=-1)),
        "max_id": lambda: jnp.argmax(logits, axis=-1).astype(jnp.int32),
        "second_logp": lambda: _of_target(
            jax.nn.log_softmax(logits * tokens.second_ratio[:, None], axis=-1), tokens.targets
        ),
        "min_p_mass": lambda: constant(
            jnp.minimum(jnp.sum(jnp.where(p >= plan.min_p * largest_p, p, 0), axis=-1), 1)
        ),
        "topk_logp": lambda: jax.lax.top_k(logp, plan.top_k)[0],
        "topk_ids": lambda: jax.lax.top_k(constant(logits), plan.top_k)[1],
        "nucleus_entropy": nucleus_entropy,
        "kl": lambda: against(jnp.where(present, logp, 0), log_other()),
        "reverse_kl": lambda: against(log_other(), jnp.where(present, logp, 0)),
        "js": js,
    }
    stats = {need: formulas[need]() for need in plan.needs}
    if tokens.active is None:
        return stats

    def where_active(value):
        return jnp.where(tokens.active.reshape(-1, *(1,) * (value.ndim - 1)), value, 0)

    return jax.tree.map(where_active, stats)


def _logits(plan, hidden, unembedding, bias, tokens) -> Float[Array, "N V"]:
    operands = hidden.astype(plan.dtype), unembedding.astype(plan.dtype).T
    logits = jnp.matmul(*operands, precision=jax.lax.Precision.HIGHEST)
    if bias is not None:
        logits = logits + bias.astype(plan.dtype)[None, :]
    if plan.softcap is not None:
        removed = logits == -jnp.inf
        logits = jnp.where(removed, -jnp.inf, plan.softcap * jnp.tanh(logits / plan.softcap))
    if tokens.inverse_temperature is not None:
        logits = logits * tokens.inverse_temperature[:, None]
    return logits


def _of_target(logp, targets):
    """logp of the target, at most 0; NaN for targets outside the vocabulary."""
    inside = (targets >= 0) & (targets < logp.shape[1])
    column = jnp.where(inside, targets, 0)[:, None]
    picked = jnp.take_along_axis(logp, column, axis=-1)[:, 0]
    return jnp.where(inside, jnp.where(picked > 0, 0, picked), jnp.nan)
