"""How an update at one token changes the entropy of the policy there, and what acts on it.

For a distribution p of entropy H, raising the logit of token a by ε changes H by -ε S_a with the
discriminator S_a = p_a (H + log p_a). A policy-gradient step α at the sampled token moves all
logits, by α (e_a - p), and changes H by -α (S_a - E S) with E S = Σ p² (H + log p).
"""

from jaxtyping import Array, Float

Tokens = Float[Array, "B T"]


def entropy_step(advantage: Tokens, discriminator: Tokens, expected: Tokens) -> Tokens:
    """-A (S - E S): change of the entropy by a unit step of the policy gradient, first order."""
    return -advantage * (discriminator - expected)
