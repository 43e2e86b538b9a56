"""Imitation: a likelihood loss of responses, independent of their rewards."""

from collections.abc import Callable, Iterable

from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.masked import masked_count, masked_mean
from rlvr_jax.types import Rollouts, part, replace
from rlvr_jax.types.hyperparameters import NonNegative

__all__ = ["imitate"]


def supervised_tokens(rollouts: Rollouts) -> Bool[Array, "B T"]:
    """The tokens of supervised rows."""
    return rollouts.supervised_tokens


@part(writes={"term"})
def imitate(
    weight: NonNegative,
    where: Callable[[Rollouts], Bool[Array, "B T"]] = supervised_tokens,
    reads: Iterable[str] = ("supervised",),
    factor: Callable[[Rollouts], Float[Array, "B T"]] | None = None,
) -> Transform:
    """Adds weight · mean of -logp over the tokens to imitate; 0 where there are none.

    Args:
      weight: weight of the imitation loss.
      where: (rollouts) -> bool [B, T], tokens on the mask or of supervised rows.
      reads: optional records of the rollouts that `where` and `factor` read.
      factor: (rollouts) -> [B, T], factors of the tokens' losses; the mean still divides by the
        number of tokens. None: 1.
    Metrics: imitation_loss (mean over the tokens, nats), imitated_tokens (tokens).
    """

    def apply(signals, context, state):
        tokens = where(context.rollouts) & context.rollouts.scored
        logp = context.scored_logp
        logp = logp if factor is None else factor(context.rollouts) * logp
        loss = -masked_mean(logp, tokens)
        signals = replace(signals, term=signals.term + weight * loss)
        number = masked_count(tokens).astype(loss.dtype)
        return signals, state, {"imitation_loss": loss, "imitated_tokens": number}

    return Transform(apply, reads={"logp", *reads})
