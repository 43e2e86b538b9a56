"""Statistics of tokens under a policy."""

from dataclasses import dataclass

from jaxtyping import Array, Float, Int

from rlvr_jax.types.fields import pytree


@pytree
@dataclass(frozen=True)
class TokenStats:
    """Statistics of each token under the current policy; None if not measured.

    All are over the whole vocabulary at the token's temperature, in nats, float32 (float64 for
    float64 inputs), and have the shape of the targets ([N] from the kernel, [B, T] in objectives).
    With p the policy's distribution at the token, z its logits and q that of a second policy:

      logp: log p(target), ≤ 0.
      logsumexp: log Σ exp z.
      entropy: H = -Σ p log p.
      p_squared: Σ p².
      p_squared_logp: Σ p² log p.
      varentropy: Σ p (log p)² - H².
      mean_logit: (1/V) Σ z. No gradient.
      max_logp, max_id: the largest log p and its id (the first of equals). No gradient.
      min_p_mass: Σ p over the tokens with p ≥ min_p · max p. No gradient.
      topk_logp, topk_ids: [..., k], the k largest log p, descending, and their ids. The ids are
        constants.
      nucleus_entropy: entropy of p restricted to its smallest set of tokens of mass ≥ top_p and
        renormalized; with `include_crossing=False` without the last token of that set.
      kl, reverse_kl, js: KL(p‖q), KL(q‖p), and Jensen-Shannon ½KL(p‖m) + ½KL(q‖m), m = (p + q)/2.
      second_logp: log p(target) at a second temperature.
      tempered_logp: [..., K], log p(target) at K multiples of the token's temperature. No gradient.
      candidate_logp: [..., K], log p of the ids of the record `candidate_ids`.

    Fields that are not of the vocabulary at the token:

      value: the critic's estimate at the token.
      hidden: [..., D], last hidden state of the model at the token.
      second_prompt_logp: log p(target) of the same response after a second prompt.
      teacher_entropy: entropy of the second policy q. No gradient.
      teacher_topk_logp: [..., k], log q of `topk_ids`. No gradient.
      verdict_logp: [B, K], log p of K fixed tokens at the one position after the response (or
        after an appended question), at temperature 1: the policy's grade of its own answer.
    """

    logp: Float[Array, "..."] | None = None
    logsumexp: Float[Array, "..."] | None = None
    entropy: Float[Array, "..."] | None = None
    p_squared: Float[Array, "..."] | None = None
    p_squared_logp: Float[Array, "..."] | None = None
    varentropy: Float[Array, "..."] | None = None
    mean_logit: Float[Array, "..."] | None = None
    max_logp: Float[Array, "..."] | None = None
    max_id: Int[Array, "..."] | None = None
    min_p_mass: Float[Array, "..."] | None = None
    topk_logp: Float[Array, "... k"] | None = None
    topk_ids: Int[Array, "... k"] | None = None
    nucleus_entropy: Float[Array, "..."] | None = None
    kl: Float[Array, "..."] | None = None
    reverse_kl: Float[Array, "..."] | None = None
    js: Float[Array, "..."] | None = None
    second_logp: Float[Array, "..."] | None = None
    tempered_logp: Float[Array, "... K"] | None = None
    candidate_logp: Float[Array, "... K"] | None = None
    value: Float[Array, "..."] | None = None
    hidden: Float[Array, "... D"] | None = None
    second_prompt_logp: Float[Array, "..."] | None = None
    teacher_entropy: Float[Array, "..."] | None = None
    teacher_topk_logp: Float[Array, "... k"] | None = None
    verdict_logp: Float[Array, "B K"] | None = None
