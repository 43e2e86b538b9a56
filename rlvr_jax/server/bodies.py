"""Bodies of requests about a model, read and checked."""

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from rlvr_jax.server.checkpoints import checked_name
from rlvr_jax.server.gradients import AdamParams
from rlvr_jax.server.models import Spec
from rlvr_jax.server.refusal import Refused


def stored_name(body: Mapping[str, Any], seq: int) -> str:
    """The name of weights to store: that of the request, else its number."""
    return checked_name(body.get("path") or f"{seq:06d}")


def read_spec(body: Mapping[str, Any], model_id: str) -> Spec:
    """Reads the body of `create_model`.

    Raises:
      Refused: another optimizer than AdamW, or adapters of nothing.
    """
    optimizer = (body.get("optimizer_config") or {}).get("type", "adamw")
    if optimizer != "adamw":
        raise Refused(f"optimizer_config must be adamw, got {optimizer!r}")
    base, config = body.get("base_model"), body.get("lora_config")
    if not isinstance(base, str):
        raise Refused(f"base_model must be a text, got {base!r}")
    usual = zlib.crc32(model_id.encode())
    if config is None:
        return Spec(base, rank=0, seed=usual)
    rank, seed = config.get("rank"), config.get("seed")
    if type(rank) is not int or rank < 0:
        raise Refused(f"lora_config: rank must be an integer, 0 for all weights, got {rank!r}")
    attention, mlp = (bool(config.get(name, True)) for name in ("train_attn", "train_mlp"))
    if rank and not (attention or mlp):
        raise Refused(
            "lora_config: train_attn or train_mlp must be set, as other adapters are not supported"
        )
    return Spec(base, rank, attention, mlp, usual if type(seed) is not int else seed & 0x7FFFFFFF)


def read_adam(body: Mapping[str, Any]) -> AdamParams:
    """Reads the numbers of an optimizer step.

    Raises:
      Refused: another optimizer, unknown names, or values that are not numbers in their ranges.
    """
    given = body.get("adam_params")
    if not isinstance(given, dict):
        raise Refused("optim_step: adam_params must be given, as AdamW is the only optimizer here")
    known = vars(AdamParams())
    for name, value in given.items():
        if name not in known:
            raise Refused(f"adam_params must be among {', '.join(known)}, got {name!r}")
        if type(value) not in (int, float) or not np.isfinite(value) or value < 0:
            raise Refused(f"adam_params: {name} must be a number of at least 0, got {value!r}")
        if name in ("beta1", "beta2") and value >= 1:
            raise Refused(f"adam_params: {name} must be below 1, got {value!r}")
    return AdamParams(**given)
