"""ARPO: rollouts fork after rounds that are less certain than their first round.

Dong et al. 2025, "Agentic Reinforced Policy Optimization", https://arxiv.org/abs/2507.19849

    E_k  = Σ over the first 20 tokens of round k of (-Σ_{top 10} p ln p) / ln V
    P    = clip(0.5 + w (E_k - E_0), 0, 1)      rows are forked after rounds, until there are M
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1, over the M rows of the prompt
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i, at most -3 A where A < 0

Half of the M rows begin at the prompt. The others are forks, or begin at the prompt if no row can
fork. A shared prefix is trained in every row that contains it. With `hard`, a shared token gets the
mean advantage of its rows. The gradient does not change unless the rows clip differently.

The authors use E_0 of the first batch in all later batches. They also fill groups with copies of
the last row. Here E_0 is that of the row, and there are no copies. With the task's environment, or
`tools`, a round ends at a call, as in the authors' code, and replies have mask 0. Without tools, it
ends after `round_tokens`.
The task provides the reward. A correct response that calls two different tools gets 0.1 more, as
with the authors' search and Python; the task `equations` has two tools.

Left out: the authors' reward of -1 for a broken format, which is that of the task.
Reports: Qwen2.5-7B, mean of 13 benchmarks, in %: 58.3 (GRPO: 56.5). Qwen3-14B on GAIA: 43.7 (GRPO:
36.9). ARPO makes half of the tool calls.
Traps: The entropy of a round sums up to 20 tokens, so a short round looks certain. The copies in
the authors' groups count twice.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from rlvr_jax.experience import Stage, experience
from rlvr_jax.methods._tools import Tools
from rlvr_jax.objectives import Transform, clipped_objective, parent_rows
from rlvr_jax.tools.calls import calls_in
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, part, replace
from rlvr_jax.types.hyperparameters import Count, DualClip, NonNegative, Unit


@part(writes={"advantage"}, once=True)
def average_over_copies() -> Transform:
    """Gives a token that several rows share the mean of their advantages, in each row."""

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        parent = parent_rows(rollouts.parent, rollouts.rollout_id)
        owner = token_owner(parent, rollouts.branch_position, mask.shape[1])
        places = jnp.arange(mask.shape[1], dtype=jnp.int32)[None]
        nothing = jnp.zeros_like(signals.advantage)
        total = nothing.at[owner, places].add(jnp.where(mask, signals.advantage, 0))
        number = nothing.at[owner, places].add(mask.astype(nothing.dtype))
        mean = total[owner, places] / jnp.maximum(number[owner, places], 1)
        return replace(signals, advantage=jnp.where(mask, mean, 0)), state, {}

    return apply


def token_owner(
    parent: Int[Array, "B"], branch_position: Int[Array, "B"], tokens: int
) -> Int[Array, "B T"]:
    """The row that sampled each token: the row itself, or an ancestor.

    Args:
      parent: rows, of `parent_rows`.
      branch_position: the first token that is the row's own; read where the row has a parent.
      tokens: number of token positions (T).
    """
    rows = parent.shape[0]
    places = jnp.arange(tokens, dtype=jnp.int32)[None]
    own = jnp.broadcast_to(jnp.arange(rows, dtype=jnp.int32)[:, None], (rows, tokens))

    def inherited(owner):
        shared = (parent[owner] >= 0) & (places < branch_position[owner])
        return jnp.where(shared, parent[owner], owner)

    def changes(carry):
        before, owner = carry
        return jnp.any(before != owner)

    start = own, inherited(own)
    return jax.lax.while_loop(changes, lambda carry: (carry[1], inherited(carry[1])), start)[1]


@part(by_row=True)
def reward_two_tools(bonus: NonNegative = 0.1) -> Stage:
    """Adds a bonus to the reward of a correct response that calls two different tools.

    Malformed calls do not count. Without tools, rewards do not change.

    Writes: reward. Metrics: two_tools_fraction (correct responses that call two tools).
    """

    def apply(batch, actor, state, turn):
        style = getattr(turn.setting.task.environment, "style", None)
        if style is None:
            return batch, state, {"two_tools_fraction": 0.0}
        calls = [calls_in(response.text, style) for response in batch.responses]
        both = np.array([len({call.tool for call in own if not call.wrong}) > 1 for own in calls])
        both &= np.asarray(batch.rollouts.outcome) == 1
        valid = np.asarray(batch.rollouts.valid)
        reward = np.where(valid, np.asarray(batch.rollouts.reward) + bonus * both, np.nan)
        return batch.rewarded(reward), state, {"two_tools_fraction": float(both.mean())}

    return Stage(apply)


@arguments_of(Tools, into="tools", max_turns=5)
@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def arpo(
    round_tokens: Count = 64,
    fraction: Unit = 0.5,
    weight: NonNegative = 0.2,
    base: Unit = 0.5,
    top: Count = 10,
    window: Count = 20,
    hard: bool = False,
    dual: DualClip = 3.0,
    tool_bonus: NonNegative = 0.1,
    *,
    tools: Tools,
    **clip: Any,
) -> Recipe:
    """Applies GRPO to rows that fork after rounds of more entropy than their first round.

    Args:
      round_tokens: tokens of a round, without tools.
      fraction, weight, base, top, window: as for `branch_rounds`.
      hard: whether shared tokens get the mean advantage of their rows.
      tool_bonus: added to the reward of a correct response that calls two different tools.
    """
    branches = dict(weight=weight, base=base, fraction=fraction, top=top, window=window)
    return Recipe(
        objective=clipped_objective(
            transforms=[average_over_copies()] if hard else [], dual_clip=dual, **clip
        ),
        experience=experience(
            draw=tools.branching_draw(round_tokens, **branches),
            stages=[reward_two_tools(tool_bonus)] if tool_bonus else [],
        ),
    )


METHOD = Method(
    arpo,
    changes="sampling, reward",
    shown=Shown(
        "noted_calculations", "experience/forked_rows", without={"base": 0.0, "weight": 0.0}
    ),
)
