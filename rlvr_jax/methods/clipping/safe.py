"""SAFE: PPO with two pessimistic critics and a KL threshold that follows the reward.

"SAFE: Stable Alignment Finetuning with Entropy-Aware Predictive Control for RLHF",
https://github.com/ryyzn9/SAFE

    V    = -α (logsumexp(-v_1 / α, -v_2 / α) - log 2)
    A_i  = (R_i - V_i - mean) / (std + 1e-8), over the batch, std with B - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 ± ε)) / Σ n_i - c_H mean H + P
    P    = 0.1 max(KL_short - τ, 0)² max(½, 2 / (H_old + 0.1))

KL_short is a running mean of the KL to the reference, H_old the mean entropy of the sampler. A
controller computes the threshold τ (`control_kl`): PID on the change of the reward, wider while the
reward rises. In the authors' code P has no gradient, so the controller changes only the logged
loss. The option `trained_penalty=True` puts the KL of the batch into the square, so that P has a
gradient. The authors call the controller once per pass over a batch. They also average the entropy
over padding, this recipe only over tokens. Defaults are theirs (Qwen2.5-3B, hh-rlhf, learning rate
1e-5, 2 passes per batch of 16).

The critics are two heads on the policy's hidden state at the last token. Critics without a separate
network are ours. They are fitted after each batch, with weight ½ and without gradient to the
policy. In the authors' code they read the last column, even if it is padding.

Left out: running normalization of the reward.
Reports: a 3B model: training reward 0.725 (PPO: 0.689), with few crashes.
Traps: By default the KL penalty has no gradient. With `trained_penalty=True` its gradient has the
mean zero at the sampling policy, so it does not pull to the reference. A low entropy may raise the
penalty 20 times. The phases of the controller count passes, not steps.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.objectives import Scorer, Transform, entropy_bonus, is_last_token, masked_mean, part
from rlvr_jax.objectives.advantages.group_relative import rollout_advantage
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.groups import batch_mean, batch_std, group_has_tokens
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe, Rows, replace
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    EntropyCoefficient,
    NonNegative,
    Positive,
)


@part
def pessimistic_advantage(temperature: Positive = 0.3) -> Transform:
    """A_i; the baseline is a critic's, so groups of one and of equal rewards are also trained."""

    def advantage(rollouts):
        excess = rollouts.reward - soft_min(rollouts.records["critic_values"], temperature)
        group = rollouts.group
        counted = group_has_tokens(rollouts.mask, group)
        centered = excess - batch_mean(excess, group, counted)
        return centered / (batch_std(excess, group, counted) + 1e-8)

    return rollout_advantage(advantage, reads={"critic_values"})


def soft_min(values: Float[Array, "... K"], temperature: float) -> Float[Array, "..."]:
    """-α (logsumexp_k(-v_k / α) - log K), between the minimum (α → 0) and the mean (α → ∞)."""
    pooled = jax.nn.logsumexp(-values / temperature, axis=-1)
    return -temperature * (pooled - jnp.log(jnp.asarray(values.shape[-1], values.dtype)))


@part(writes={"term"})
def predictive_kl_penalty(
    coefficient: NonNegative = 0.1,
    base: NonNegative = 0.3,
    strength: NonNegative = 2.0,
    trained: bool = False,
) -> Transform:
    """Adds P to the loss; a batch without tokens adds nothing and does not change the state.

    Args:
      coefficient: weight of the penalty (c).
      base: threshold of the KL before control, nats (τ_0).
      strength: strength of the penalty where the entropy is low, nats (s).
      trained: compares the KL of the batch, with its gradient, instead of KL_short.
    Metrics: kl_short (running mean of the KL, nats), kl_threshold (threshold τ, nats), kl_phase (0
      warm-up, 1 climbing, 2 plateau, 3 converged).
    """

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        kl = masked_mean(context.stats.logp - rollouts.reference_logp, mask)
        entropy = masked_mean(rollouts.entropy, mask)
        reward = masked_mean(rollouts.reward, group_has_tokens(mask, rollouts.group))
        memory = state.kl_short.dtype
        phase, threshold, moved = control_kl(
            state, jax.lax.stop_gradient(kl).astype(memory), reward.astype(memory), base
        )
        if trained:
            penalty = excess_kl_penalty(
                kl, entropy, threshold.astype(kl.dtype), coefficient, strength
            )
        else:
            penalty = excess_kl_penalty(
                moved.kl_short, entropy.astype(memory), threshold, coefficient, strength
            ).astype(kl.dtype)
        any_token = jnp.any(mask)
        signals = replace(signals, term=signals.term + jnp.where(any_token, penalty, 0))
        state = jax.tree.map(lambda new, old: jnp.where(any_token, new, old), moved, state)
        metrics = {"kl_short": moved.kl_short, "kl_threshold": threshold, "kl_phase": phase}
        return signals, state, metrics

    reads = frozenset({"logp", "reference_logp", "sampled_entropy", "batch_statistics"})
    return Transform(apply, init=lambda spec: initial_kl_control(), reads=reads)


