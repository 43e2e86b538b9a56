"""Every prompt in another template each time that it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.experience.templates import TEMPLATES, Template, template_of, template_view
from rlvr_jax.types.parts import part

__all__ = ["random_templates"]


@part
def random_templates(templates: Sequence[Template] = TEMPLATES) -> Curriculum:
    """Asks what the curricula before it ask in a random template, one for all rows of a group.

    Which one depends on the run's seed, the prompt, and how often that was asked before.

    Args:
      templates: of different names.
    Metrics: templates_asked (different ones in the step).
    Raises:
      ValueError: no templates, or two of one name.
    Source: https://github.com/wenquanlu/prompt-augmentation-GRPO.
    """
    names = [template.name for template in templates]
    if not names or len({*names}) < len(names):
        raise ValueError(
            f"random_templates: templates must be of different names, at least one, got {names}"
        )
    views = [template_view(template) for template in templates]

    def init(setting):
        return np.zeros(len(setting.task.train), np.int32)

    def propose(asks, state, turn):
        seed = turn.setting.seed

        def view(ask):
            epoch = int(state[ask.number]) if ask.number < len(state) else 0
            return views[template_of(seed, epoch, ask.number, len(views))]

        return [replace(ask, view=view(ask)) for ask in asks]

    def observe(state, turn, seen, learned):
        del turn
        asked = {batch.asks[rows[0]].number for batch in seen for rows in batch.groups}
        state = state.copy()
        state[[number for number in asked if number < len(state)]] += 1
        return state, {"templates_asked": float(len({ask.view.label for ask in learned.asks}))}

    return Curriculum(propose, init, observe, views=tuple(views))
