"""Tokenizers, by transformers: text is a view of tokens, and never turned back into them."""

import os
from functools import partial
from pathlib import Path
from typing import Any

from rlvr_jax.policy.gguf_tokenizer import gguf_tokenizer
from rlvr_jax.policy.json_object import json_object
from rlvr_jax.policy.misnamed import hint_for

# transformers says at its import that torch is missing; nothing here needs torch.
os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")


def tokenizer(path: str | Path) -> Any:
    """Loads the tokenizer of a folder in Hugging Face's layout or of a GGUF file, offline.

    Examples:
      >>> from rlvr_jax import policy, tasks
      >>> tokenizer = policy.tokenizer(tasks.load("brackets").base_model)
      >>> tokenizer.decode(tokenizer("1 + 2").input_ids)
      '1 + 2'

    A tokenizer may have fewer ids than the model has embeddings: many models pad those. It may also
    have special tokens that the model does not embed, as Gemma's for images; no prompt may contain
    one.

    Returns:
      A transformers tokenizer (`encode`, `batch_decode`, `eos_token_id`, `chat_template`, …).
    Raises:
      ValueError: no such folder; no tokenizer in it; an id without embedding (except for special
        tokens other than the end of sequence); no end-of-sequence token; a tokenizer that
        transformers cannot read; or a file that is not a JSON object.
    """
    from transformers import PreTrainedTokenizerFast

    if Path(path).suffix == ".gguf":
        return gguf_tokenizer(path)
    folder = Path(path)
    if not (folder / "tokenizer.json").is_file():
        raise ValueError(
            f"tokenizer: path must be a folder with a tokenizer.json, or a .gguf file, got"
            f" {str(path)!r}{hint_for(path)}"
        )
    # The file decides, not the model type: AutoTokenizer re-splits text by Qwen's rules for any
    # qwen2 folder, whatever its tokenizer.json says.
    for name in ("tokenizer.json", "tokenizer_config.json"):
        if (folder / name).is_file():
            json_object((folder / name).read_bytes(), folder / name)
    try:
        loaded = PreTrainedTokenizerFast.from_pretrained(str(folder), local_files_only=True)
    except Exception as error:  # of tokenizers' Rust code, and whatever transformers meets
        raise ValueError(
            f"tokenizer: {folder / 'tokenizer.json'} must hold a tokenizer, got one with"
            f" {type(error).__name__}: {error}"
        ) from error
    if loaded.eos_token_id is None:
        raise ValueError(f"tokenizer: {folder} must name an eos_token, found none")
    config = folder / "config.json"
    rows = json_object(config.read_bytes(), config).get("vocab_size") if config.is_file() else None
    special = {index for index, token in loaded.added_tokens_decoder.items() if token.special}
    largest = max(set(loaded.get_vocab().values()) - special | {loaded.eos_token_id})
    # A size that is no integer is refused with the model.
    if isinstance(rows, int) and largest >= rows:
        raise ValueError(
            f"tokenizer: ids of {folder} must be below vocab_size = {rows} of its config.json,"
            f" got {largest}"
        )
    return loaded


def templated(tokenizer: Any, chat_template: bool = True, **arguments: Any) -> Any:
    """The tokenizer with fixed arguments of its chat template; it is the same object.

    Args:
      chat_template: False takes the template away, so that texts are tokenized as they are.
      arguments: of the template, such as enable_thinking=False.
    Raises:
      ValueError: arguments for a template that there is not, or that reads none of that name.
    """
    if not chat_template:
        tokenizer.chat_template = None
    for name in arguments:
        text = str(tokenizer.chat_template or "")
        if name not in text:
            raise ValueError(
                f"chat_template_kwargs must be read by the tokenizer's chat template, got {name},"
                f" {'which it does not read' if text else 'and a tokenizer without a template'}"
            )
    if arguments:
        tokenizer.apply_chat_template = partial(tokenizer.apply_chat_template, **arguments)
    return tokenizer
