"""Matching a target distribution of whole responses that is known up to a constant.

The target is p(y) = P(y)/Z with P(y) = π_ref(y) exp(R/β), the solution of KL-regularized RL. A
divergence D_f = E_p[f(π/p)] has the gradient E_π[f'(t) ∇log π(y)], t = π/p: a policy gradient with
the pseudo-reward -f'(t).

| `FDivergence` | of | -f'(t) |
|---|---|---|
| `target_kl` | KL(p ‖ π) | 1/t |
| `target_reverse_kl` | KL(π ‖ p) | -log t - 1: RL with a KL penalty |
| `target_jensen_shannon` | both against their mean | log(1 + 1/t) - log 2, above -log 2 |
| `target_total_variation` | | -½ sign log t |
| `target_chi_squared` | χ²(p ‖ π) | t⁻² - 1 |
| `target_reverse_chi_squared` | χ²(π ‖ p) | 2 (1 - t) |

log t is clamped to ±40 where it is exponentiated: finite in float32.
Source: Go et al. 2023, code at https://github.com/naver/disco.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import group_max, group_mean, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_count, masked_mean, masked_sum
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Count, Positive
from rlvr_jax.types.parts import part

__all__ = [
    "BaselineState",
    "FDivergence",
    "log_partition",
    "log_target_ratio",
    "pseudo_reward",
    "target_chi_squared",
    "target_jensen_shannon",
    "target_kl",
    "target_reverse_chi_squared",
    "target_reverse_kl",
    "target_total_variation",
]


@dataclass(frozen=True)
class FDivergence:
    """A divergence: its name, and the pseudo-reward -f'(t) as a function of log t."""

    label: str
    reward: Callable[[Array], Array]

    def __str__(self) -> str:
        return self.label


def _power(log_t, exponent):
    return jnp.exp(exponent * jnp.clip(log_t, -40, 40))


target_kl: FDivergence = FDivergence("target_kl", lambda log_t: _power(log_t, -1))
target_reverse_kl: FDivergence = FDivergence("target_reverse_kl", lambda log_t: -log_t - 1)
target_jensen_shannon: FDivergence = FDivergence(
    "target_jensen_shannon",
    lambda log_t: jax.nn.softplus(-log_t) - jnp.log(2.0).astype(log_t.dtype),
)
target_total_variation: FDivergence = FDivergence(
    "target_total_variation", lambda log_t: -jnp.sign(log_t) / 2
)
target_chi_squared: FDivergence = FDivergence(
    "target_chi_squared", lambda log_t: _power(log_t, -2) - 1
)
target_reverse_chi_squared: FDivergence = FDivergence(
    "target_reverse_chi_squared", lambda log_t: 2 * (1 - _power(log_t, 1))
)


def log_partition(
    log_weight: Float[Array, "B"], group: Int[Array, "B"], where: Bool[Array, "B"] | None = None
) -> Float[Array, "B"]:
    """log Z, estimated per prompt: the log of the mean of P/q over its rollouts.

    Args:
      log_weight: log P(y) - log q(y), q the distribution that sampled; nats.
      group: id of the group of each rollout.
      where: the rollouts that count; 0 for a group without any.
    """
    counted = jnp.ones(group.shape, bool) if where is None else where
    largest = group_max(log_weight, group, counted)
    power = jnp.where(counted, jnp.exp(log_weight - largest), 0)
    mean = group_mean(power, group, counted)
    return largest + jnp.log(jnp.where(mean > 0, mean, 1))


def log_target_ratio(
    logp: Float[Array, "B"],
    old_logp: Float[Array, "B"],
    reference_logp: Float[Array, "B"],
    reward: Float[Array, "B"],
    group: Int[Array, "B"],
    temperature: float,
    where: Bool[Array, "B"] | None = None,
) -> Float[Array, "B"]:
    """log t = log π(y) - log P(y) + log Z, of whole responses (nats).

    Args:
      logp, old_logp, reference_logp: of the response, under the current policy, the one that
        sampled and the reference.
      reward: R.
      group: id of the group of each rollout.
      temperature: β.
      where: the rollouts that count in Z.
    """
    log_target = reference_logp + reward / temperature
    return logp - log_target + log_partition(log_target - old_logp, group, where)


class BaselineState(NamedTuple):
    """The last pseudo-rewards in a ring of the window's size, and how many there have been."""

    values: Float[Array, "W"]
    count: Int[Array, ""]

    @property
    def mean(self) -> Float[Array, ""]:
        """Of those in the ring; 0 of none."""
        place = jnp.arange(self.values.size, dtype=jnp.int32)
        return masked_mean(self.values, place < self.count)

    def followed_by(
        self, rewards: Float[Array, "B"], where: Bool[Array, "B"], rollout_id: Int[Array, "B"]
    ) -> "BaselineState":
        """The state after a batch, whose rows come in the order of `rollout_id`."""
        window, number = self.values.size, masked_count(where)
        last = jnp.where(where, rollout_id, jnp.iinfo(rollout_id.dtype).max)
        order = jnp.argsort(jnp.lexsort((rollout_id, last))).astype(jnp.int32)
        kept = where & (order >= number - window)
        place = jnp.where(kept, (self.count + order) % window, window)
        values = self.values.at[place].set(rewards.astype(self.values.dtype), mode="drop")
        count = self.count + number  # of a full ring its remainder is kept: it cannot overflow
        return BaselineState(values, jnp.where(count < window, count, window + count % window))


@part(writes={"advantage"})
def pseudo_reward(divergence: FDivergence, temperature: Positive, window: Count) -> Transform:
    """A_i = -f'(t_i) - b, b the mean of the last pseudo-rewards before this batch; 0 at first.

    Rollouts without tokens have none.

    Args:
      divergence: one of this module.
      temperature: β of the target, positive.
      window: rollouts that the baseline remembers.
    Reads: reward, group, logp, old_logp, reference_logp, mask. Writes: advantage. Metrics:
      pseudo_reward (the mean), log_target_ratio (mean of log t, nats), baseline.
    Raises:
      ValueError: temperature not positive, or window below 1.
    """

    def init(spec):
        del spec
        return BaselineState(jnp.zeros(window, float), jnp.zeros((), jnp.int32))

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        logps = (context.stats.logp, context.old_logp, rollouts.reference_logp)
        sums = [masked_sum(jax.lax.stop_gradient(logp), mask, axis=1) for logp in logps]
        written, baseline = has_tokens(mask), state.mean
        log_t = log_target_ratio(*sums, rollouts.reward, rollouts.group, temperature, written)
        own = divergence.reward(log_t)
        advantage = (own - baseline.astype(own.dtype))[:, None]
        metrics = {
            "pseudo_reward": masked_mean(own, written),
            "log_target_ratio": masked_mean(log_t, written),
            "baseline": baseline,
        }
        signals = replace(signals, advantage=jnp.where(mask, advantage, 0))
        return signals, state.followed_by(own, written, rollouts.rollout_id), metrics

    return Transform(apply, init=init, reads={"logp", "reference_logp", "batch_statistics"})
