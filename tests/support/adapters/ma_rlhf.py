"""MA-RLHF's vectors. Macro values and rewards stand on the first token of each macro."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.methods.credit.ma_rlhf import (
    equal_weights,
    last_token_weights,
    macro_mean,
    ngram_macros,
    position_weights,
)
from rlvr_jax.objectives import token_mean, token_rewards, value_loss


def outputs(case, hyper):
    settings = {
        "discount": hyper["gamma"],
        "trace_decay": hyper["lam"],
        "kl_coefficient": hyper["kl_coef"],
        "reward_clip": hyper["reward_clip"],
        "clip_low": hyper["clip"],
        "clip_high": hyper["clip"],
    }
    batch = golden.rollouts(case)
    mask, values = batch.mask, batch.records["values"]
    reward = jnp.clip(batch.reward, -hyper["reward_clip"], hyper["reward_clip"])
    rewards = token_rewards(reward, mask, batch.old_logp - batch.reference_logp, hyper["kl_coef"])
    macro = ngram_macros(mask, hyper["n"])
    first = mask & (macro != jnp.pad(macro[:, :-1], ((0, 0), (1, 0)), constant_values=-1))
    tokens = golden.evaluate(recipe("ma_rlhf", length=1, **settings), case)
    found = {
        "macro_ids": on_mask(macro, batch),
        "token_rewards": rewards,
        "advantages_token": tokens.signals.advantage,
    }
    for suffix, weights in (
        ("", equal_weights),
        ("_unit", last_token_weights),
        ("_position", position_weights),
    ):
        method = recipe("ma_rlhf", length=hyper["n"], weights=weights, **settings)
        done = golden.evaluate(method, case)
        macro_values = macro_mean(values, macro, weights)
        returns = done.signals.advantage + macro_values
        losses = value_loss(values, values, returns, hyper["value_clip"])
        found |= {
            **done.outputs(suffix),
            f"macro_values{suffix}": jnp.where(first, macro_values, 0),
            f"macro_rewards{suffix}": jnp.where(first, macro_mean(rewards, macro, weights), 0),
            f"returns{suffix}": returns,
            f"value_loss{suffix}": token_mean()(losses, mask),
        }
    return found
