"""The vectors of HAPO's temperature: the scale of the old policy's entropies, for the new one."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
from adapters.common import on_mask

from rlvr_jax.methods.entropy.hapo_temperature import entropy_scale
from rlvr_jax.rollout import TokenContext, entropy_position, heated_by_entropy


def outputs(case, hyper):
    batch, stats = golden.rollouts(case), golden.stats(case)
    scale = entropy_scale(batch.entropy, batch.mask, hyper["pivot"])
    found = {
        "center": scale.center,
        "std": scale.spread,
        "h_max": scale.highest,
        "h_min": scale.lowest,
    }
    logits = jnp.asarray(golden.inputs(case)["logits"])
    for name, mirrored in (("", False), ("_released", True)):
        position = entropy_position(stats.entropy, *map(jnp.asarray, scale), mirrored)
        found[f"h_hat{name}"] = on_mask(position, batch)
        heat = hyper["t0"] * (1 + hyper["tau"] * position)
        found[f"temperature{name}"] = on_mask(heat, batch)
    drawn = behaviour(logits, scale, hyper, batch)
    return found | {
        "behaviour_logp": on_mask(drawn, batch),
        "log_weight": on_mask(stats.logp - drawn, batch),
    }


def behaviour(logits, scale, hyper, batch):
    """The log-prob of each token as the processor leaves the distribution."""
    told = scale._asdict() | {"strength": hyper["tau"]}
    constants = {name: jnp.asarray(value, logits.dtype) for name, value in told.items()}
    flat = logits.reshape(-1, logits.shape[-1]) / hyper["t0"]
    nothing = jnp.zeros(len(flat), jnp.int32)
    context = TokenContext(nothing, jnp.zeros((), jnp.int32), constants=constants)
    processor = heated_by_entropy()
    sampled, _ = processor.apply(flat, processor.init(len(flat)), context)
    logp = jax.nn.log_softmax(sampled).reshape(logits.shape)
    return jnp.take_along_axis(logp, batch.tokens[..., None], axis=-1)[..., 0]
