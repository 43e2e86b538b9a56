"""EPO: an entropy bonus for agents, with a penalty for entropies unlike those of the past.

"EPO: Entropy-regularized Policy Optimization for LLM Agents Reinforcement Learning",
https://github.com/WujiangXu/EPO

    loss = Σ PPO clip with dual clip / Σ n_i - λ [mean H - β w mean P]
    P_t  = 0 if κ_l H̄_s < H_t < κ_r H̄_s, else a;   w falls from 1 to 0.04 over training

H̄_s is the mean over past updates of the mean entropy at step s of an episode. A row is one step: a
turn of the policy after all earlier turns and replies, with the reward of its episode. The symbols
λ, β, κ_l, κ_r and a are `entropy_coefficient`, `smooth_coefficient`, `band_low`, `band_high`,
`penalty`.

P results from a comparison and has no gradient. EPO as coded therefore trains like an entropy bonus
of λ, and this recipe follows the code. `hinge=True` is ours: P is a times the distance to the band.
It then has a gradient, which exceeds the bonus if β w a > 1. `per_rollout=True` compares the mean
entropy of a row. The authors' code averages it over pads, here only over tokens.

The penalty begins when a batch has rows in the second half of an episode. Past means and w change
with every update; the authors' change once per batch and once per epoch. The authors' κ is 0.8 /
1.2 in the config, 0.5 / 1.5 in the scripts and 0 / 2 in the README. For ScienceWorld, a is 0.05.
They enable w by a flag; here it is always on.

Reports: Qwen2.5-3B and 7B, relative to PPO and GRPO: up to 152 % on ScienceWorld and 19.8 % on
ALFWorld (abstract).
Traps: Without `hinge`, the penalty only moves the curve of the loss. The band is around an all-time
mean, which lags a falling entropy.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.experience import Draw, experience, turns
from rlvr_jax.experience.batch import Batch, by_trace
from rlvr_jax.methods._tools import Tools
from rlvr_jax.objectives import GIVEN, Transform, clipped_objective, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_count, masked_mean, masked_sum
from rlvr_jax.tools.environment import Environment, Game
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, declare, part, replace
from rlvr_jax.types.fields import where_tokens
from rlvr_jax.types.hyperparameters import (
    AtLeastTwo,
    ClipHigh,
    ClipLow,
    Count,
    DualClip,
    EntropyCoefficient,
    Epsilon,
    Finite,
    NonNegative,
    ReplyTokens,
)

declare("env_step", Int[Array, "B"], "step of its episode at which the row was sampled")


@part(writes={"penalty"})
def banded_entropy_bonus(
    entropy_coefficient: EntropyCoefficient = 0.001,
    smooth_coefficient: Finite = 1.0,
    band_low: float = 0.8,
    band_high: float = 1.2,
    penalty: NonNegative = 0.1,
    per_rollout: bool = False,
    hinge: bool = False,
    max_steps: Count = 50,
    max_epochs: AtLeastTwo = 150,
) -> Transform:
    """Adds an entropy bonus less a penalty outside the band: penalty' = penalty - λ (H - β w P).

    P is `band_penalty`, w the `phase_weight` of an epoch per update. Without a hinge P changes only
    the reported loss, and the gradient is that of `entropy_bonus(λ)`. With a hinge P pulls
    entropies back to the band. The state is updated after the comparison, by the entropies of
    sampling time.

    Args:
      entropy_coefficient: weight of the bracket (λ).
      smooth_coefficient: weight of the penalty in the bracket (β).
      band_low, band_high: edges of the band, relative to the past mean (κ_l, κ_r).
      penalty: outside the band (a); with a hinge per nat of the distance to the band.
      per_rollout: compare the mean entropy of a row instead of each token's.
      hinge: whether the penalty grows with the distance and has a gradient (ours).
      max_steps: longest episode (S); later steps count as the last one. 50 is the default of the
        authors' code.
      max_epochs: updates over which w falls: epochs times updates per epoch.
    Metrics: band_penalty (mean of the penalty P), band_weight (weight w of the epoch).
    Raises:
      ValueError: band_low not below band_high.
    """
    if not band_low < band_high:
        raise ValueError(
            f"banded_entropy_bonus: band_low must be below band_high {band_high}, got {band_low}"
        )
    band = dict(low=band_low, high=band_high, size=penalty, per_rollout=per_rollout, hinge=hinge)

    def init(spec):
        no_updates = jnp.zeros((), jnp.int32)
        return BandState(jnp.zeros(max_steps, float), jnp.zeros(max_steps, jnp.int32), no_updates)

    def apply(signals, context, state):
        entropy, mask = context.stats.entropy, signals.mask
        env_step = jnp.clip(context.rollouts.records["env_step"], 0, max_steps - 1)
        outside = band_penalty(entropy, mask, env_step, state, **band)
        weight = phase_weight(jnp.minimum(state.update, max_epochs), max_epochs, entropy.dtype)
        change = entropy_coefficient * (entropy - smooth_coefficient * weight * outside)
        mean, there = step_entropy(context.rollouts.entropy, mask, env_step, max_steps)
        # The state enters no loss, where NaN would be noticed.
        there = there & jnp.isfinite(mean)
        state = BandState(
            state.total + jnp.where(there, mean, 0).astype(state.total.dtype),
            state.count + there.astype(jnp.int32),
            state.update + jnp.any(mask).astype(jnp.int32),
        )
        metrics = {"band_penalty": masked_mean(outside, mask), "band_weight": weight}
        return replace(signals, penalty=signals.penalty - change), state, metrics

    return Transform(apply, init=init, reads={"entropy", "env_step", "sampled_entropy"})


class BandState(NamedTuple):
    """Entropies of past updates at each step of an episode.

    Fields:
      total: [S], sum over past updates of the mean entropy at the step, nats.
      count: [S], int, updates that had rows at the step.
      update: number of updates so far.
    """

    total: Float[Array, "S"]
    count: Int[Array, "S"]
    update: Int[Array, ""]


def band_penalty(
    entropy: Float[Array, "B T"],
    mask: Bool[Array, "B T"],
    env_step: Int[Array, "B"],
    state: BandState,
    *,
    low: float,
    high: float,
    size: float,
    per_rollout: bool = False,
    hinge: bool = False,
) -> Float[Array, "B T"]:
    """P: 0 where κ_l H̄_s < H < κ_r H̄_s, else a, with H̄_s the past mean at the row's step s.

    In a batch without a row of s ≥ ⌊S / 2⌋ P is 0. Before the first update it is 1, and at steps
    that never occurred it is 0. It has no gradient. The hinge has one: outside the band it is a
    times the distance to the band.

    Args:
      entropy: H, nats.
      mask: response tokens that count, bool [B, T].
      env_step: s, of each row.
      state: of the past; S is its length.
      low, high: edges of the band, relative to the past mean (κ_l, κ_r).
      size: penalty outside the band; with a hinge, per nat of the distance (a).
      per_rollout: compare the mean entropy of a row with the band, not that of each token.
      hinge: penalty in proportion to the distance to the band, with a gradient.
    """
    steps = state.count.shape[0]
    past = state.total.astype(entropy.dtype) / jnp.maximum(state.count, 1).astype(entropy.dtype)
    wanted, seen = past[env_step][:, None], (state.count > 0)[env_step][:, None]
    if per_rollout:
        own = jnp.broadcast_to(masked_mean(entropy, mask, axis=1)[:, None], mask.shape)
    else:
        own = entropy
    inside = (low * wanted < own) & (own < high * wanted)
    outside = jnp.asarray(size, entropy.dtype)
    if hinge:
        outside = size * jnp.where(own < high * wanted, low * wanted - own, own - high * wanted)
    penalty = jnp.where(seen & ~inside, outside, 0)
    late = jnp.any(has_tokens(mask) & (env_step >= steps // 2))
    return jnp.where(late, jnp.where(jnp.any(state.count > 0), penalty, 1), 0)


def phase_weight(
    epoch: Int[Array, "..."], max_epochs: int, dtype: DTypeLike = float
) -> Float[Array, "..."]:
    """w = 1 - 0.2 (1 - e^(-2 p)) in the first half of training, 0.8 e^(-3 p') in the second.

    p and p' run from 0 to 1 over their half; w jumps from 0.827 to 0.8 in the middle.

    Args:
      epoch: at most `max_epochs`.
    """
    half = max_epochs // 2
    epoch = jnp.asarray(epoch).astype(dtype)
    early = 1 - 0.2 * (1 - jnp.exp(-2 * epoch / half))
    late = 0.8 * jnp.exp(-3 * (epoch - half) / (max_epochs - half))
    return jnp.where(epoch <= half, early, late)


def step_entropy(
    entropy: Float[Array, "B T"], mask: Bool[Array, "B T"], env_step: Int[Array, "B"], steps: int
) -> tuple[Float[Array, "S"], Bool[Array, "S"]]:
    """Mean entropy of the tokens at each step of an episode, and at which steps there are any.

    Args:
      entropy: of the tokens, nats, [B, T].
      mask: response tokens that count, bool [B, T].
      env_step: of each row; later ones count as the last.
      steps: number of steps of the longest episode (S).
    """
    env_step = jnp.clip(env_step, 0, steps - 1)
    total = jax.ops.segment_sum(masked_sum(entropy, mask, axis=1), env_step, num_segments=steps)
    count = jax.ops.segment_sum(masked_count(mask, axis=1), env_step, num_segments=steps)
    return total / jnp.maximum(count, 1).astype(total.dtype), count > 0


@part
def turn_rows(
    environment: Environment | Game | None = None,
    limit: Count = 8,
    reply_tokens: ReplyTokens = 512,
    **sampling: Any,
) -> Draw:
    """Writes responses as `turns` does, and makes a row of each turn of the policy.

    A row has all text up to the end of its turn and trains only that turn, in the context of
    sampling. `env_step` counts the turns of a response from 0. The rows of a response share one
    `trace` and are in order. The last one is graded. `truncated` is that of the whole response.

    Args:
      environment, limit, reply_tokens, sampling: as for `turns`; a response has at most `limit` + 1
        rows.
    Metrics: those of `turns`.
    """
    whole = turns(environment, limit, reply_tokens, **sampling)

    def apply(requests, actor, state, turn):
        batch, state, metrics = whole.apply(requests, actor, state, turn)
        turns_of = batch.rollouts.records["turn"]
        last = np.where(turns_of % 2 == 0, turns_of // 2, -1).max(axis=1)
        parts, traces = [], []
        for step in range(int(last.max(initial=0)) + 1):
            rows = np.flatnonzero(np.maximum(last, 0) >= step)
            parts.append(_rows_of(batch.take(rows), step, last[rows] <= step))
            traces.append(rows)
        made = by_trace(parts, np.concatenate(traces), requests)
        return replace(made, sample_seconds=batch.sample_seconds), state, metrics

    return replace(
        whole, apply=apply, most=float(limit + 1), splits=True, writes=whole.writes | {"env_step"}
    )


def _rows_of(batch: Batch, step: int, last: np.ndarray) -> Batch:
    """The rows of one turn.

    Args:
      last: bool [B], responses that end with it.
    """
    rollouts = batch.rollouts
    places = np.arange(rollouts.tokens.shape[1])[None]
    turn, origin = rollouts.records["turn"], rollouts.records["origin"]
    own = turn == 2 * step
    length = np.where(last, rollouts.length, np.max(np.where(own, places + 1, 0), axis=1))
    there = places < length[:, None]
    before = there & ~own & (origin == 0)
    # Earlier tokens stay as context; their records belong to other rows.
    changed = {
        name: where_tokens(there if name == "tokens" else own, array)
        for name, array in rollouts.token_arrays.items()
        if name not in ("turn", "origin", "temperature")
    }
    return batch.with_rollouts(
        **changed,
        length=length.astype(np.int32),
        turn=np.where(there, turn, -1).astype(np.int32),
        origin=np.where(there, np.where(before, GIVEN, origin), 0).astype(np.int32),
        env_step=np.full(len(batch), step, np.int32),
    )


@arguments_of(Tools, "style", "reply_tokens", "describe", into="tools", tools=None)
@arguments_of(banded_entropy_bonus)
def epo(
    max_steps: AtLeastTwo = 50,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
    dual_clip: DualClip = 3.0,
    *,
    tools: Tools,
    **band: Any,
) -> Recipe:
    """Applies GRPO with the token mean and a bonus for entropy inside a band of past entropies.

    Args:
      max_steps: longest episode (S). A batch may have that many rows for each response, and updates
        are compiled for them.
    """
    bonus = banded_entropy_bonus(**band, max_steps=max_steps)
    return Recipe(
        objective=clipped_objective(
            clip_low, clip_high, epsilon=epsilon, dual_clip=dual_clip, regularizers=[bonus]
        ),
        experience=experience(draw=replace(tools, max_turns=max_steps - 1).draw(turn_rows)),
    )


METHOD = Method(
    epo,
    changes="sampling, regularizer",
    # The band acts from half of the longest episode on, and a calculation takes few turns.
    shown=Shown(
        "noted_calculations",
        "band_penalty",
        without="verltool",
        hyperparameters={"max_steps": 3},
    ),
)
