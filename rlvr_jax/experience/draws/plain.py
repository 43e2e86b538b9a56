"""Plain sampling: each response from its prompt to its end."""

from collections.abc import Callable
from typing import Any

from rlvr_jax.experience.parts import Draw, StepContext
from rlvr_jax.rollout import Processor
from rlvr_jax.types.parts import part


@part
def plain(
    processor: Processor | None = None,
    constants: Callable[[StepContext], Any] | None = None,
    scored_as_sampled: bool = False,
    **sampling: Any,
) -> Draw:
    """Samples every response at once; evaluations do not use the processor.

    Args:
      processor: changes logits, between temperature and truncation.
      constants: (turn) -> `TokenContext.constants` of the processor, a pytree of arrays. They are
        traced, so they may differ from step to step.
      scored_as_sampled: score and train the rows at the processor's temperatures instead of the
        run's temperature.
      sampling: prescribed settings of the sampler: temperature, top_k, top_p, min_p.
    Raises:
      ValueError: scored_as_sampled with a processor that has no temperature.
    """
    if scored_as_sampled and (processor is None or processor.temperature is None):
        raise ValueError(
            "plain: scored_as_sampled must be False without a processor that has a temperature,"
            f" got {scored_as_sampled} with {processor}"
        )
    own = {} if processor is None else {"processor": processor}

    def apply(requests, actor, state, turn):
        values = constants(turn) if constants is not None else None
        batch = actor.draw(requests, turn.key, own, values)
        if scored_as_sampled:
            batch = batch.with_rollouts(
                temperature=batch.rollouts.records.get("sampled_temperature")
            )
        return batch, state, {}

    return Draw(apply, sampling=sampling, as_sampled=True)
