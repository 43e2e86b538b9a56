"""The covariance of advantage and log-prob, token by token.

To first order, its mean over the tokens is the speed at which a policy-gradient step lowers the
entropy of a softmax policy.
"""

from rlvr_jax.kernels.selection import covariance
from rlvr_jax.types import Mask, Values


def token_covariance(advantage: Values, logp: Values, mask: Mask) -> Values:
    """Covariance of advantage and log-prob at each token: (A_t - mean A) (logp_t - mean logp).

    Means are over the mask; the result is 0 off the mask.

    The result is equal to the last bit for every sharding: the means are sums of integers.

    Source: Cui et al. 2025, https://arxiv.org/abs/2505.22617.
    """
    return covariance(advantage, logp, mask)
