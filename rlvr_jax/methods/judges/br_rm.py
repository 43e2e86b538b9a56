"""BR-RM: trains a judge of two turns on which of two responses is better.

"Think Twice: Branch-and-Rethink Reasoning Reward Model"

    R    = 0 for the correct preference, -1 for the incorrect one, -100 for a broken format
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ [PPO clip + β k3] / Σ n_i

In the first turn the judge writes dimensions and an analysis of both responses. A request to read
them again in the light of this follows, and the judge writes its preference (`rethink_once`). Both
turns are one row, so R and A_i are those of the tokens of both. The request is not trained on. The
outcome is the correctness of the preference. A reward of the task (`column`) is 1 if the format is
correct. In the task `preferences` the order of the two responses is random (`present`).

A reconstruction: the authors' environment was not available. `rlvr_jax.verifiers.texts.br_rm` has
the requests, and the rule on the two turns.

Left out: the authors' 97,000 preference pairs; a hierarchy of criteria for each type of prompt.
Reports: BR-RM-Qwen-14B, in %: RewardBench 92.1, RM-Bench 85.9, RMB 74.7.
Traps: A judge that never writes the format has equal rewards and no gradient. SmolLM2-135M, the
policy of the shown setting, is such a judge. One malformed response at -100 reduces the difference
between correct and incorrect to a hundredth of a standard deviation, so the first phase learns only
the format. Use `malformed=-2` to avoid this. If the order of a prompt's responses is changed, its
label must also change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp

from rlvr_jax.experience import (
    PLAIN,
    Draw,
    Shaping,
    experience,
    part,
    shape,
    shaping,
    turns,
)
from rlvr_jax.experience.views import requesting
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tools import Reply
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import Count, Finite, NonNegativeInt
from rlvr_jax.verifiers.texts.br_rm import RETHINK


@dataclass(frozen=True)
class Rethink:
    """Requests a second turn after the first one."""

    stops: tuple[str, ...] = ("[/analysis]",)
    label: str = "Rethink()"
    judges: bool = False

    def start(self, prompt: Any) -> tuple[None, Sequence[Mapping[str, Any]]]:
        """No message is before the prompt."""
        return None, ()

    def reply(self, state: None, text: str) -> Reply:
        """The request for the second turn."""
        return Reply(state, RETHINK, info={"second_turns": 1.0}, role="user")


@part
def rethink_once(turn_tokens: Count | None = None) -> Draw:
    """Samples two turns: the request for the second one follows the first turn.

    Args:
      turn_tokens: largest number of tokens of a turn. A response whose first turn is longer has no
        second one. None: the rest of the budget.
    Metrics: second_turns (responses with a second turn).
    """
    draw = turns(Rethink(), limit=1, turn_tokens=turn_tokens)
    return replace(draw, views=(requesting(PLAIN, RETHINK),))


@part
def preference_reward(column: NonNegativeInt, malformed: Finite = -100.0) -> Shaping:
    """outcome - 1 where the format is correct, else `malformed`.

    Metrics: reward/format (fraction of the rows with a correct format), reward/preference (mean of
      outcome - 1 over them).
    """

    def reward(rollouts):
        form, own = rollouts.records["component_rewards"][:, column], rollouts.outcome - 1
        well_formed = form > 0.5
        preference = jnp.where(well_formed, own, jnp.nan)
        earned = jnp.where(well_formed, own, malformed)
        earned = jnp.where(jnp.isnan(form), jnp.nan, earned)
        return earned, {"reward/format": form, "reward/preference": preference}

    return shaping(reward, columns=column + 1)


@arguments_of(
    clipped_objective, "clip_low", "clip_high", "epsilon", "kl_coefficient", kl_coefficient=0.001
)
def br_rm(
    column: NonNegativeInt = 0,
    malformed: Finite = -100.0,
    turn_tokens: Count | None = None,
    **clip: Any,
) -> Recipe:
    """Applies GRPO with the token mean to preferences in two turns, and to their format.

    Args:
      turn_tokens: largest number of tokens of a turn; None: the rest of the budget.
      column: index of the task's reward that is 1 if the format is correct.
      malformed: reward of a malformed response.
    """
    return Recipe(
        objective=clipped_objective(**clip),
        experience=experience(
            draw=rethink_once(turn_tokens), stages=[shape(preference_reward(column, malformed))]
        ),
    )


METHOD = Method(
    br_rm,
    changes="sampling, reward",
    evidence="reconstruction",
    shown=Shown(
        "preferences",
        "experience/second_turns",
        settings={
            "model": "smollm2",
            "response_tokens": 160,
            "prompts_per_step": 2,
            "samples_per_prompt": 4,
            "micro_batches": 4,
            "learning_rate": 1e-5,
        },
        hyperparameters={"malformed": -2, "turn_tokens": 80},
        steps=24,
        within=1,
    ),
)
