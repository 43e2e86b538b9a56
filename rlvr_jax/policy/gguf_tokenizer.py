"""The tokenizer in a GGUF file: byte-level byte-pair encoding from the file's metadata."""

from pathlib import Path
from typing import Any

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    normalizers,
    pre_tokenizers,
    processors,
)
from tokenizers.models import BPE

from rlvr_jax.policy.gguf import open_gguf

_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4  # kinds of token in `tokenizer.ggml.token_type`
_QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def gguf_tokenizer(path: str | Path) -> Any:
    """The tokenizer of a GGUF file, with its chat template, as transformers' fast class.

    Raises:
      ValueError: not a GGUF file; another kind of tokenizer; more tokens than embeddings; merges,
        kinds or ids that do not fit the tokens; no end-of-sequence token. Also if the package
        `gguf` is missing.
    """
    from transformers import PreTrainedTokenizerFast

    reader, fields = open_gguf(path)
    splits = {
        "smollm": [pre_tokenizers.Digits(individual_digits=True)],
        "qwen2": [pre_tokenizers.Split(Regex(_QWEN_WORDS), "isolated")],
    }
    kind, split = fields("tokenizer.ggml.model"), fields("tokenizer.ggml.pre", "default")
    if kind != "gpt2" or split not in splits:
        raise ValueError(
            f"tokenizer: that of {path} must be of the model gpt2 with one of the splits"
            f" {', '.join(splits)}, got {kind!r} with {split!r}"
        )
    tokens = fields("tokenizer.ggml.tokens")
    rows = {tensor.name: tensor.shape for tensor in reader.tensors}.get("token_embd.weight")
    if rows is not None and len(tokens) > rows[1]:
        raise ValueError(
            f"tokenizer: that of {path} must have at most the {rows[1]} ids that the model embeds,"
            f" got {len(tokens)}"
        )
    vocabulary = {token: index for index, token in enumerate(tokens)}
    merges = [tuple(pair.split(" ")) for pair in fields("tokenizer.ggml.merges")]
    for pair in merges:
        if len(pair) != 2 or not {*pair, "".join(pair)} <= vocabulary.keys():
            raise ValueError(
                f"tokenizer: each merge of {path} must join two tokens to a third, got"
                f" {' '.join(pair)!r}"
            )
    bpe = Tokenizer(BPE(vocabulary, merges))
    # Qwen's expression splits all of the text; the others leave words to GPT-2's.
    words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split != "qwen2")
    bpe.pre_tokenizer = pre_tokenizers.Sequence([*splits[split], words])
    if split == "qwen2":
        bpe.normalizer = normalizers.NFC()
    bpe.decoder = decoders.ByteLevel()
    begin = fields("tokenizer.ggml.bos_token_id", None)
    if fields("tokenizer.ggml.add_bos_token", False) and begin is not None and begin < len(tokens):
        first = tokens[begin]
        around = {"single": f"{first} $A", "pair": f"{first} $A $B"}
        bpe.post_processor = processors.TemplateProcessing(
            **around, special_tokens=[(first, begin)]
        )
    types = fields("tokenizer.ggml.token_type", [_NORMAL] * len(tokens))
    if len(types) != len(tokens):
        raise ValueError(
            f"tokenizer: {path} must have one kind for each of its {len(tokens)} tokens, got"
            f" {len(types)}"
        )
    for token, kind in zip(tokens, types, strict=True):
        if kind in (_CONTROL, _USER_DEFINED):
            bpe.add_tokens([AddedToken(token, special=kind == _CONTROL, normalized=False)])
    ids = {
        f"{ours}_token": fields(f"tokenizer.ggml.{theirs}_token_id", None)
        for ours, theirs in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))
    }
    for name, index in ids.items():
        if index is not None and index >= len(tokens):
            raise ValueError(
                f"tokenizer: the id of the {name} of {path} must be below {len(tokens)}, got"
                f" {index}"
            )
    if ids["eos_token"] is None:
        raise ValueError(f"tokenizer: {path} must name an eos_token, found none")
    loaded = PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        model_max_length=fields(f"{fields('general.architecture')}.context_length"),
        clean_up_tokenization_spaces=False,
        **{name: tokens[index] for name, index in ids.items() if index is not None},
    )
    loaded.chat_template = fields("tokenizer.chat_template", None)
    return loaded
