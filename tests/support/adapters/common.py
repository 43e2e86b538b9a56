"""What adapters share."""

import functools
import inspect

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.methods import method, recipe
from rlvr_jax.objectives.advantages.group_relative import group_normalized, no_advantage
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.regularizers.preferences import correct_incorrect_pairs
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import no_policy_loss
from rlvr_jax.types import Recipe, is_correct

SPELLINGS = {
    "epsilon": ("eps", "std_eps"),
    "clip_low": ("clip",),
    "clip_high": ("clip",),
    "dual_clip": ("dual",),
    "kl_coefficient": ("beta",),
}
"""By hyperparameter of a method: its other names in the vectors."""


def recipe_with(hyper, name, **others):
    """The recipe of a method with the hyperparameters of the vectors that it has, and others."""
    own = {}
    for known in inspect.signature(method(name).recipe).parameters:
        for spelling in (known, *SPELLINGS.get(known, ())):
            if spelling in hyper:
                own.setdefault(known, hyper[spelling])
    return recipe(name, **own | others)


def both(function):
    """Makes outputs(case, hyper) of outputs(case, hyper, soft): once plain, once named `_soft`."""

    @functools.wraps(function)
    def outputs(case, hyper):
        hard = function(case, hyper, False)
        return {**hard, **golden.named(function(case, hyper, True), True)}

    return outputs


def on_mask(values, batch):
    """The values with 0 off the mask of the batch."""
    return np.where(batch.mask, values, 0)


def per_rollout(values, batch, empty=0):
    """One number per row from values that are equal on its tokens; `empty` for rows without any."""
    mask = np.asarray(batch.mask)
    first = np.asarray(values)[np.arange(mask.shape[0]), mask.argmax(axis=1)]
    return np.where(mask.any(axis=1), first, empty)


def only(regularizer, aggregation=None):
    """A recipe whose loss is one regularizer, averaged over the tokens if not told otherwise."""
    return Recipe(
        objective(
            no_advantage(),
            surrogate=no_policy_loss(),
            regularizers=[regularizer],
            aggregation=aggregation or token_mean(),
        )
    )


def recipe_of(advantage, surrogate, **parts):
    """A recipe of an objective on the token mean."""
    return Recipe(objective(advantage, surrogate=surrogate, aggregation=token_mean(), **parts))


def per_group(values, case):
    """One number per group from values that are equal on its rows."""
    return np.asarray(values)[:: int(golden.inputs(case)["group_size"])]


def row_advantages(recipe, batch):
    """The advantage of each row as a whole, [B], also of rows without tokens."""
    whole = batch.replace(mask=jnp.ones_like(batch.mask))
    state = recipe.objective.init(golden.spec(batch))
    decided, _, _ = recipe.objective.decide_once(whole, state, jax.random.key(0))
    return decided.records["advantage"][:, 0]


def pairs(batch):
    """The rows of right rollouts and those of the wrong ones they are paired with."""
    correct = is_correct(batch.outcome)
    partner = np.asarray(correct_incorrect_pairs(correct, batch.group, batch.rollout_id))
    chosen = np.flatnonzero(np.asarray(correct) & (partner >= 0))
    return chosen, partner[chosen]


def all_logp(case, name):
    """log p of one policy's logits of the input set, [B, T, V]."""
    return np.asarray(jax.nn.log_softmax(golden.inputs(case)[name]))


def logp_of(case, name):
    """log p of the tokens under one policy of the input set, [B, T], 0 off the mask."""
    data = golden.inputs(case)
    own = np.take_along_axis(all_logp(case, name), data["tokens"][..., None], axis=-1)[..., 0]
    return np.where(data["mask"], own, 0)


def entropy_of(case, name):
    """Entropy of one policy of the input set, [B, T], 0 off the mask."""
    logp = all_logp(case, name)
    return np.where(golden.inputs(case)["mask"], -(np.exp(logp) * logp).sum(axis=-1), 0)


def grpo_advantages(case, epsilon):
    """GRPO's advantage of each row of the input set, [B]."""
    plain = recipe_of(group_normalized(epsilon), no_policy_loss())
    return np.asarray(row_advantages(plain, golden.rollouts(case)))


def by_group(values, case):
    """[B, …] as [G, N, …]."""
    values = np.asarray(values)
    return values.reshape(-1, int(golden.inputs(case)["group_size"]), *values.shape[1:])
