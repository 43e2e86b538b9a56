"""HAPO's vectors: the method, and the slips of the released code (`_released`)."""

import golden_vectors as golden
import numpy as np
from adapters.common import on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.hapo import (
    entropy_score,
    sampling_temperature,
    token_normalized_parts,
)

LEFT_OUT = {}


def outputs(case, hyper):
    batch, entropy = golden.rollouts(case), golden.stats(case).entropy
    said = entropy_score(entropy, batch.mask, batch, hyper["pivot"])
    temperature = sampling_temperature(said.score, hyper["temperature"], hyper["tau"])
    found = {
        "h": said.score,
        "pivot_log_entropy": said.pivot,
        "scale_std": said.scale,
        "temperature": on_mask(temperature, batch),
    }
    for suffix, released in (("", False), ("_released", True)):
        for soft in (False, True):
            values = one(case, hyper, soft, released)
            named = {f"{name}{suffix}": value for name, value in values.items()}
            found |= golden.named(named, soft)
    return found


def one(case, hyper, soft, released):
    method = recipe(
        "hapo",
        pivot=hyper["pivot"],
        clip_strength=hyper["alpha"],
        credit_strength=hyper["beta"],
        limit=hyper["limit"],
        clip_low=hyper["clip_low"],
        clip_high=hyper["clip_high"],
        dual_clip=hyper["dual"],
        released=released,
    )
    done = golden.evaluate(method, case, soft)
    batch = done.batch
    parts = token_normalized_parts(batch, batch.mask, hyper["limit"], hyper["eps"], released)
    return {
        "base_advantages": on_mask(np.asarray(parts.advantage)[:, None], batch),
        "fell_back": parts.fell_back,
        "advantages": done.signals.advantage,
        "clip_low": on_mask(done.signals.clip_low, batch),
        "clip_high": on_mask(done.signals.clip_high, batch),
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
