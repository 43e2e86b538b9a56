"""GPG's vectors. Advantages and token losses stand there before the rescaling."""

import golden_vectors as golden
from adapters.common import both

from rlvr_jax.methods import recipe
from rlvr_jax.methods.baselines.gpg import informative_share, nonzero_scale
from rlvr_jax.objectives.advantages.group_relative import relative_to
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.statistics.groups import group_mean, has_tokens
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import reinforce
from rlvr_jax.types import Recipe

LEFT_OUT = {}


@both
def outputs(case, hyper, soft):
    gpg = recipe("gpg", normalizer=hyper["f_norm"], epsilon=hyper["eps"])
    done = golden.evaluate(gpg, case, soft)
    plain = objective(
        relative_to(group_mean, scale=hyper["f_norm"]),
        surrogate=reinforce(),
        aggregation=rollout_mean_token_mean(),
    )
    before = golden.evaluate(Recipe(plain), case, soft)
    share = informative_share(done.batch.reward, done.batch.group, has_tokens(done.batch.mask))
    return {
        "valid_fraction": share,
        "alpha": 1 / (share + hyper["eps"]),
        "alpha_verl": nonzero_scale(done.batch.reward),
        "advantages": before.signals.advantage,
        "token_loss": before.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
