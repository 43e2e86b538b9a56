"""The vectors of EAD: temperatures of the processor, and the three losses on what it draws."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
from adapters.common import both, on_mask

from rlvr_jax.experience import RunInfo, StepContext
from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.ead import growing_horizon
from rlvr_jax.objectives import clamped_token_ratio
from rlvr_jax.rollout import TokenContext, annealed
from rlvr_jax.tasks import Prompt, Task


def drawn(case, hyper):
    """The temperature of each token and its log-prob under the old policy at that temperature."""
    data, batch = golden.inputs(case), golden.rollouts(case)
    rows, width, words = data["old_logits"].shape
    scale = hyper["scale"]
    horizon = growing_horizon(scale * hyper["d0"], scale * hyper["d_step"], scale * hyper["d_cap"])
    setting = RunInfo(Task("golden", [Prompt("a")], [Prompt("b")], None), 1, 1, 1, width)
    told = horizon(StepContext(hyper["step"], jax.random.key(0), setting, lambda count: []))
    processor = annealed(hyper["t_max"], hyper["t_min"], hyper["warmup"])
    position = jnp.tile(jnp.arange(width, dtype=jnp.int32), rows)
    context = TokenContext(position, jnp.zeros((), jnp.int32), constants=jax.tree.map(wide, told))
    logits = jnp.asarray(data["old_logits"]).reshape(-1, words)
    sampled, carry = processor.apply(logits, processor.init(len(logits)), context)
    logp = jax.nn.log_softmax(sampled).reshape(rows, width, words)
    own = jnp.take_along_axis(logp, batch.tokens[..., None], axis=-1)[..., 0]
    heat = processor.temperature(carry, context).reshape(rows, width)
    return heat, on_mask(own, batch)


def wide(value):
    return jnp.asarray(value, jnp.float64)


def outputs(case, hyper):
    heat, behaviour = drawn(case, hyper)
    batch = golden.rollouts(case)
    weight = clamped_token_ratio(batch.old_logp, jnp.asarray(behaviour), batch.mask)
    return losses(case, hyper) | {
        "temperature": on_mask(heat, batch),
        "behaviour_logp": behaviour,
        "log_is_weight": batch.old_logp - behaviour,
        "tis_weight": on_mask(np.minimum(weight, hyper["cap"]), batch),
    }


@both
def losses(case, hyper, soft):
    heat, behaviour = drawn(case, hyper)
    batch = golden.rollouts(case, soft).replace(behaviour_logp=jnp.asarray(behaviour))

    def tempered(logits):
        return golden.token_stats(logits / heat[..., None], batch.tokens)

    found = {}
    for name, changes, told, stats_of in (
        ("plain", {}, batch, None),
        ("tis", {"cap": hyper["cap"]}, batch, None),
        ("tempered", {"tempered": True}, batch.replace(old_logp=batch.behaviour_logp), tempered),
    ):
        method = recipe(
            "ead",
            clip_low=hyper["clip_low"],
            clip_high=hyper["clip_high"],
            dual=hyper["dual"],
            epsilon=hyper["eps"],
            **changes,
        )
        done = golden.evaluate(method, case, batch=told, stats_of=stats_of)
        found |= done.outputs(f"_{name}")
    return found | {"advantages": done.signals.advantage}
