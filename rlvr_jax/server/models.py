"""Models of the server, and the specs of models in training."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from rlvr_jax.keys import named_key
from rlvr_jax.policy import ADAPTABLE, LoraConfig, Model, Params, lora
from rlvr_jax.server.storage import tree_of

ALPHA = 32.0
"""Numerator of the factor of adapters, for every rank: that of the protocol's service."""

_MLP = ("gate", "up", "mlp_output")


@dataclass(frozen=True)
class Base:
    """A model of the server before training: its name for clients, weights and tokenizer."""

    name: str
    model: Model
    params: Params
    tokenizer: Any


@dataclass(frozen=True)
class Spec:
    """Base model, adapters and seed of a model in training.

    Fields:
      base: name of the base model.
      rank: columns of the adapters; 0: all weights are trained.
      attention, mlp: whether these matrices have adapters.
      seed: of the adapters and of the random choices of objectives.
    """

    base: str
    rank: int = 32
    attention: bool = True
    mlp: bool = True
    seed: int = 0


def stored_params(base: Base, spec: Spec, arrays: Mapping[str, np.ndarray]) -> tuple[Model, Params]:
    """The model of stored weights, and its weights for sampling."""
    like = jax.eval_shape(lambda: first_weights(base, spec)[1])
    trained = tree_of("trained", arrays, like)
    return adapted(base, spec), whole_params(base.params, trained, spec.rank > 0)


def adapted(base: Base, spec: Spec) -> Model:
    """The model with the adapters of a spec."""
    if not spec.rank:
        return base.model
    wanted = {True: spec.mlp, False: spec.attention}
    targets = tuple(name for name in ADAPTABLE if wanted[name in _MLP])
    config = replace(base.model.config, lora=LoraConfig(spec.rank, ALPHA, targets))
    return replace(base.model, config=config)


def first_weights(base: Base, spec: Spec) -> tuple[Model, Params]:
    """The model of a spec and the weights that are trained, before the first step."""
    model = adapted(base, spec)
    if not spec.rank:
        return model, base.params
    return model, lora.init(model, named_key(spec.seed, "adapter"))


def whole_params(base: Params, trained: Params, adapted: bool) -> Params:
    """All weights: the base with adapters if `adapted`, else the trained ones."""
    return lora.attach(base, trained) if adapted else trained
