"""TP-GRPO: merges steps of equal grade into thoughts and rewards them by the group's accuracy.

"Good Learners Think Their Thinking: Generative PRM Makes Large Reasoning Model More Efficient Math
Learner"

    a thought is a run of steps that are all correct, or all incorrect
    r(thought) = accuracy of the group if correct; -p if incorrect in an incorrect response; else 0
    A_t  = Σ of the rewards of this and later thoughts
    loss = Σ PPO clip / Σ n_i

A reconstruction from the abstract, with the simplest scales that have its three properties. Correct
steps on unsolved prompts earn nothing. Incorrect steps have a penalty p (`penalty`) if the response
followed them. Splitting a thought has no advantage. The normalization is not known. The grades of
steps are those of the task (`score_steps`, correct if above 0). In the paper, they are those of a
model that detects where the response corrects itself.

Left out: the model that judges steps, as no shipped model finds where a response corrects itself.
Reports: R1-Distill-Qwen 1.5B and 7B: above RL on outcomes, with 5.6k training samples instead of
34k (abstract).
Traps: On unsolved prompts, only penalties remain. A correct last thought of an incorrect response
is rewarded. Nothing is normalized, so the scale is that of the sums over thoughts.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.experience import experience, score_steps
from rlvr_jax.objectives import Steps, at_tokens, find_steps, group_mean, previous_step, step_sum
from rlvr_jax.objectives.advantages.process_credit import (
    ProcessReward,
    Table,
    process_to_go,
    spread,
)
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe, Rollouts, is_correct, part
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, NonNegative


@part(reads={"step", "process_reward"})
def thought_rewards(penalty: NonNegative = 1.0) -> ProcessReward:
    """Gives correct thoughts the accuracy of their group and incorrect ones -p.

    Incorrect thoughts of a correct response earn 0: an abandoned attempt costs nothing. On unsolved
    prompts correct thoughts earn nothing.

    Reads: step, process_reward (its sum over a step is above 0 if the step is correct), outcome,
      group.
    """

    def of(rollouts, mask):
        label, steps = thoughts(rollouts, mask)
        accuracy = group_mean(rollouts.outcome, rollouts.group)[:, None]
        cost = jnp.where(is_correct(rollouts.outcome)[:, None], 0.0, -penalty)
        return spread(jnp.where(label > 0, accuracy, cost.astype(accuracy.dtype)), steps)

    return of


def thoughts(rollouts: Rollouts, mask: Bool[Array, "B T"]) -> tuple[Float[Array, "B T"], Steps]:
    """The thoughts: their labels as a table, and their steps."""
    scores, steps = summed_scores(rollouts, mask)
    labels = step_labels(scores, steps)
    merged = merged_steps(labels, steps)
    # The label of a thought is that of any of its tokens.
    total = step_sum(at_tokens(labels, steps), merged)
    return jnp.sign(total), merged


def summed_scores(rollouts: Rollouts, mask: Bool[Array, "B T"]) -> tuple[Table, Steps]:
    """The scores of the steps, sums of `process_reward` over their tokens; and the steps."""
    steps = find_steps(rollouts.records["step"], mask)
    return step_sum(rollouts.records["process_reward"], steps), steps


def step_labels(scores: Float[Array, "B T"], steps: Steps) -> Float[Array, "B T"]:
    """1 for steps of a score above 0, -1 for the others; a table, 0 where there is no step."""
    return jnp.where(steps.exists, jnp.where(scores > 0, 1.0, -1.0), 0).astype(scores.dtype)


def merged_steps(labels: Table, steps: Steps) -> Steps:
    """Merges consecutive steps of equal labels."""
    changes = steps.exists & (labels != previous_step(labels, steps))
    first = jnp.arange(labels.shape[1])[None] == 0
    begins = jnp.where(first, steps.exists, changes)
    place = jnp.cumsum(begins, axis=1, dtype=jnp.int32) - 1
    index = jnp.take_along_axis(jnp.maximum(place, 0), steps.index, axis=1, mode="clip")
    number = jnp.sum(begins, axis=1, keepdims=True, dtype=jnp.int32)
    column = jnp.arange(labels.shape[1], dtype=jnp.int32)[None]
    return Steps(jnp.where(steps.member, index, 0), steps.member, column < number)


def nothing_at_the_end(rollouts: Rollouts) -> Float[Array, "B"]:
    """0: only the thoughts are rewarded."""
    return jnp.zeros_like(rollouts.reward)


def gen_prm_thoughts(
    penalty: NonNegative = 1.0, clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.2
) -> Recipe:
    """Applies the clipped loss with the token mean to the rewards of this and later thoughts.

    Args:
      penalty: penalty of an incorrect thought in an incorrect response (p).
    """
    advantage = process_to_go(thought_rewards(penalty), at_end=nothing_at_the_end)
    objective = clipped_objective(clip_low, clip_high, advantage=advantage)
    return Recipe(objective, experience=experience(stages=[score_steps()]))


METHOD = Method(
    gen_prm_thoughts,
    changes="reward, advantage",
    baseline="other",
    evidence="reconstruction",
    shown=LOSS_ON_BRACKETS,
)
