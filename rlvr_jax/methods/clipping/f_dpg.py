"""f-DPG: fit the policy to the target of KL-regularized RL under a divergence of choice.

Go et al. 2023, "Aligning Language Models with Preferences through f-divergence Minimization", code
at https://github.com/naver/disco

    p(y)  = π_ref(y) exp(R/β) / Z, Z estimated per prompt;  t = π(y)/p(y)
    loss  = -mean_i sg(π/π_old · (-f'(t) - b)) Σ_t logp_it

Everything is of whole responses, the ratio is not clipped, and b is the mean of the last 1024
pseudo-rewards. Jensen-Shannon is the authors' default: its pseudo-rewards are bounded below, and it
balances fit and diversity. Reverse KL is RL with a KL penalty. No β for verifiable rewards was
found; 1 is ours. Z is that of the batch at hand, where the authors keep a running mean per prompt.
A group of one is its own Z, and equal rewards do not give 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import group_max, group_mean, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_count, masked_mean, masked_sum
from rlvr_jax.objectives.statistics.ratios import guarded_exp
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_sum
from rlvr_jax.objectives.surrogates.frozen_weights import weighted_reinforce
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import Count, Positive, Temperature
from rlvr_jax.types.parts import part


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
    Metrics: pseudo_reward (the mean), log_target_ratio (mean of log t, nats), baseline.
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


def product_ratio(
    logp: Float[Array, "B T"], old_logp: Float[Array, "B T"], mask: Bool[Array, "B T"]
) -> Float[Array, "B T"]:
    """Product of the token ratios of a rollout, at each of its tokens, with its whole gradient.

    ρ_i = exp(Σ_t (logp_it - old_logp_it)): the exact ratio of the response, of huge variance.
    """
    product = guarded_exp(masked_sum(logp - old_logp, mask, axis=1))[:, None]
    return jnp.where(mask, product, 1)


def f_dpg(
    temperature: Temperature = 1.0,
    window: int = 1024,
    divergence: FDivergence = target_jensen_shannon,
) -> Recipe:
    """Pseudo-rewards of a divergence times the importance and the log-prob of the response.

    Args:
      window: rollouts over which the baseline is averaged.
      divergence: one of `rlvr_jax.objectives.advantages.distribution_matching`.
    """
    return Recipe(
        objective=objective(
            advantage=pseudo_reward(divergence, temperature, window),
            surrogate=weighted_reinforce(ratio=product_ratio),
            aggregation=rollout_mean_token_sum(),
        )
    )


METHOD = Method(
    f_dpg,
    "Aligning Language Models with Preferences through f-divergence Minimization",
    "https://github.com/naver/disco",
    changes="advantage, surrogate, regularizer",
    baseline="other",
    gradient="stopped",
    left_out="running estimates of Z per prompt, a proposal apart from the policy, targets made of"
    " constraints",
    reports=(
        "GPT-2 size models, controlled text: no divergence wins everywhere; Jensen-Shannon "
        "balances fit and diversity, often far above forward KL"
    ),
    traps=(
        "equal rewards do not give 0; Z is of the group at hand, so a group of one teaches nothing "
        "about its reward; ratios of whole responses are not clipped: one update per batch"
    ),
)
