"""Rewards for keeping the form that a template asks for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.templates import TEMPLATES, Template, format_score, template_view
from rlvr_jax.types.parts import part

__all__ = ["reward_template"]


@part(by_row=True)
def reward_template(templates: Sequence[Template] = TEMPLATES) -> Stage:
    """Adds to the reward of every row how well it keeps the form of the template it was asked in.

    The outcome stays what the verifier said.

    Args:
      templates: those of `random_templates`; rows of other views earn nothing more.
    Reads: the responses' texts. Writes: reward. Metrics: template_score (mean over the rows).
    Source: https://github.com/wenquanlu/prompt-augmentation-GRPO.
    """
    known = {template_view(template).label: template for template in templates}

    def apply(batch, actor, state, turn):
        del actor, turn
        asked = [known.get(ask.view.label) for ask in batch.asks]
        scores = np.array(
            [
                0.0 if template is None else format_score(template, response.text)
                for template, response in zip(asked, batch.responses, strict=True)
            ]
        )
        reward = batch.rollouts.reward + scores.astype(batch.rollouts.reward.dtype)
        return batch.with_rollouts(reward=reward), state, {"template_score": float(scores.mean())}

    return apply
