"""Checks of datums, and their arrays in padded batches."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.policy import ModelConfig
from rlvr_jax.server.refusal import Refused
from rlvr_jax.server.wire import Datum


class Batch(NamedTuple):
    """Rows of one micro-batch, right-padded.

    Fields:
      tokens: inputs of the model; position n predicts `targets[:, n]`.
      present: positions of the sequences; False on padding.
      inputs: arrays of the loss by name, 0 on padding.
    """

    tokens: Int[Array | np.ndarray, "B N"]
    targets: Int[Array | np.ndarray, "B N"]
    present: Bool[Array | np.ndarray, "B N"]
    inputs: dict[str, Float[Array | np.ndarray, "B N"]]


def check_datum(
    place: int,
    datum: Datum,
    config: ModelConfig,
    needed: Collection[str],
    optional: Collection[str] = (),
    scalars: Collection[str] = (),
) -> None:
    """Checks one datum of a request.

    Args:
      place: its number in the request, for the error.
      datum: tokens of the input, and arrays by name.
      config: shape of the model.
      needed, optional: names of arrays with one number per token, besides target_tokens.
      scalars: names of optional arrays with one number.
    Raises:
      Refused: no tokens, or more than positions; ids outside of the vocabulary; missing, unknown
        or non-finite arrays, or arrays of another length.
    """
    count, own = len(datum.tokens), f"data[{place}]"
    if not 1 <= count <= config.max_positions:
        raise Refused(
            f"{own}: model_input must have 1 to {config.max_positions} tokens, got {count}"
        )
    needed = {"target_tokens", *needed}
    if missing := sorted(needed - datum.inputs.keys()):
        raise Refused(f"{own}: loss_fn_inputs must have {', '.join(missing)}, got none")
    known = needed | {*optional, *scalars}
    if unknown := sorted(datum.inputs.keys() - known):
        raise Refused(
            f"{own}: loss_fn_inputs must be among {', '.join(sorted(known))}, got"
            f" {', '.join(unknown)}"
        )
    for name, array in datum.inputs.items():
        wanted = (1,) if name in scalars else (count,)
        if array.shape != wanted and not (name in scalars and array.shape == ()):
            raise Refused(
                f"{own}: {name} must have the shape {list(wanted)}, got {list(array.shape)}"
            )
        if not np.isfinite(array).all():
            raise Refused(f"{own}: {name} must have finite numbers, got others")
    for name, ids in (
        ("model_input", datum.tokens),
        ("target_tokens", datum.inputs["target_tokens"]),
    ):
        if ids.dtype.kind != "i" or ids.min() < 0 or ids.max() >= config.vocab_size:
            raise Refused(
                f"{own}: {name} must have token ids below {config.vocab_size}, got others"
            )


def padded_size(count: int, least: int = 1) -> int:
    """The least of 1, 2, 3, 4, 6, 8, 12, 16, … times `least` that is not below `count`.

    Few sizes mean few compiled functions, and at most a third is padding.
    """
    size = least
    while size < count:
        half = size + size // 2
        if size % 2 == 0 and half >= count:
            return half
        size *= 2
    return size


def micro_batches(
    data: Sequence[Datum], names: Sequence[str], rows: int
) -> Iterator[tuple[np.ndarray, Batch]]:
    """Splits datums into batches of equally many rows, similar lengths together.

    Args:
      names: arrays of the loss.
      rows: rows of a batch; the last one is filled up with empty rows.
    Yields:
      The numbers of the datums in the batch, and the batch.
    """
    order = np.argsort([len(datum.tokens) for datum in data], kind="stable")
    for first in range(0, len(order), rows):
        own = order[first : first + rows]
        width = padded_size(max(len(data[number].tokens) for number in own), 16)
        batch = Batch(
            np.zeros((rows, width), np.int32),
            np.zeros((rows, width), np.int32),
            np.zeros((rows, width), bool),
            {name: np.zeros((rows, width), np.float32) for name in names},
        )
        for row, number in enumerate(own):
            datum = data[number]
            count = len(datum.tokens)
            batch.tokens[row, :count] = datum.tokens
            batch.targets[row, :count] = datum.inputs["target_tokens"]
            batch.present[row, :count] = True
            for name in names:
                batch.inputs[name][row, :count] = datum.inputs[name]
        yield own, batch
