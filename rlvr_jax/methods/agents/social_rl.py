"""Advantage alignment: after good turns, an agent favours the gains of the other agent.

"Learning Robust Social Strategies with Large Language Models", after the released code of
https://github.com/jduquevan/advantage-alignment

    Â_n  = δ_n + γλ Â_{n+1}, δ_n = r_n + γ V_{n+1} - V_n, over the turns of an agent
    A'_n = A_n + w (1/n) Σ_{m < n} A_m · A^other_n, A the whitened Â, n from 0
    loss = Σ max(-A' ρ, -A' clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

The task's environment is a game of two players. The players are neighbouring rows of a group with
shared weights. One policy is trained on both sides, with the moves of the other side as context. A
turn is all tokens of one move. Its payoff is r_n, the critic's value of its first token is V_n, and
w is `weight`. Advantages are whitened over tokens.

Constants are those of the released code, whose turns are single actions. The paper of that code has
β γ Σ γ^{n-m} A_m in place of the mean. The language-model paper replaces the critic by a mean over
parallel games. We have `leave_one_out()` for it; its exact form was not found.

Left out: players of different weights; rewards for listening and speaking.
Reports: In social dilemmas (Trust-and-Split), the joint payoff is higher and greedy agents do not
exploit the policy (no numbers).
Traps: Products of whitened advantages have heavy tails. If rewards are summed over players,
cooperation is imposed, not learned.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.experience import experience, turns
from rlvr_jax.objectives import (
    Transform,
    critic_of,
    generalized_advantages,
    group_rank,
    masked_mean,
    whitened,
)
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.groups import group_count
from rlvr_jax.objectives.statistics.steps import Steps, at_tokens, find_steps, step_mean, step_sum
from rlvr_jax.types import Method, Recipe, Rollouts, Shown, part, replace
from rlvr_jax.types.hyperparameters import (
    Bound,
    ClipHigh,
    ClipLow,
    Finite,
    MaxTurns,
    ReplyTokens,
    Unit,
)


@part(writes={"advantage"})
def aligned_with_partner(estimator: Transform, weight: Finite = 1.0) -> Transform:
    """A'_n = A_n + w · past_n · A^other_n, the advantage-alignment term of the released code.

    A_n is the mean over the tokens of a turn, and all of them get A'_n. Products of normalized
    advantages have heavy tails.

    Args:
      estimator: of the own advantage A.
      weight: weight of the alignment term (w).
    Metrics: those of the estimator; alignment_term (mean of |w · past · A^other| over the tokens).
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        signals, state, metrics = estimator.apply(signals, context, state)
        turns = find_steps(rollouts.records["turn"], signals.mask)
        own = step_mean(jnp.where(signals.mask, signals.advantage, 0), turns)
        partner = partner_row(rollouts.group, rollouts.rollout_id)
        term = weight * alignment_term(past_mean(own), own, partner)
        size = masked_mean(jnp.abs(at_tokens(term, turns)), signals.mask)
        aligned = at_tokens(own + term, turns)
        return (
            replace(signals, advantage=aligned),
            state,
            {**metrics, "alignment_term": size},
        )

    # The partner's row is read, whose old log-probs may be those of the current pass.
    pooled = {"batch_statistics"} if "logp" in estimator.reads else set()
    return Transform(
        apply,
        init=estimator.init,
        reads=estimator.reads | pooled | {"turn"},
        remark=estimator.remark,
        options=estimator.options,
    )


def partner_row(group: Int[Array, "B"], rollout_id: Int[Array, "B"]) -> Int[Array, "B"]:
    """Row of the other agent of the game; -1 if there is none."""
    order = jnp.lexsort((rollout_id, group)).astype(jnp.int32)
    rank = group_rank(rollout_id, group, rollout_id)
    start = jnp.searchsorted(jnp.sort(group), group).astype(jnp.int32)
    other = rank ^ 1
    exists = other < group_count(group)
    return jnp.where(exists, order[jnp.where(exists, start + other, 0)], -1)


