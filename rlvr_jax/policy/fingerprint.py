"""Fingerprints of policy folders, to compare the values that they compute with."""

import dataclasses
import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from rlvr_jax.policy.config import ModelConfig
from rlvr_jax.policy.model import Model
from rlvr_jax.policy.tensors import StoredTensor
from rlvr_jax.policy.tokenizer import tokenizer
from rlvr_jax.policy.weights import opened

SET_BY_RUNS = frozenset({"max_positions", "compute_dtype", "remat", "lora", "bitwise"})
"""Fields of a model's configuration that may differ where the same weights are read."""

_BYTES = 2**26  # of a tensor that are read at a time


def fingerprint(path: str | Path) -> dict[str, Any]:
    """Returns the values that determine the results of a policy folder or GGUF file, as JSON.

    It depends on values, not on files: tensors that were saved again, in other shards, or in a
    wider dtype have an equal fingerprint.

    Returns:
      configuration: the shape of the model and the constants of its layers, by name.
      weights: digest of all tensors, as float32.
      stop_tokens: ids that end a response.
      tokenizer: digest of the vocabulary, the rules and the chat template.
    Raises:
      ValueError: as `load` and `tokenizer`.
    """
    config, tensors, generation_config = opened(path)
    words = tokenizer(path)
    stops = words.eos_token_id, *Model(config, generation_config).stop_tokens
    digest = hashlib.sha256()
    for name in sorted(tensors):
        if not (config.tied and name == "lm_head.weight"):
            digest.update(f"{name} {tensors[name].shape} {_checksum(tensors[name])}\n".encode())
    return {
        "configuration": _constants(config),
        "weights": digest.hexdigest()[:16],
        "stop_tokens": list(dict.fromkeys(map(int, stops))),
        "tokenizer": hashlib.sha256(_rules(words).encode()).hexdigest()[:16],
    }


def _constants(config: ModelConfig) -> dict[str, Any]:
    known = dataclasses.asdict(config)
    selected = {name: value for name, value in known.items() if name not in SET_BY_RUNS}
    return json.loads(json.dumps(selected))  # lists in the place of tuples, as they are read again


def _checksum(tensor: StoredTensor) -> int:
    """The cyclic redundancy check of a tensor's values as float32, row by row."""
    found = 0
    rows = max(1, _BYTES // max(1, 4 * int(np.prod(tensor.shape[1:], dtype=np.int64))))
    others = tuple(slice(0, size) for size in tensor.shape[1:])
    for start in range(0, tensor.shape[0], rows):
        part = tensor.read((slice(start, min(start + rows, tensor.shape[0])), *others))
        found = zlib.crc32(np.ascontiguousarray(part, "<f4").data, found)
    return found


def _rules(words: Any) -> str:
    """All that turns text into tokens and back; padding and truncation are a caller's."""
    described = json.loads(words.backend_tokenizer.to_str())
    steps = {name: described[name] for name in ("model", "normalizer", "pre_tokenizer", "decoder")}
    added = sorted((t["id"], t["content"], t["special"]) for t in described["added_tokens"])
    return json.dumps([steps, added, words.chat_template], sort_keys=True)
