"""ReTool: reasoning with an interpreter inside the response, learned by PPO.

"ReTool: Reinforcement Learning for Strategic Tool Use in LLMs", in the form of
https://github.com/verl-project/verl-recipe (retool)

    a response continues after the interpreter's output, at most 8 times
    R    = 1 if the response is correct, else min(-0.6, -1 + 0.1 · calls)      (the paper: -1)
    Â    = R - V on the policy's own tokens (γ = λ = 1), whitened with n - 1
    loss = mean over own tokens of max(-Â ρ, -Â clip(ρ, 1 - 0.2, 1 + 0.28)), dual clip 10

The interpreter's output is read but not trained. In the first 20 steps (`critic_steps`) only the
critic is fitted: the weight of all tokens is 0. The paper first fine-tunes on code-augmented
reasoning, which is a separate run.

Left out: the supervised fine-tuning.
Reports: Qwen2.5-32B-Instruct: AIME24 67.0 % after 400 steps, AIME25 49.3 %. Text-only RL reaches 40
% on AIME24 after 1080 steps.
Traps: In verl, calls raise the reward of an incorrect response to at most -0.6. In the paper it is
-1 (`turn_bonus=0`). Without supervised fine-tuning, a model may never make a call. A critic that
does not skip the tool's text learns the text's values.
"""

import jax.numpy as jnp

from rlvr_jax.experience import experience, replies_read, shape
from rlvr_jax.methods._tools import Tools
from rlvr_jax.objectives import (
    Transform,
    clamped_token_ratio,
    critic_of,
    generalized_advantage,
    whitened,
)
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import (
    Function,
    Method,
    Recipe,
    Shown,
    arguments_of,
    is_correct,
    part,
    replace,
)
from rlvr_jax.types.hyperparameters import (
    Bound,
    ClipHigh,
    ClipLow,
    Count,
    DualClip,
    Epsilon,
    Finite,
    NonNegativeInt,
    StepUpdates,
)


@part
def tool_use_reward(bonus: Finite = 0.1, ceiling: Finite = -0.6) -> Function:
    """R = 1 for a correct response, else -1 plus a bonus for each reply that it has read.

    Args:
      bonus: bonus per reply; 0: none, and no ceiling.
      ceiling: largest reward of an incorrect response.
    Reads: outcome, turn, length.
    """

    def reward(rollouts):
        calls = replies_read(rollouts)
        failed = jnp.minimum(-1 + bonus * calls, ceiling) if bonus else jnp.full_like(calls, -1.0)
        return jnp.where(is_correct(rollouts.outcome), 1.0, failed)

    return reward


@part(writes={"weight"})
def fit_critic_first(steps: NonNegativeInt, updates: Count = 1) -> Transform:
    """Sets the weight of all tokens to 0 in the first steps, while the critic is fitted.

    Args:
      steps: number of these steps.
      updates: optimizer updates of a step.
    Metrics: critic_only (1 in an update of these steps, else 0).
    """

    def apply(signals, context, state):
        held = state < steps * updates
        weight = jnp.where(held, 0, signals.weight)
        metrics = {"critic_only": held.astype(weight.dtype)}
        return replace(signals, weight=weight), state + 1, metrics

    return Transform(apply, init=lambda spec: jnp.zeros((), jnp.int32))


@arguments_of(Tools, "style", "reply_tokens", "describe", into="tools", tools=("python",))
def retool(
    max_calls: Count = 8,
    turn_bonus: Finite = 0.1,
    ceiling: Finite = -0.6,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    dual: DualClip = 10.0,
    epsilon: Epsilon = 1e-8,
    value_clip: Bound = 0.2,
    critic_steps: NonNegativeInt = 20,
    updates: StepUpdates = 1,
    *,
    tools: Tools,
) -> Recipe:
    """Applies PPO with a critic to responses that call tools.

    Args:
      max_calls: maximum number of calls of a response.
      turn_bonus: bonus per call of an incorrect response; 0: its reward is -1, as in the paper.
      ceiling: largest reward of an incorrect response.
      value_clip: half-width of the critic's trust region.
      critic_steps: first steps, in which only the critic is fitted; 0: none.
    """
    estimator = generalized_advantage(1.0, 1.0)
    return Recipe(
        objective=clipped_objective(
            clip_low,
            clip_high,
            advantage=whitened(estimator, ddof=1, epsilon=epsilon, floor=0.0),
            ratio=clamped_token_ratio,
            dual_clip=dual,
            transforms=[fit_critic_first(critic_steps, updates)] if critic_steps else [],
        ),
        experience=experience(
            draw=replace(tools, max_turns=max_calls).draw(),
            stages=[shape(tool_use_reward(turn_bonus, ceiling))],
        ),
        critic=critic_of(estimator, value_clip),
    )


METHOD = Method(
    retool,
    changes="sampling, reward, advantage, surrogate",
    baseline="other",
    small={"critic_steps": 0},
    shown=Shown(
        "noted_calculations",
        "critic_only",
        without={"critic_steps": 0},
        hyperparameters={"critic_steps": 2},
    ),
)