def past_mean(advantage: Float[Array, "B T"]) -> Float[Array, "B T"]:
    """(1/n) Σ_{m < n} A_m; 0 in the first column."""
    before = jnp.cumsum(advantage, axis=1) - advantage
    number = jnp.arange(advantage.shape[1]).astype(advantage.dtype)
    return before / jnp.maximum(number, 1)[None]


def alignment_term(
    past: Float[Array, "B T"], advantage: Float[Array, "B T"], partner: Int[Array, "B"]
) -> Float[Array, "B T"]:
    """The past times the other agent's present advantage; 0 for a row without partner.

    Args:
      past: `past_mean` of the row's own advantages.
      advantage: 0 where there is none.
      partner: of `partner_row`.
    """
    return jnp.where((partner >= 0)[:, None], past * advantage[partner], 0)


@part(reads={"process_reward", "values", "turn"}, writes={"advantage"}, once=True)
def generalized_turn_advantage(discount: Unit = 1.0, trace_decay: Unit = 1.0) -> Transform:
    """Â_n = δ_n + γλ Â_{n+1}, δ_n = r_n + γ V_{n+1} - V_n over the turns n, at every token of n.

    r_n is the sum of the turn's `process_reward`; after the last turn V and Â are 0.

    Args:
      discount, trace_decay: γ and λ, per turn.
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        turns = find_steps(rollouts.records["turn"], signals.mask)
        rewards = step_sum(rollouts.records["process_reward"], turns)
        values = _first(rollouts.records["values"], turns)
        table = generalized_advantages(rewards, values, turns.exists, discount, trace_decay)
        return replace(signals, advantage=at_tokens(table, turns)), state, {}

    return apply


def turn_values(rollouts: Rollouts) -> Float[Array, "B T"]:
    """V_n, the value of the turn's first token, at each of its tokens."""
    turns = find_steps(rollouts.records["turn"], rollouts.mask)
    return at_tokens(_first(rollouts.records["values"], turns), turns)


def _first(values: Float[Array, "B T"], turns: Steps) -> Float[Array, "B T"]:
    """The entry of each turn's first token, as a table; 0 where there is no turn."""
    rows, width = values.shape
    row = jnp.arange(rows, dtype=jnp.int32)[:, None]
    column = jnp.broadcast_to(jnp.arange(width, dtype=jnp.int32)[None], (rows, width))
    own = jnp.where(turns.member, turns.index, width)
    earliest = jnp.full((rows, width), width, jnp.int32).at[row, own].min(column, mode="drop")
    at = jnp.where(turns.exists, earliest, 0)
    return jnp.where(turns.exists, jnp.take_along_axis(values, at, axis=1), 0)


def social_rl(
    weight: Finite = 1.0,
    discount: Unit = 0.99,
    trace_decay: Unit = 0.95,
    clip_low: ClipLow = 0.1,
    clip_high: ClipHigh = 0.1,
    max_turns: MaxTurns = 16,
    reply_tokens: ReplyTokens = 64,
    value_clip: Bound = 0.2,
) -> Recipe:
    """Adds the product of the agent's past and the other's present advantages.

    Args:
      weight: weight of the product (w).
      discount, trace_decay: γ and λ, per turn.
      max_turns: maximum number of replies to a player.
      value_clip: half-width of the critic's trust region.
    """
    estimator = generalized_turn_advantage(discount, trace_decay)
    return Recipe(
        objective=clipped_objective(
            clip_low, clip_high, advantage=aligned_with_partner(whitened(estimator), weight)
        ),
        experience=experience(draw=turns(limit=max_turns, reply_tokens=reply_tokens)),
        critic=critic_of(estimator, value_clip, turn_values),
    )


METHOD = Method(
    social_rl,
    changes="sampling, advantage",
    baseline="other",
    evidence="reconstruction",
    shown=Shown(
        "dilemma:form=signs",
        "alignment_term",
        without={"weight": 0},
        settings={
            "learning_rate": 3e-4,
            "warmup_updates": 0,
            "prompts_per_step": 16,
            "samples_per_prompt": 8,
            "response_tokens": 40,
        },
    ),
)
