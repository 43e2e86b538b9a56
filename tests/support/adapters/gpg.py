"""GPG's vectors. Advantages and token losses stand there before the rescaling."""

import golden_vectors as golden
from adapters.common import both

from rlvr_jax.methods import recipe
from rlvr_jax.objectives.advantages.group_relative import relative_to
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.statistics.groups import group_mean
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import reinforce
from rlvr_jax.types import Recipe

LEFT_OUT = {
    "alpha_verl": "verl's factor, which is not built",
    "alpha_verl_soft": "verl's factor, which is not built",
}


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
    fraction = done.metrics["informative_fraction"]
    return {
        **done.outputs(),
        "valid_fraction": fraction,
        "alpha": 1 / (fraction + hyper["eps"]),
        "advantages": before.signals.advantage,
        "token_loss": before.token_loss,
    }
