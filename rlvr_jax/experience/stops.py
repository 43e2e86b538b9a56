"""The search for texts at which a response pauses, in the tokens of a tokenizer."""

import functools
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from rlvr_jax.rollout import Stops, find_stops

_UNKNOWN = "\ufffd"
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")  # the spelling of a byte with byte fallback


@functools.lru_cache(maxsize=16)
def stops_of(tokenizer: Any, texts: tuple[str, ...], size: int) -> Stops | None:
    """The search for non-empty texts in the tokens of a model; None without any text.

    Args:
      size: number of ids of the model, which may exceed the tokenizer's.
    """
    texts = tuple(dict.fromkeys(filter(None, texts)))
    if not texts:
        return None
    known = token_bytes(tokenizer)[:size]
    return find_stops(texts, [*known, *[b""] * (size - len(known))])


@functools.lru_cache(maxsize=4)
def token_bytes(tokenizer: Any) -> tuple[bytes, ...]:
    """The bytes that each token adds in the middle of a text, special tokens included.

    A token that is part of a character has the bytes of that part; byte-level tokenizers and those
    with byte fallback spell them. Other tokens add the text that they decode to after a token.
    """
    size = len(tokenizer)
    names = [name or "" for name in tokenizer.convert_ids_to_tokens(list(range(size)))]
    steps = _decoder(tokenizer)
    if "ByteLevel" in steps:
        byte_of = _byte_level()
        return tuple(
            b"".join(byte_of[letter] for letter in name)
            if all(letter in byte_of for letter in name)
            else name.encode()
            for name in names
        )
    decode = functools.partial(tokenizer.batch_decode, clean_up_tokenization_spaces=False)
    before = _anchor(decode, size)
    start = "" if before is None else decode([[before]])[0]
    rows = [[number] if before is None else [before, number] for number in range(size)]
    texts = [text.removeprefix(start).encode() for text in decode(rows)]
    if "ByteFallback" in steps:
        found = ((number, _BYTE.fullmatch(name)) for number, name in enumerate(names))
        for number, match in found:
            if match:
                texts[number] = bytes([int(match[1], 16)])
    return tuple(texts)


def completes(tokenizer: Any, tokens: Sequence[int], texts: Sequence[str]) -> bool:
    """Whether the last of some tokens completes one of the texts."""
    if not (tokens and texts):
        return False
    before, whole = tokenizer.batch_decode(
        [list(tokens[:-1]), list(tokens)], clean_up_tokenization_spaces=False
    )
    end = len(before.rstrip(_UNKNOWN))
    return any(text and whole.find(text, max(0, end - len(text) + 1)) >= 0 for text in texts)


def _decoder(tokenizer: Any) -> set[str]:
    """The kinds of decoding steps of a tokenizer."""
    decoder = getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", None)
    if decoder is None:
        return set()
    described = json.loads(decoder.__getstate__())
    return {step["type"] for step in (described, *described.get("decoders", ()))}


def _byte_level() -> dict[str, bytes]:
    """The byte of each letter of a byte-level token. Printable bytes equal their letters; the
    letters of the others are in order from 256 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    pairs = [*zip(plain, plain, strict=True), *zip(others, range(256, 512), strict=False)]
    return {chr(letter): bytes([byte]) for byte, letter in pairs}


def _anchor(decode: Callable[..., list[str]], size: int) -> int | None:
    """The first token whose text does not change when it is decoded twice in a row."""
    for number in range(size):
        one, two = decode([[number], [number, number]])
        if one.strip() and _UNKNOWN not in one and two.startswith(one) and len(two) > len(one):
            return number
    return None
