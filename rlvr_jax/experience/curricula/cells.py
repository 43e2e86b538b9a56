"""Labels of prompts that their rows carry."""

from dataclasses import replace

from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.types.parts import part


@part
def cells_by_kind() -> Curriculum:
    """Labels rows by the kind of their prompt, `Rollouts.cell`: its place among the task's kinds.

    Kinds are those of the train prompts, sorted; it changes the asks of the curricula before it.
    A prompt of another kind has no label.
    """

    def propose(asks, state, turn):
        del state
        kinds = sorted({prompt.kind for prompt in turn.setting.task.train})
        number = {kind: place for place, kind in enumerate(kinds)}
        return [replace(ask, cell=number.get(ask.prompt.kind, -1)) for ask in asks]

    return Curriculum(propose, writes=frozenset({"cell"}))
