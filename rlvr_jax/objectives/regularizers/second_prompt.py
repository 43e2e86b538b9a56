"""Regularizers that compare a response under its prompt and under a second one.

The second prompt is the same question with its evidence hidden (an image with patches blacked out,
a text without the passage it asks about). A response that is as likely after both did not use the
evidence.
"""

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.divergences import Divergence, k3_clamped
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Finite
from rlvr_jax.types.parts import part

__all__ = ["second_prompt_divergence", "second_prompt_logp_penalty"]


@part(writes={"penalty"})
def second_prompt_divergence(
    coefficient: Finite, estimator: Divergence = k3_clamped, trained: bool = False
) -> Transform:
    """Adds a divergence of the policy from itself under the second prompt.

    penalty' = penalty + c · estimator(logp, logp'); with c < 0 the divergence is maximised, and the
    response has to depend on what the second prompt hides.

    Args:
      coefficient: c.
      estimator: one of `rlvr_jax.objectives.statistics.divergences`.
      trained: logp' is the current policy's, with gradient; else that of the policy that sampled.
    Reads: logp, old_logp, second_prompt_logp of the policy or old_second_prompt_logp. Writes:
      penalty.
    Metrics: second_prompt_divergence, its mean over the tokens.
    Raises:
      ValueError: coefficient not finite.
    Source: https://github.com/MikeWangWZHL/PAPO.
    """

    def apply(signals, context, state):
        other = _second_logp(context, trained)
        divergence = estimator(context.stats.logp, other, context.old_logp)
        metrics = {"second_prompt_divergence": masked_mean(divergence, signals.mask)}
        signals = replace(signals, penalty=signals.penalty + coefficient * divergence)
        return signals, state, metrics

    return Transform(apply, reads={"logp", *_second_need(trained)})


@part(writes={"penalty"})
def second_prompt_logp_penalty(coefficient: Finite, trained: bool = False) -> Transform:
    """Adds c · logp after the second prompt: with c < 0 responses become likelier there.

    Without `trained` it is a constant: it changes the loss and no gradient.

    Args:
      coefficient: c.
      trained: as in `second_prompt_divergence`.
    Reads: second_prompt_logp of the policy or old_second_prompt_logp. Writes: penalty. Metrics:
      none.
    Raises:
      ValueError: coefficient not finite.
    """

    def apply(signals, context, state):
        penalty = signals.penalty + coefficient * _second_logp(context, trained)
        return replace(signals, penalty=penalty), state, {}

    return Transform(apply, reads=_second_need(trained))


def _second_logp(context, trained):
    if trained:
        return context.stats.second_prompt_logp
    return context.rollouts.old_second_prompt_logp


def _second_need(trained):
    return {"second_prompt_logp" if trained else "old_second_prompt_logp"}
