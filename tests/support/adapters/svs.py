"""SvS's vectors: a stand-in accuracy of the problem that each row would write."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import by_group

from rlvr_jax.experience.stages.problems.written import mixed, pass_rates
from rlvr_jax.methods import recipe
from rlvr_jax.methods.self_play.svs import within_band
from rlvr_jax.types import replace


def outputs(case, hyper):
    data = golden.inputs(case)
    outcomes = by_group(data["rewards"], case)
    size, rates = outcomes.shape[1], pass_rates(outcomes)
    keep = np.repeat(mixed(outcomes), size)
    under = within_band(rates, hyper["under_low"], hyper["under_high"])
    source = np.repeat(under, size) & (data["rewards"] > 0)
    chance = np.clip((data["soft_rewards"] - 0.7) / 0.3, 0, 1)
    written = np.minimum(np.floor(chance * (size + 1)), size) / size
    reward = source & within_band(written, hyper["vps_low"], hyper["vps_high"])
    solved = source & (written > 0) & (written < 1)
    batch = golden.rollouts(case)
    kept = batch.replace(mask=batch.mask & jnp.asarray(keep)[:, None])
    method = replace(recipe("svs", epsilon=hyper["eps"]), experience=None)
    done = golden.evaluate(method, case, batch=kept)
    return {
        "acc": np.repeat(rates, size),
        "keep_oqa": keep,
        "under_performing": np.repeat(under, size),
        "synthesis_source": source,
        "acc_synthetic": written,
        "vps_reward": reward,
        "keep_spa": solved,
        "n_oqa_rollouts": keep.sum(),
        "n_synthesis_prompts": source.sum(),
        "n_spa_rollouts": size * solved.sum(),
        "advantages": done.signals.advantage,
    }
