"""The plain curriculum: shuffled epochs over the train prompts, in the task's mixture of kinds."""

import functools
from collections.abc import Iterable

from rlvr_jax.experience.parts import Curriculum, RunInfo, StepContext
from rlvr_jax.experience.requests import SampleRequest
from rlvr_jax.tasks import Batches
from rlvr_jax.types.parts import part


@part
def shuffled_epochs() -> Curriculum:
    """Prompts in shuffled epochs, a pure function of the seed and the step; see `Batches`."""

    def propose(requests, state, turn):
        order = order_of(turn.setting)
        return requests_for(turn, order.indices(turn.step, turn.round, turn.setting.rounds))

    return Curriculum(propose)


def requests_for(turn: StepContext, numbers: Iterable[int]) -> list[SampleRequest]:
    """One request in the current round for each of some numbers of train prompts."""
    setting = turn.setting
    return [
        SampleRequest(
            setting.task.train[number], int(number), setting.initial_samples, round=turn.round
        )
        for number in numbers
    ]


@functools.lru_cache(maxsize=4)
def order_of(setting: RunInfo, prompts: int | None = None) -> Batches:
    """The order of a run's prompts; the state of the object is only a cache.

    Args:
      prompts: number of prompts in a step; None: the run's.
    """
    return Batches(setting.task, prompts or setting.prompts, setting.seed)
