"""Log-prob, entropy and other statistics of tokens, from hidden states, without stored logits."""

from collections.abc import Collection
from numbers import Real

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.kernels import dispatch, operation, reference
from rlvr_jax.kernels.algebra import STREAMING
from rlvr_jax.kernels.arguments import (
    check_arrays,
    check_names,
    check_needs,
    check_numbers,
    check_other,
    check_temperature,
)
from rlvr_jax.kernels.operation import on_mesh
from rlvr_jax.kernels.plan import ROWS, OtherPolicy, Plan, Policy, Tokens
from rlvr_jax.types import TokenStats

STATISTICS = (*STREAMING, *ROWS)
IMPLEMENTATIONS = ("reference", *dispatch.SUMS)


def token_stats(
    hidden: Float[Array, "N D"],
    unembedding: Float[Array, "V D"],
    targets: Int[Array, "N"],
    *,
    needs: Collection[str],
    mask: Bool[Array, "N"] | None = None,
    temperature: float | Float[Array, ""] | Float[Array, "N"] = 1.0,
    softcap: float | None = None,
    bias: Float[Array, "V"] | None = None,
    second_temperature: float | Float[Array, ""] | Float[Array, "N"] | None = None,
    top_k: int = 0,
    top_p: float | None = None,
    include_crossing: bool = True,
    nucleus_mask: Bool[Array, "N"] | None = None,
    min_p: float | None = None,
    other: tuple[Float[Array, "N E"], Float[Array, "V E"]] | None = None,
    mesh: Mesh | None = None,
    implementation: str | None = None,
) -> TokenStats:
    """Computes log-prob, entropy and other vocabulary sums of tokens from hidden states.

    Examples:
      >>> import jax, jax.numpy as jnp
      >>> from rlvr_jax import token_stats
      >>> hidden, unembedding = jnp.ones((6, 8)), jnp.eye(50, 8)
      >>> token_stats(hidden, unembedding, jnp.arange(6), needs=["logp", "entropy"]).entropy.shape
      (6,)

        z = cap tanh((h·w + bias) / cap) / T,   p = softmax z,   l = log p,   y the target
        logp = l_y   logsumexp = log Σ e^z   entropy H = -Σ p l   p_squared = Σ p²
        p_squared_logp = Σ p² l   varentropy = Σ p l² - H²   mean_logit = Σ z / V
        max_logp, max_id = max l and its id   topk_logp, topk_ids = the top_k largest l
        min_p_mass = Σ p 1[p ≥ min_p max p]   second_logp = l_y at the second temperature
        nucleus_entropy = H of p in {p ≥ t}, t the largest threshold of mass ≥ top_p
        kl = KL(p‖q)   reverse_kl = KL(q‖p)   js = ½ KL(p‖m) + ½ KL(q‖m),  m = (p + q) / 2

    All are in nats. Logits and sums are float32, or float64 if hidden or unembedding is. The bounds
    logp ≤ 0, 0 ≤ entropy ≤ log V and 1/V ≤ p_squared ≤ 1 hold exactly. Equal logits are in or out
    of a nucleus together. In a top-k the smaller id of equal logits comes first. NaN or Inf in a
    hidden state affects the statistics of its token only.

    Gradients go to hidden, unembedding and bias. Constants are mean_logit, max_logp, max_id,
    min_p_mass and topk_ids, and the sets of a nucleus and of the top_k. Reverse mode only, except
    for "reference". Tokens off the mask or without a cotangent cost nothing if V > 2048.

    Args:
      hidden: the model's last hidden states.
      unembedding: output embedding, in the layout of Hugging Face and tied embeddings.
      targets: the tokens of `logp`. A target outside [0, V) makes its logp and second_logp NaN,
        without gradient. Other statistics do not change.
      needs: names of the statistics to compute.
      mask: tokens off it get 0 in every statistic and no gradient, even if their other arguments
        are NaN.
      temperature: T > 0, one or one per token; no gradient.
      softcap: the cap of the logits, if the model has one.
      bias: added to h·w, before the cap. -inf takes an entry out of the vocabulary.
      second_temperature: T₂ > 0 of `second_logp`, one or one per token; no gradient.
      top_k: k of `topk_logp` and `topk_ids`, from 1 to 64 and at most V.
      top_p: mass of `nucleus_entropy`, in (0, 1].
      include_crossing: whether the tokens at the threshold belong to the nucleus. Without them it
        can be empty, with entropy 0.
      nucleus_mask: tokens off it get nucleus_entropy 0, without gradient and without cost.
      min_p: cut of `min_p_mass` relative to the largest probability, in (0, 1].
      other: hidden states and unembedding of the second policy q of `kl`, `reverse_kl` and `js`,
        of any width E. It uses the first policy's bias, cap and temperature. No gradient.
      mesh: splits tokens over its axes data and fsdp, the vocabulary over tensor, if it has them.
        Its axes must be of type Auto. Any number of tokens works. Without a mesh, the function
        runs on one device, or inside a caller's `jax.shard_map(..., check_vma=False)`.
      implementation: "reference" stores all logits, "xla" tiles of them. "pallas_tpu" and
        "pallas_gpu" are kernels for the forward pass, with the backward pass of "xla". None selects
        the TPU kernel on TPU and "xla" elsewhere. If the TPU kernel cannot run, "xla" runs with
        one warning that names the reason.

    Returns:
      `TokenStats` of `needs`, [N] arrays ([N, top_k] for the two of top-k).

    Raises:
      ValueError: an unknown name in needs or implementation. A named implementation that cannot
        run. A statistic without its argument. Wrong shapes, dtypes or ranges. A vocabulary that the
        mesh axis tensor does not divide.
    """
    policy = Policy(*(None if x is None else jnp.asarray(x) for x in (hidden, unembedding, bias)))
    check_other(other)
    other = None if other is None else OtherPolicy(*map(jnp.asarray, other))
    targets = jnp.asarray(targets)
    mask, nucleus_mask = (None if x is None else jnp.asarray(x) for x in (mask, nucleus_mask))
    check_names("needs", needs, STATISTICS)
    if implementation is not None:
        check_names("implementation", [implementation], IMPLEMENTATIONS)
    check_arrays(policy, other, targets, mask, nucleus_mask)
    check_temperature("temperature", temperature, targets.shape)
    check_temperature("second_temperature", second_temperature, targets.shape)
    check_numbers(policy.unembedding.shape[0], softcap, top_k, top_p, min_p)
    check_needs(
        needs,
        second_temperature=second_temperature,
        top_k=top_k or None,
        top_p=top_p,
        min_p=min_p,
        other=other,
    )

    is_double = jnp.float64 in (policy.hidden.dtype, policy.unembedding.dtype)
    dtype = jnp.dtype(jnp.float64 if is_double else jnp.float32)
    is_one = isinstance(temperature, Real) and temperature == 1
    scale = None if is_one else _inverse(temperature, targets.shape, dtype)
    ratio = None
    if "second_logp" in needs:
        ratio = _inverse(second_temperature, targets.shape, dtype)
        ratio = ratio if scale is None else ratio / scale
    tokens = Tokens(targets.astype(jnp.int32), mask, scale, ratio, nucleus_mask)
    other = jax.lax.stop_gradient(other)
    if mask is not None:
        policy, other, tokens = _without_masked(policy, other, tokens)
    plan = Plan(
        needs=tuple(name for name in STATISTICS if name in needs),
        dtype=dtype,
        softcap=None if softcap is None else float(softcap),
        top_k=int(top_k),
        top_p=top_p,
        include_crossing=include_crossing,
        min_p=min_p,
        implementation=implementation,
    )
    if implementation == "reference":
        return TokenStats.of_arrays(reference.statistics(plan, policy, other, tokens))
    found = operation.statistics(on_mesh(plan, mesh, policy), policy, other, tokens)
    return TokenStats.of_arrays(found)


def _inverse(temperature, shape, dtype):
    """1 / temperature for every token, without gradient."""
    temperature = jax.lax.stop_gradient(jnp.asarray(temperature, dtype))
    return jnp.broadcast_to(1 / temperature, shape)


def _without_masked(policy, other, tokens):
    """The same with harmless numbers for masked tokens, whose own may be NaN."""
    mask = tokens.active

    def where_active(values, instead):
        if values is None:
            return None
        return jnp.where(mask[:, None] if values.ndim == 2 else mask, values, instead)

    tokens = tokens._replace(
        targets=where_active(tokens.targets, 0),
        inverse_temperature=where_active(tokens.inverse_temperature, 1),
        second_ratio=where_active(tokens.second_ratio, 1),
    )
    if other is not None:
        other = other._replace(hidden=where_active(other.hidden, 0))
    return policy._replace(hidden=where_active(policy.hidden, 0)), other, tokens