def excess_kl_penalty(
    kl: Float[Array, ""],
    entropy: Float[Array, ""],
    threshold: Float[Array, ""] | float,
    coefficient: float,
    strength: float,
) -> Float[Array, ""]:
    """c · max(KL - τ, 0)² · max(½, s / (H + 0.1)).

    Args:
      kl: mean log-ratio to the reference policy, nats (KL).
      entropy: mean entropy of the tokens, nats (H).
      threshold: KL without a penalty, nats (τ).
      coefficient: weight of the penalty (c).
      strength: numerator of the factor by which a low entropy increases the penalty, nats (s).
    """
    excess = jnp.maximum(kl - threshold, 0)
    return coefficient * excess**2 * jnp.maximum(0.5, strength / (entropy + 0.1))


WARMUP, CLIMBING, PLATEAU, CONVERGED = 0, 1, 2, 3
PHASE_FACTORS = (1.5, 1.2, 0.8, 1.0)  # of the threshold, by phase
WINDOW = 50  # calls that a phase is read from
GAINS = (0.3, 0.01, 0.05)  # k_p, k_i, k_d


class KLControlState(NamedTuple):
    """The memory of the controller.

    Fields:
      kl_short, kl_long: running means of the KL with factors 0.9 and 0.99, from 0.
      reward_mean: running mean of the reward with factor 0.95, from the first reward.
      integral, last_error: of the PID rule.
      rewards: the last 100 rewards, newest last.
      count: number of calls.
    """

    kl_short: Float[Array, ""]
    kl_long: Float[Array, ""]
    reward_mean: Float[Array, ""]
    integral: Float[Array, ""]
    last_error: Float[Array, ""]
    rewards: Float[Array, "100"]
    count: Int[Array, ""]


def initial_kl_control() -> KLControlState:
    """The state before the first call."""
    zero = jnp.zeros((), float)
    return KLControlState(
        zero, zero, zero, zero, zero, jnp.zeros(2 * WINDOW, float), jnp.zeros((), jnp.int32)
    )


def control_kl(
    state: KLControlState, kl: Float[Array, ""], reward: Float[Array, ""], base: float
) -> tuple[Int[Array, ""], Float[Array, ""], KLControlState]:
    """One call of the controller: the phase, the threshold τ (nats) and the next state.

    With m the running mean of the reward, all 0 at the first call:

        e = m' - m - 0.001;  I' = clip(I + e, ±1);  pid = k_p e + k_i I' + k_d (e - e_last)
        τ = clip((τ_0 + pid) · factor of the phase, 0.1, 0.6)

    Args:
      state: memory of the controller after the previous call.
      kl, reward: means of the batch.
      base: τ_0, nats.
    """
    first = state.count == 0
    kl_short = 0.9 * state.kl_short + 0.1 * kl
    kl_long = 0.99 * state.kl_long + 0.01 * kl
    reward_mean = jnp.where(first, reward, 0.95 * state.reward_mean + 0.05 * reward)
    error = jnp.where(first, 0, reward_mean - state.reward_mean - 0.001)
    integral = jnp.clip(state.integral + error, -1, 1)
    proportional, integrating, derivative = GAINS
    pid = proportional * error + integrating * integral + derivative * (error - state.last_error)
    pid = jnp.where(first, 0, pid)

    rewards = jnp.concatenate([state.rewards[1:], reward[None]])
    count = state.count + 1
    phase = _phase(rewards, count)
    factor = jnp.asarray(PHASE_FACTORS, kl_short.dtype)[phase]
    threshold = jnp.clip((base + pid) * factor, 0.1, 0.6)
    state = KLControlState(kl_short, kl_long, reward_mean, integral, error, rewards, count)
    return phase, threshold, state


