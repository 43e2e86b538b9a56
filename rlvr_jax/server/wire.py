"""Protocol buffers of the Tinker protocol, read and written without its package.

Bodies of `forward_backward` and replies with arrays are protocol buffers. The field numbers are
those of `tinker_public.proto` in tinker 0.38.0.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlvr_jax.server.protobuf import (
    block,
    decimal,
    double,
    entries,
    entry,
    fields,
    integer,
    mapped,
    packed,
    string,
    text,
)
from rlvr_jax.server.refusal import Refused

PROTOBUF = "application/x-protobuf"
"""Content type of these bodies."""

FLOAT32, INT64 = 1, 2
_DTYPES = {FLOAT32: np.dtype("<f4"), INT64: np.dtype("<i8"), 3: np.dtype("<i4")}


@dataclass(frozen=True)
class Datum:
    """A sequence and the arrays that its loss reads.

    Fields:
      tokens: int [N], input of the model.
      inputs: arrays by name, as the client sent them.
    """

    tokens: np.ndarray
    inputs: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class ForwardBackward:
    """A request for log-probs and, unless `forward_only`, for a gradient."""

    model_id: str
    seq_id: int
    data: tuple[Datum, ...]
    loss: str
    config: Mapping[str, float | str]
    forward_only: bool


def read_forward_backward(body: bytes) -> ForwardBackward:
    """Reads the body of `forward_backward`.

    Raises:
      Refused: a body that is cut off or is not this message; images and audio; sparse tensors.
    """
    try:
        return _forward_backward(memoryview(body))
    except Refused:
        raise
    except (ValueError, IndexError, OverflowError, struct.error) as error:
        raise Refused(f"forward_backward: the body must be its protocol buffer: {error}") from error


def read_address(body: bytes) -> tuple[str, int, bool]:
    """Model, number and `forward_only` of a request, whose content may be refused later.

    Raises:
      Refused: as `read_forward_backward`, or a body without them.
    """
    found: dict[int, Any] = {}
    try:
        for number, value in fields(memoryview(body)):
            found.setdefault(number, value)
        model_id, seq_id = string(found[1]), found[2]
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise Refused(f"forward_backward: the body must be its protocol buffer: {error}") from error
    if not isinstance(seq_id, int) or not 0 < seq_id < 2**31:
        raise Refused("forward_backward: seq_id must be the number of a request")
    return model_id, seq_id, bool(found.get(6))


def write_forward_backward(
    metrics: Mapping[str, float], outputs: Mapping[str, Sequence[np.ndarray]]
) -> bytes:
    """The reply to `forward_backward`: metrics, and arrays per datum (float32 [N]) by name."""
    count = max(map(len, outputs.values()), default=0)
    tensors = {name: _batched(arrays) for name, arrays in outputs.items()}
    record = text(1, "ArrayRecord") + entries(2, tensors) + integer(3, count)
    numbers = {name: decimal(2, value) for name, value in metrics.items()}
    return text(1, "ArrayRecord") + block(2, record) + mapped(3, numbers)


@dataclass(frozen=True)
class SampledSequence:
    """A response of `sample`: token ids and their log-probs (nats), and why it ended.

    Fields:
      top: ids and log-probs [n, k] of the most probable tokens of each place, if requested.
    """

    tokens: np.ndarray
    logprobs: np.ndarray
    stopped: bool
    top: tuple[np.ndarray, np.ndarray] | None = None


def write_sample(
    sequences: Iterable[SampledSequence], prompt_logprobs: np.ndarray | None = None
) -> bytes:
    """The reply to `sample`.

    Args:
      prompt_logprobs: float32 [n], NaN where a token has none, as the first one.
    """
    parts = []
    for sequence in sequences:
        written = integer(1, 0 if sequence.stopped else 1)
        written += block(2, np.asarray(sequence.tokens, "<i4").tobytes())
        written += block(3, np.asarray(sequence.logprobs, "<f4").tobytes())
        if sequence.top is not None:
            ids, logprobs = sequence.top
            table = block(1, np.asarray(ids, "<i4").tobytes())
            table += block(2, np.asarray(logprobs, "<f4").tobytes())
            written += block(4, table + integer(3, ids.shape[1]) + integer(4, len(ids)))
        parts.append(block(1, written))
    if prompt_logprobs is not None:
        parts.append(block(2, np.asarray(prompt_logprobs, "<f4").tobytes()))
    return b"".join(parts)


def _forward_backward(body: memoryview) -> ForwardBackward:
    found: dict[str, Any] = {"model_id": "", "seq_id": 0, "loss": "", "forward_only": False}
    data, old, config = [], {}, {}
    for number, value in fields(body):
        if number == 1:
            found["model_id"] = string(value)
        elif number == 2:
            found["seq_id"] = value
        elif number == 3:
            data.append(_datum(value))
        elif number == 4:
            found["loss"] = string(value)
        elif number == 5:
            name, number_bytes = entry(value)
            old[name] = double(number_bytes)
        elif number == 6:
            found["forward_only"] = bool(value)
        elif number == 7:
            name, message = entry(value)
            for kind, inner in fields(message):
                config[name] = double(inner) if kind == 1 else string(inner)
    return ForwardBackward(data=tuple(data), config=config or old, **found)


def _datum(message: Any) -> Datum:
    tokens, inputs = [np.zeros(0, "<i4")], {}
    for number, value in fields(message):
        if number == 1:
            for kind, chunk in fields(value):
                if kind != 1:
                    raise Refused(
                        "model_input: chunks must be text tokens, got an image or audio; this"
                        " server has text models only"
                    )
                for inner, content in fields(chunk):
                    if inner == 1:
                        tokens.append(np.frombuffer(content, "<i4"))
        elif number == 2:
            name, tensor = entry(value)
            inputs[name] = _tensor(name, tensor)
    return Datum(np.concatenate(tokens), inputs)


def _tensor(name: str, message: Any) -> np.ndarray:
    dense, kind, shape, shaped = None, 0, [], False
    for number, value in fields(message):
        if number == 1:
            dense = value
        elif number == 2:
            raise Refused(f"loss_fn_inputs: {name} must be a dense tensor, got a sparse one")
        elif number == 3:
            kind = value
        elif number == 4:
            # Repeated numbers come packed, or one by one.
            shape += list(packed(value)) if isinstance(value, memoryview) else [value]
            shaped = True
    if kind not in _DTYPES:
        raise Refused(f"loss_fn_inputs: {name} must be float32 or int64, got dtype {kind}")
    array = np.frombuffer(b"" if dense is None else dense, _DTYPES[kind])
    return array.reshape(shape) if shaped else array


def _batched(arrays: Sequence[np.ndarray]) -> bytes:
    data = b"".join(np.asarray(array, "<f4").tobytes() for array in arrays)
    offsets = np.cumsum([0, *(4 * array.size for array in arrays)]).astype("<i8")
    return block(1, data) + block(2, offsets.tobytes()) + integer(3, FLOAT32)
