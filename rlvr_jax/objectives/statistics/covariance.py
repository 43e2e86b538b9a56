"""The covariance of advantage and log-prob, token by token.

Its mean over the tokens is, to first order, how fast a policy-gradient step lowers the entropy of a
softmax policy.
"""

from jaxtyping import Array, Bool, Float

from rlvr_jax.kernels.selection import covariance


def token_covariance(
    advantage: Float[Array, "B T"], logp: Float[Array, "B T"], mask: Bool[Array, "B T"]
) -> Float[Array, "B T"]:
    """(A_t - mean A) · (logp_t - mean logp), means over the mask; 0 off it.

    The same to the last bit however the batch is sharded: the means are sums of integers.

    Args:
      advantage: signed credit.
      logp: log-prob of the sampled token, nats.
      mask: the tokens that count.
    Source: Cui et al. 2025, https://arxiv.org/abs/2505.22617.
    """
    return covariance(advantage, logp, mask)
