"""Responses whose thinking is written in mixtures of tokens."""

from __future__ import annotations

from typing import Any

from rlvr_jax.experience.parts import Draw
from rlvr_jax.objectives import GumbelNoise
from rlvr_jax.rollout import SoftThinking
from rlvr_jax.types.parts import part

__all__ = ["soft_thinking"]

GIVES = frozenset({"soft", "candidate_ids", "candidate_weight", "candidate_noisy_logp"})


@part
def soft_thinking(
    end: str = "</think>",
    candidates: int = 5,
    top_p: float = 0.95,
    mixing_temperature: float = 0.1,
    noise: GumbelNoise | None = None,
    **sampling: Any,
) -> Draw:
    """Samples every response as a whole; up to the end of its thinking it feeds itself mixtures.

    The likeliest tokens at a place are cut to their nucleus, perturbed by Gumbel noise and mixed;
    the mixture of their embeddings is the next input, the most weighty one the recorded token. When
    that is the end of thinking, or ends the response, it is fed as itself and what follows is
    sampled as ever. Rows are trained on the very inputs that they were drawn with.

    Args:
      end: text of the one token that ends the thinking; "": all of a response is thought softly.
      candidates: of a mixture (k).
      top_p: mass of their nucleus.
      mixing_temperature: of the mixture (τ).
      noise: its bounds; None: those of `GumbelNoise`.
      sampling: settings of the sampler that are prescribed, as in `plain`.
    Writes: soft, candidate_ids, candidate_weight, candidate_noisy_logp. Metrics: soft_share (of the
      drawn tokens).
    Raises:
      ValueError: as `SoftThinking`; when it draws, an end that is not one token.
    Source: Zheng and Lee 2025, https://arxiv.org/abs/2511.06411.
    """
    bounds = GumbelNoise() if noise is None else noise
    SoftThinking((), candidates, top_p, mixing_temperature, bounds)

    def apply(asks, actor, state, turn):
        ids = tuple(actor.encode(end)) if end else ()
        if len(ids) > 1:
            raise ValueError(
                f"soft_thinking: end must be one token of the policy's, got {end!r} of {len(ids)}"
            )
        how = SoftThinking(ids, candidates, top_p, mixing_temperature, bounds)
        batch = actor.draw(asks, turn.key, {"soft": how})
        soft, mask = batch.rollouts.soft, batch.rollouts.mask
        share = 0.0 if soft is None else float(soft.sum() / max(mask.sum(), 1))
        return batch, state, {"soft_share": share}

    named = {"end": end, "candidates": candidates, "top_p": top_p}
    named |= {"mixing_temperature": mixing_temperature, "noise": bounds, **sampling}
    return Draw(apply, sampling=sampling, of_policy=True, writes=GIVES)
