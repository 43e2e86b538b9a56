"""The vectors of random rewards in expectation; a reward of the task stands for a format."""

import golden_vectors as golden
from adapters.common import on_mask

from rlvr_jax.methods.entropy.entropy_dynamics import entropy_discriminator, expected_discriminator
from rlvr_jax.methods.rewards.spurious_rewards import (
    clip_magnitude,
    clip_pull,
    clipped_noise,
    damage,
    expected_damage,
    half_moment,
    inverted_outcome,
)
from rlvr_jax.objectives import (
    column,
    entropy_step,
    masked_sum,
    no_advantage,
    objective,
    token_mean,
)
from rlvr_jax.types import Recipe

LEFT_OUT = {}


def expected(low, high, moment, case):
    surrogate = clipped_noise(low, high, moment)
    own = objective(no_advantage(), surrogate=surrogate, aggregation=token_mean())
    return golden.evaluate(Recipe(own), case)


def outputs(case, hyper):
    batch, stats = golden.rollouts(case), golden.stats(case)
    size, clip = int(golden.inputs(case)["group_size"]), hyper["clip"]
    moment = half_moment(hyper["gamma"], size, hyper["eps"])
    negative = half_moment(1 - hyper["gamma"], size, hyper["eps"])  # paid and unpaid change places
    done, mask = expected(clip, clip, moment, case), batch.mask
    ratio = done.signals.ratio
    pull = clip_pull(ratio, clip, clip, moment)
    own = entropy_discriminator(stats.logp, stats.entropy)
    mean = expected_discriminator(stats.entropy, stats.p_squared, stats.p_squared_logp)
    spurious = column(1)(batch)
    center, variance = expected_damage(batch.outcome, batch.group)
    unbounded = expected(1e9, 1e9, moment, case)
    return {
        "half_moment_pos": moment,
        "half_moment_neg": negative,
        "ratio": on_mask(ratio, batch),
        "clipped_high": mask & (ratio > 1 + clip),
        "clipped_low": mask & (ratio < 1 - clip),
        "clip_bias": on_mask(pull, batch),
        "token_loss": on_mask(done.token_loss, batch),
        "unclipped_token_loss": on_mask(unbounded.token_loss, batch),
        "loss": done.loss,
        "dlogits": done.dlogits,
        "entropy_drift": on_mask(entropy_step(pull, own, mean), batch),
        "raw_magnitude": 2 * moment * masked_sum(ratio, mask),
        "clip_magnitude": masked_sum(clip_magnitude(ratio, clip, clip, moment), mask),
        "reward_incorrect": inverted_outcome(batch),
        "reward_format": spurious,
        "delta_draw": damage(spurious, batch.outcome, batch.group),
        "delta_mean": center,
        "delta_var": variance,
    }
