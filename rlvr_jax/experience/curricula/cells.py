"""Labels of prompts that their rows carry."""

from dataclasses import replace

from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.types.parts import part


@part(writes={"cell"})
def cells_by_kind() -> Curriculum:
    """Labels rows by the position of their prompt's kind among the sorted kinds of train prompts.

    The label is the record `cell`; a prompt of another kind has none.
    """

    def propose(requests, state, turn):
        kinds = sorted({prompt.kind for prompt in turn.setting.task.train})
        number = {kind: place for place, kind in enumerate(kinds)}
        return [replace(request, cell=number.get(request.prompt.kind, -1)) for request in requests]

    return propose
