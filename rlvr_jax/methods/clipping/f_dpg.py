"""f-DPG: fits the policy to the target of KL-regularized RL under a chosen divergence.

Go et al. 2023, "Aligning Language Models with Preferences through f-divergence Minimization", code
at https://github.com/naver/disco

    p(y)  = π_ref(y) exp(R/β) / Z, Z estimated per prompt;  t = π(y)/p(y)
    loss  = -mean_i sg(π/π_old · (-f'(t) - b)) Σ_t logp_it

All ratios are those of whole responses and are not clipped. The pseudo-reward is -f'(t), and b the
mean of the last 1024 pseudo-rewards (`window`). The parameter β is `temperature`; no value for
verifiable rewards was found, and 1 is ours. Jensen-Shannon is the authors' default. It balances fit
and diversity, and its pseudo-rewards are bounded below. Reverse KL is RL with a KL penalty. Z is
that of the batch; the authors average it per prompt over time.

Left out: running estimates of Z per prompt; a proposal that is not the policy; targets made of
constraints.
Reports: controlled text with models of GPT-2 size: no divergence is always best. Jensen-Shannon is
often far above forward KL (no numbers).
Traps: Equal rewards do not have advantage 0. A group of one is its own Z and learns nothing about
its reward. Use one update per batch, because ratios are not clipped.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.objectives import Transform, guarded_exp, objective, part, rollout_mean_token_sum
from rlvr_jax.objectives.statistics.groups import group_max, group_mean, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_count, masked_mean, masked_sum
from rlvr_jax.objectives.surrogates.policy_gradient import weighted_reinforce
from rlvr_jax.types import (
    LOSS_ON_BRACKETS,
    Ids,
    Mask,
    Method,
    Recipe,
    RowMask,
    Rows,
    Values,
    arguments_of,
    replace,
)
from rlvr_jax.types.hyperparameters import Count, Positive

Divergence = Callable[[Array], Array]  # log t -> the pseudo-reward -f'(t)


def target_jensen_shannon(log_t: Array) -> Array:
    """log(1 + 1/t) - log 2."""
    return jax.nn.softplus(-log_t) - jnp.log(2.0).astype(log_t.dtype)


def target_kl(log_t: Array) -> Array:
    """1/t, of KL(p ‖ π)."""
    return _power(log_t, -1)


def target_reverse_kl(log_t: Array) -> Array:
    """-log t - 1, of KL(π ‖ p)."""
    return -log_t - 1


def target_total_variation(log_t: Array) -> Array:
    """-sign(t - 1) / 2."""
    return -jnp.sign(log_t) / 2


def target_chi_squared(log_t: Array) -> Array:
    """1/t² - 1."""
    return _power(log_t, -2) - 1


def target_reverse_chi_squared(log_t: Array) -> Array:
    """2 (1 - t)."""
    return 2 * (1 - _power(log_t, 1))


def _power(log_t, exponent):
    return jnp.exp(exponent * jnp.clip(log_t, -40, 40))


@part(writes={"advantage"})
def pseudo_reward(divergence: Divergence, temperature: Positive, window: Count) -> Transform:
    """A_i = -f'(t_i) - b, b the mean of the last pseudo-rewards before this batch; 0 at first.

    Args:
      divergence: `target_jensen_shannon`, `target_kl`, `target_reverse_kl`,
        `target_total_variation`, `target_chi_squared` or `target_reverse_chi_squared`.
      temperature: of the target (β).
      window: rollouts over which the baseline is averaged.
    Metrics: pseudo_reward (mean of -f'(t)), log_target_ratio (mean of log t, nats), baseline (b,
      mean of the last pseudo-rewards).
    """

    def init(spec):
        return BaselineState(jnp.zeros(window, float), jnp.zeros((), jnp.int32))

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        logps = (context.stats.logp, context.old_logp, rollouts.reference_logp)
        sums = [masked_sum(jax.lax.stop_gradient(logp), mask, axis=1) for logp in logps]
        logp, old_logp, reference_logp = sums
        written, baseline = has_tokens(mask), state.mean
        log_target = reference_logp + rollouts.reward / temperature
        log_z = log_partition(log_target - old_logp, rollouts.group, written)
        log_t = logp - log_target + log_z
        own = divergence(log_t)
        advantage = (own - baseline.astype(own.dtype))[:, None]
        metrics = {
            "pseudo_reward": masked_mean(own, written),
            "log_target_ratio": masked_mean(log_t, written),
            "baseline": baseline,
        }
        signals = replace(signals, advantage=jnp.where(mask, advantage, 0))
        return signals, state.followed_by(own, written, rollouts.rollout_id), metrics

    return Transform(apply, init=init, reads={"logp", "reference_logp", "batch_statistics"})


class BaselineState(NamedTuple):
    """The last pseudo-rewards in a ring of the window's size, and how many there have been."""

    values: Float[Array, "W"]
    count: Int[Array, ""]

    @property
    def mean(self) -> Float[Array, ""]:
        """Mean of the ring; 0 if it is empty."""
        place = jnp.arange(self.values.size, dtype=jnp.int32)
        return masked_mean(self.values, place < self.count)

    def followed_by(self, rewards: Rows, where: RowMask, rollout_id: Ids) -> "BaselineState":
        """The state after a batch, whose rows are ordered by `rollout_id`."""
        window, number = self.values.size, masked_count(where)
        last = jnp.where(where, rollout_id, jnp.iinfo(rollout_id.dtype).max)
        order = jnp.argsort(jnp.lexsort((rollout_id, last))).astype(jnp.int32)
        stored = where & (order >= number - window)
        place = jnp.where(stored, (self.count + order) % window, window)
        values = self.values.at[place].set(rewards.astype(self.values.dtype), mode="drop")
        count = self.count + number  # a full ring only needs the remainder: it cannot overflow
        return BaselineState(values, jnp.where(count < window, count, window + count % window))


def log_partition(log_weight: Rows, group: Ids, where: RowMask) -> Rows:
    """log Z of each prompt: the log of the mean of exp(log_weight) over its rows; 0 without any.

    Args:
      log_weight: log(p Z) - log π_old, nats.
    """
    largest = group_max(log_weight, group, where)
    power = jnp.where(where, jnp.exp(log_weight - largest), 0)
    mean = group_mean(power, group, where)
    return largest + jnp.log(jnp.where(mean > 0, mean, 1))


def product_ratio(logp: Values, old_logp: Values, mask: Mask) -> Values:
    """exp(Σ_t (logp_it - old_logp_it)), the ratio of the response, at each token; high variance."""
    product = guarded_exp(masked_sum(logp - old_logp, mask, axis=1))[:, None]
    return jnp.where(mask, product, 1)


@arguments_of(pseudo_reward, divergence=target_jensen_shannon, temperature=1.0, window=1024)
def f_dpg(**reward: Any) -> Recipe:
    """Pseudo-rewards of a divergence times the importance and the log-prob of the response."""
    advantage = pseudo_reward(**reward)
    surrogate = weighted_reinforce(ratio=product_ratio)
    return Recipe(
        objective(advantage=advantage, surrogate=surrogate, aggregation=rollout_mean_token_sum())
    )


METHOD = Method(
    f_dpg,
    changes="advantage, surrogate, regularizer",
    baseline="other",
    gradient="stopped",
    shown=LOSS_ON_BRACKETS,
)
