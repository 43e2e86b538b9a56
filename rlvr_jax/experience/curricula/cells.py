"""Labels of prompts, recorded in their rows."""

from dataclasses import replace

from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.types.parts import part


@part(writes={"cell"})
def cells_by_kind() -> Curriculum:
    """Labels rows by their prompt's kind: its position in the sorted kinds of the train prompts.

    The label is the record `cell`, which is -1 for a prompt of another kind.
    """

    def propose(requests, state, turn):
        kinds = sorted({prompt.kind for prompt in turn.setting.task.train})
        number = {kind: place for place, kind in enumerate(kinds)}
        return [replace(request, cell=number.get(request.prompt.kind, -1)) for request in requests]

    return propose