def _phase(rewards, count):
    """The phase of the last rewards.

    WARMUP with fewer than 50; CLIMBING if the mean of the last 50 is more than 0.01 above that of
    the 50 before; CONVERGED if it is above 0.7 and their deviation below 0.02; else PLATEAU.
    """
    recent, before = rewards[WINDOW:], rewards[:WINDOW]
    mean = jnp.mean(recent)
    earlier = jnp.where(count >= 2 * WINDOW, jnp.mean(before), mean)
    phase = jnp.where((jnp.std(recent) < 0.02) & (mean > 0.7), CONVERGED, PLATEAU)
    phase = jnp.where(mean > earlier + 0.01, CLIMBING, phase)
    return jnp.where(count < WINDOW, WARMUP, phase).astype(jnp.int32)


NUM_CRITICS = 2


@part
def pessimistic_scorer(
    temperature: Positive = 0.3, clip: Positive = 0.2, width: Positive = 0.5
) -> Scorer:
    """Critics of whole responses: linear heads on the normalized hidden state of the last token.

    The heads have different random weights at first. Their `soft_min` is fitted to the reward by
    half the `huber_value_loss`.
    """

    def init(key, width, dtype):
        weight = jax.random.normal(key, (width, NUM_CRITICS), dtype) / jnp.sqrt(width).astype(dtype)
        return {"weight": weight, "bias": jnp.zeros((NUM_CRITICS,), dtype)}

    def score(params, states, rollouts):
        last = is_last_token(rollouts.mask)
        state = jnp.sum(jnp.where(last[:, :, None], states[:, 1:], 0), axis=1)
        found = jax.nn.standardize(state) @ params["weight"].astype(state.dtype)
        values = found + params["bias"].astype(state.dtype)[None]
        return jnp.where(jnp.any(last, axis=1)[:, None], values, 0)

    def fit(params, states, rollouts):
        values = soft_min(score(params, states, rollouts), temperature)
        old_values = soft_min(rollouts.records["critic_values"], temperature)
        losses = huber_value_loss(values, old_values, rollouts.reward, clip, width) / 2
        return losses, jnp.any(rollouts.mask, axis=1).astype(losses.dtype)

    return Scorer(init, score, fit, writes="critic_values")


def huber_value_loss(
    values: Rows, old_values: Rows, reward: Rows, clip: float, width: float
) -> Rows:
    """½ (h(V - R) + h(V_old + clip(V - V_old, ±ε) - R)) per rollout: a sum, not a maximum.

    Args:
      values: values of the critic that is trained, [B] (V).
      old_values: values of the critic at sampling time, [B] (V_old).
      reward: target of the values, [B] (R).
      clip: ε, half-width of the trust region around V_old.
      width: δ of h(x) = x² / 2 for |x| ≤ δ, else δ (|x| - δ / 2).
    """

    def huber(x):
        size = jnp.abs(x)
        return jnp.where(size <= width, x**2 / 2, width * (size - width / 2))

    near = old_values + jnp.clip(values - old_values, -clip, clip)
    return (huber(values - reward) + huber(near - reward)) / 2


def safe(
    temperature: Positive = 0.3,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    entropy_coefficient: EntropyCoefficient = 0.01,
    penalty_coefficient: NonNegative = 0.1,
    base_threshold: NonNegative = 0.3,
    penalty_strength: NonNegative = 2.0,
    trained_penalty: bool = False,
    value_clip: Positive = 0.2,
    huber_width: Positive = 0.5,
) -> Recipe:
    """Applies PPO to rewards minus the soft minimum of two critics, with a controlled KL penalty.

    Args:
      temperature: temperature of the soft minimum (α).
      penalty_coefficient: weight of the penalty; with 0 there is no controller and no reference.
      base_threshold: threshold of the KL before control, nats; τ is always within 0.1 and 0.6.
      penalty_strength: strength of the penalty where the entropy is low.
      trained_penalty: whether the penalty has a gradient.
      value_clip, huber_width: half-width of the critics' trust region; width of their Huber loss.
    """
    bonus = entropy_bonus(entropy_coefficient)
    control = predictive_kl_penalty(
        penalty_coefficient, base_threshold, penalty_strength, trained=trained_penalty
    )
    regularizers = [bonus, control] if penalty_coefficient else [bonus]
    objective = clipped_objective(
        clip_low, clip_high, advantage=pessimistic_advantage(temperature), regularizers=regularizers
    )
    return Recipe(objective, critic=pessimistic_scorer(temperature, value_clip, huber_width))


METHOD = Method(safe, changes="advantage, regularizer", baseline="other", shown=LOSS_ON_BRACKETS)
