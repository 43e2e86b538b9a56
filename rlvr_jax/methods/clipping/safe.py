"""SAFE: PPO with two pessimistic critics and a KL threshold that follows the reward.

"SAFE: Stable Alignment Finetuning with Entropy-Aware Predictive Control for RLHF",
https://github.com/ryyzn9/SAFE

    V    = -α (logsumexp(-v_1 / α, -v_2 / α) - log 2)
    A_i  = (R_i - V_i - mean) / (std + 1e-8), over the batch, std with B - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 ± ε)) / Σ n_i - c_H mean H + P
    P    = 0.1 max(KL_short - τ, 0)² max(½, 2 / (H_old + 0.1))

KL_short is a running mean of the KL to the reference; the threshold τ comes from a controller
(`control_kl`: PID on the reward's velocity, wider while the reward climbs). In the authors' code P
is a number without gradient, so the controller changes nothing but the logged loss;
`trained_penalty=True` puts the KL of the batch into the square and lets it act. They call the
controller once per pass over a batch, and average the entropy over pads too; we average over the
tokens. Defaults are theirs (Qwen2.5-3B, hh-rlhf, learning rate 1e-5, 2 passes per batch of 16).
The critics are two heads on the policy's hidden state at the last token, fitted after each batch
by `huber_value_loss` with weight ½, which leaves the policy alone: that they have no network below
them is ours. In the authors' code they read the last column, padding or not.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

from rlvr_jax.objectives.advantages.group_relative import rollout_advantage
from rlvr_jax.objectives.advantages.returns import is_last_token
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.arguments import check_positive
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.regularizers.token_penalties import entropy_bonus
from rlvr_jax.objectives.scorers import Scorer
from rlvr_jax.objectives.statistics.groups import batch_mean, batch_std, group_has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Count,
    NonNegative,
    Positive,
    Temperature,
)
from rlvr_jax.types.parts import part


def soft_min(values: Float[Array, "... K"], temperature: float) -> Float[Array, "..."]:
    """-α (logsumexp_k(-v_k / α) - log K), between the smallest and the mean of the K values.

    Args:
      values: the critics' estimates along the last axis.
      temperature: α, positive; 0 would be the minimum, infinity the mean.
    """
    pooled = jax.nn.logsumexp(-values / temperature, axis=-1)
    return -temperature * (pooled - jnp.log(jnp.asarray(values.shape[-1], values.dtype)))


@part
def pessimistic_advantage(temperature: Positive = 0.3, epsilon: Positive = 1e-8) -> Transform:
    """A_i = R_i - soft minimum of the row's critics, standardised over the rows of the batch.

    A' = (A - mean) / (std + ε), std with n - 1. The baseline is a critic's and not the group's: in
    groups of equal rewards the advantages are not 0, and groups of one are trained on.

    Args:
      temperature: α of the soft minimum, positive.
      epsilon: ε, added to the standard deviation.
    """

    def advantage(rollouts):
        excess = rollouts.reward - soft_min(rollouts.critic_values, temperature)
        group = rollouts.group
        counted = group_has_tokens(rollouts.mask, group)
        centered = excess - batch_mean(excess, group, counted)
        return centered / (batch_std(excess, group, counted) + epsilon)

    return rollout_advantage(advantage, reads={"critic_values"})


def huber(values: Float[Array, "..."], width: float) -> Float[Array, "..."]:
    """x² / 2 for |x| ≤ δ, else δ (|x| - δ / 2).

    Args:
      width: δ, positive.
    """
    size = jnp.abs(values)
    return jnp.where(size <= width, values**2 / 2, width * (size - width / 2))


def huber_value_loss(
    values: Float[Array, "B"],
    old_values: Float[Array, "B"],
    reward: Float[Array, "B"],
    clip: float = 0.2,
    width: float = 0.5,
) -> Float[Array, "B"]:
    """½ (h(V - R) + h(V_old + clip(V - V_old, ±ε) - R)) per rollout: a sum, not a maximum.

    Args:
      values: V, of the critic that is fitted.
      old_values: V_old, of the same critic when the batch was drawn.
      reward: R.
      clip: ε, half-width of the region around V_old.
      width: δ of the Huber function h.
    Raises:
      ValueError: clip or width not positive.
    """
    check_positive("huber_value_loss", clip=clip, width=width)
    near = old_values + jnp.clip(values - old_values, -clip, clip)
    return (huber(values - reward, width) + huber(near - reward, width)) / 2


WARMUP, CLIMBING, PLATEAU, CONVERGED = 0, 1, 2, 3


WINDOW = 50  # calls that a phase is read from


PHASE_FACTORS = (1.5, 1.2, 0.8, 1.0)  # of the threshold, by phase


ENTROPY_OFFSET = 0.1


class KLControlState(NamedTuple):
    """What the controller remembers.

    Fields:
      kl_short, kl_long: running means of the KL with factors 0.9 and 0.99, from 0.
      reward_mean: running mean of the reward with factor 0.95, from the first reward.
      integral, last_error: of the PID rule.
      rewards: [100], the last rewards, newest last.
      count: number of calls.
    """

    kl_short: Float[Array, ""]
    kl_long: Float[Array, ""]
    reward_mean: Float[Array, ""]
    integral: Float[Array, ""]
    last_error: Float[Array, ""]
    rewards: Float[Array, "100"]
    count: Int[Array, ""]


class KLControl(NamedTuple):
    """What one call of the controller decides.

    Fields:
      phase: WARMUP, CLIMBING, PLATEAU or CONVERGED.
      pid: output of the PID rule, added to the threshold; 0 at the first call.
      threshold: of `kl_short`, in nats.
      entropy_factor: of the penalty, 1 where there is none.
      penalty: from `kl_short`, a number without gradient.
    """

    phase: Int[Array, ""]
    pid: Float[Array, ""]
    threshold: Float[Array, ""]
    entropy_factor: Float[Array, ""]
    penalty: Float[Array, ""]


def initial_kl_control(dtype: DTypeLike = float) -> KLControlState:
    """The state before the first call."""
    zero = jnp.zeros((), dtype)
    return KLControlState(
        zero, zero, zero, zero, zero, jnp.zeros(2 * WINDOW, dtype), jnp.zeros((), jnp.int32)
    )


def excess_kl_penalty(
    kl: Float[Array, ""],
    entropy: Float[Array, ""],
    threshold: Float[Array, ""] | float,
    coefficient: float = 0.1,
    strength: float = 2.0,
) -> Float[Array, ""]:
    """c · max(KL - τ, 0)² · max(½, s / (H + 0.1)).

    Args:
      kl: mean KL, nats; may carry a gradient.
      entropy: H, mean entropy, nats.
      threshold: τ, nats.
      coefficient: c.
      strength: s.
    """
    excess = jnp.maximum(kl - threshold, 0)
    return coefficient * excess**2 * _entropy_factor(entropy, strength)


def control_kl(
    state: KLControlState,
    kl: Float[Array, ""],
    entropy: Float[Array, ""],
    reward: Float[Array, ""],
    *,
    base: float = 0.3,
    gains: tuple[float, float, float] = (0.3, 0.01, 0.05),
    coefficient: float = 0.1,
    strength: float = 2.0,
) -> tuple[KLControl, KLControlState]:
    """One call of the controller.

    With m the running mean of the reward: e = (m' - m) - 0.001, I' = clip(I + e, ±1),
    pid = k_p e + k_i I' + k_d (e - e_last), all 0 at the first call. The phase is WARMUP with fewer
    than 50 rewards, CLIMBING if the last 50 average more than 0.01 above the 50 before, CONVERGED
    if they spread less than 0.02 (population) around more than 0.7, else PLATEAU; with fewer than
    100 rewards "the 50 before" are the last 50. τ = clip((τ_0 + pid) · factor of the phase, 0.1,
    0.6).

    Args:
      state: before the call.
      kl, entropy, reward: means of the batch; nats, nats, reward.
      base: τ_0, nats; the threshold that comes of it is held within 0.1 and 0.6.
      gains: k_p, k_i, k_d.
      coefficient, strength: as in `excess_kl_penalty`.
    Returns:
      What is decided, and the state after the call.
    """
    first = state.count == 0
    kl_short = 0.9 * state.kl_short + 0.1 * kl
    kl_long = 0.99 * state.kl_long + 0.01 * kl
    reward_mean = jnp.where(first, reward, 0.95 * state.reward_mean + 0.05 * reward)
    error = jnp.where(first, 0, reward_mean - state.reward_mean - 0.001)
    integral = jnp.clip(state.integral + error, -1, 1)
    proportional, integrating, derivative = gains
    pid = proportional * error + integrating * integral + derivative * (error - state.last_error)
    pid = jnp.where(first, 0, pid)

    rewards = jnp.concatenate([state.rewards[1:], reward[None]])
    count = state.count + 1
    phase = _phase(rewards, count)
    factor = jnp.asarray(PHASE_FACTORS, kl_short.dtype)[phase]
    threshold = jnp.clip((base + pid) * factor, 0.1, 0.6)
    active = kl_short > threshold
    decided = KLControl(
        phase,
        pid,
        threshold,
        jnp.where(active, _entropy_factor(entropy, strength), 1),
        excess_kl_penalty(kl_short, entropy, threshold, coefficient, strength),
    )
    return decided, KLControlState(kl_short, kl_long, reward_mean, integral, error, rewards, count)


@part(writes={"term"})
def predictive_kl_penalty(
    coefficient: NonNegative = 0.1,
    base: NonNegative = 0.3,
    strength: NonNegative = 2.0,
    gains: tuple[float, float, float] = (0.3, 0.01, 0.05),
    trained: bool = False,
) -> Transform:
    """Adds the controlled penalty for the mean KL of the batch to the loss.

    KL = mean of logp - reference_logp over the tokens; the entropy is that of the sampler. In the
    authors' code the penalty is a plain number made from the running mean of the KL: it changes the
    logged loss and no gradient. With `trained` the KL of the batch, with its gradient, is compared
    with the threshold instead. A batch without tokens adds nothing and is not remembered.

    Args:
      coefficient, strength: as in `excess_kl_penalty`.
      base, gains: as in `control_kl`.
      trained: whether the penalty acts on the policy.
    Metrics: kl_short, kl_threshold (nats), kl_phase.
    """

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        kl = masked_mean(context.stats.logp - rollouts.reference_logp, mask)
        entropy = masked_mean(rollouts.entropy, mask)
        memory = state.kl_short.dtype
        decided, moved = control_kl(
            state,
            jax.lax.stop_gradient(kl).astype(memory),
            entropy.astype(memory),
            masked_mean(rollouts.reward, group_has_tokens(mask, rollouts.group)).astype(memory),
            base=base,
            gains=gains,
            coefficient=coefficient,
            strength=strength,
        )
        penalty = decided.penalty.astype(kl.dtype)
        if trained:
            threshold = decided.threshold.astype(kl.dtype)
            penalty = excess_kl_penalty(kl, entropy, threshold, coefficient, strength)
        any_token = jnp.any(mask)
        signals = replace(signals, term=signals.term + jnp.where(any_token, penalty, 0))
        state = jax.tree.map(lambda new, old: jnp.where(any_token, new, old), moved, state)
        metrics = {
            "kl_short": moved.kl_short,
            "kl_threshold": decided.threshold,
            "kl_phase": decided.phase,
        }
        return signals, state, metrics

    reads = frozenset({"logp", "reference_logp", "sampled_entropy", "batch_statistics"})
    return Transform(apply, init=lambda spec: initial_kl_control(), reads=reads)


def _entropy_factor(entropy, strength):
    return jnp.maximum(0.5, strength / (entropy + ENTROPY_OFFSET))


def _phase(rewards, count):
    recent, before = rewards[WINDOW:], rewards[:WINDOW]
    mean = jnp.mean(recent)
    earlier = jnp.where(count >= 2 * WINDOW, jnp.mean(before), mean)
    phase = jnp.where((jnp.std(recent) < 0.02) & (mean > 0.7), CONVERGED, PLATEAU)
    phase = jnp.where(mean > earlier + 0.01, CLIMBING, phase)
    return jnp.where(count < WINDOW, WARMUP, phase).astype(jnp.int32)


@part
def pessimistic_scorer(
    temperature: Positive = 0.3, clip: Positive = 0.2, width: Positive = 0.5, heads: Count = 2
) -> Scorer:
    """Critics of whole responses: linear heads on the normalized hidden state of the last token.

    The heads begin at random, each otherwise. Together they are fitted by half the
    `huber_value_loss` of their `soft_min`, with the reward for a target.

    Args:
      temperature: α of the soft minimum, positive.
      clip: half-width of the region around the soft minimum when the batch was drawn.
      width: of the Huber function.
      heads: critics, at least 1.
    """

    def init(key, width, dtype):
        weight = jax.random.normal(key, (width, heads), dtype) / jnp.sqrt(width).astype(dtype)
        return {"weight": weight, "bias": jnp.zeros((heads,), dtype)}

    def score(params, states, rollouts):
        last = is_last_token(rollouts.mask)
        state = jnp.sum(jnp.where(last[:, :, None], states[:, 1:], 0), axis=1)
        found = jax.nn.standardize(state) @ params["weight"].astype(state.dtype)
        values = found + params["bias"].astype(state.dtype)[None]
        return jnp.where(jnp.any(last, axis=1)[:, None], values, 0)

    def fit(params, states, rollouts):
        values = soft_min(score(params, states, rollouts), temperature)
        then = soft_min(rollouts.critic_values, temperature)
        losses = huber_value_loss(values, then, rollouts.reward, clip, width) / 2
        return losses, jnp.any(rollouts.mask, axis=1).astype(losses.dtype)

    return Scorer(init, score, fit, writes="critic_values")


def safe(
    temperature: Temperature = 0.3,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    entropy_coefficient: float = 0.01,
    penalty_coefficient: float = 0.1,
    base_threshold: float = 0.3,
    penalty_strength: float = 2.0,
    trained_penalty: bool = False,
    value_clip: float = 0.2,
    huber_width: float = 0.5,
) -> Recipe:
    """PPO on rewards minus the soft minimum of two critics, with a controlled KL penalty.

    Args:
      entropy_coefficient: weight of the mean entropy (c_H).
      penalty_coefficient: weight of the penalty; with 0 there is no controller and no reference.
      base_threshold: of the KL before the controller moves it, nats; the threshold stays within
        0.1 and 0.6 whatever it is.
      penalty_strength: of the penalty where the entropy is low.
      trained_penalty: whether the penalty has a gradient.
      value_clip, huber_width: of the critics' loss (`pessimistic_scorer`).
    """
    bonus = entropy_bonus(entropy_coefficient)
    control = predictive_kl_penalty(
        penalty_coefficient, base_threshold, penalty_strength, trained=trained_penalty
    )
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=pessimistic_advantage(temperature),
            regularizers=[bonus, control] if penalty_coefficient else [bonus],
        ),
        critic=pessimistic_scorer(temperature, value_clip, huber_width),
    )


METHOD = Method(
    safe,
    "SAFE: Stable Alignment Finetuning with Entropy-Aware Predictive Control for RLHF",
    "https://github.com/ryyzn9/SAFE",
    changes="advantage, regularizer",
    baseline="other",
    left_out="running normalisation of the reward",
    reports="a 3B model: training reward 0.725, PPO's 0.689, with hardly any crash",
    traps=(
        "by default, as in their code, the KL penalty has no gradient and its controller changes "
        "nothing: `trained_penalty=True`; the entropy may raise it 20 times; their phases count "
        "passes, not steps"
    ),
)
