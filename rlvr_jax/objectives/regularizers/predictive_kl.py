"""A KL penalty whose threshold follows the reward: it lets a policy move while it learns.

A controller keeps running means of the KL to the reference and of the reward. A PID rule on the
reward's velocity and the phase of training, read from the rewards of the last 100 calls, set the
threshold; beyond it the penalty grows quadratically, and more where the entropy is low.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import group_has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import NonNegative
from rlvr_jax.types.parts import part

__all__ = [
    "CLIMBING",
    "CONVERGED",
    "PLATEAU",
    "WARMUP",
    "KLControl",
    "KLControlState",
    "control_kl",
    "excess_kl_penalty",
    "initial_kl_control",
    "predictive_kl_penalty",
]

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
    Source: https://github.com/ryyzn9/SAFE.
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
    Reads: logp, reference_logp, entropy of the rollouts, reward. Writes: term.
    Metrics: kl_short, kl_threshold (nats), kl_phase.
    Raises:
      ValueError: a negative coefficient, base or strength.
    Source: https://github.com/ryyzn9/SAFE.
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
