"""The inputs of parts: which names exist, checks of arrays, and zeros off the mask."""

import dataclasses
import difflib
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool

from rlvr_jax.keys import checked_key
from rlvr_jax.objectives.algebra.parts import Surrogate, Transform
from rlvr_jax.types import RECORDS, STATISTICS, Rollouts, Signals, TokenStats
from rlvr_jax.types.fields import fits
from rlvr_jax.types.rollouts import kind_and_axes, missing_number
from rlvr_jax.types.token_stats import statistic_of

Reader = Transform | Surrogate

# Records of the sampler that third-party batches may lack: name -> field of the rollouts.
SAMPLED = {"behaviour_logp": "behaviour_logp", "sampled_entropy": "entropy"}
# Written by `Objective.decide_once`, for the objective itself.
_DECISIONS = {"advantage", "weight", "decided_mask"}


def readable() -> list[str]:
    """The names that a part may read: statistics, and records that the sampler does not write."""
    records = sorted(RECORDS.keys() - _DECISIONS)
    old = [f"old_{name}" for name in STATISTICS if name != "logp"]
    return [*STATISTICS, *old, "reference_logp", *records, *SAMPLED, "batch_statistics"]


def measured(names: Set[str]) -> set[str]:
    """Statistics of the current policy, and of the old policy; at the first update of a batch these
    are equal."""
    return {name for name in names if name != "old_logp" and statistic_of(name) is not None}


def _arrays(stats: TokenStats, rollouts: Rollouts) -> Iterator[tuple[str, str, Any, str, Any]]:
    """Source, name, array, kind and axes of all statistics and records that are not None."""
    for name, array in stats.arrays.items():
        yield "stats", name, array, STATISTICS[name].kind, STATISTICS[name].axes
    for name, array in rollouts.arrays.items():
        yield "rollouts", name, array, *kind_and_axes(name)


def check_reads(part: Reader) -> None:
    """Raises if a part reads an unknown name; the message has the closest known names."""
    for name in sorted(part.reads - {*readable()}):
        close = difflib.get_close_matches(name, readable(), n=3, cutoff=0.5) or readable()
        raise ValueError(
            f"objective: reads of {part.label} must be among the statistics and records"
            f" (closest: {', '.join(close)}), got {name!r}"
        )


def check_answer(part: Transform, before: Signals, answer: Any, mask: Bool[Array, "B T"]) -> None:
    """Raises if a part's result is not (signals, state, metrics), if a signal has not the mask's
    shape, or if a changed signal is not in `writes`.

    Args:
      part: the transform that returned `answer`.
      before: signals that it received.
      answer: its result.
      mask: of the rollouts.
    """
    label = part.label
    if not (isinstance(answer, tuple) and len(answer) == 3 and isinstance(answer[0], Signals)):
        raise ValueError(
            f"{label}: apply must return (signals, state, metrics), got {type(answer).__name__}"
        )
    for entry in dataclasses.fields(Signals):
        value = getattr(answer[0], entry.name)
        wanted = () if entry.name == "term" else mask.shape
        if value is not None and jnp.shape(value) != wanted:
            raise ValueError(
                f"{label}: {entry.name} of the signals must have the shape {wanted}, got"
                f" {jnp.shape(value)}"
            )
        changed = value is not getattr(before, entry.name)
        if changed and part.writes is not None and entry.name not in part.writes:
            raise ValueError(
                f"{label}: writes must name each signal that apply changes, which is"
                f" {entry.name!r}, got {sorted(part.writes)}"
            )


def check_carried(state: Any, key: Any) -> None:
    """Raises if `state` is not a state, if the key is None, or if its generator makes the choice of
    a token depend on others."""
    if not isinstance(state, Mapping):
        raise ValueError(
            "loss: state must be from objective.init(Spec(prompts, B, T)) or the last call,"
            f" got {state!r}"
        )
    if key is None:
        raise ValueError("loss: key must be a key of jax.random, got None")
    checked_key("loss", key)


def check_new_state(part: str, before: Any, after: Any) -> None:
    """Raises if a part changes fields, shapes or dtypes of its state: no checkpoint could be read.
    In a compiled call it raises before any change."""
    kinds = []
    for state in (before, after):
        leaves = jax.tree.leaves_with_path(jax.eval_shape(lambda state: state, state))
        kinds.append({jax.tree_util.keystr(path): leaf for path, leaf in leaves})
    for path in sorted(kinds[0].keys() | kinds[1].keys()):
        old, new = (known.get(path) for known in kinds)
        alike = old is not None and new is not None and old.shape == new.shape
        # A Python number takes the dtype of the array that it replaces.
        number = alike and new.weak_type and old.dtype.kind == new.dtype.kind
        if alike and (old.dtype == new.dtype or number):
            continue
        had, has = (
            "nothing" if kind is None else f"{kind.dtype}{[*kind.shape]}" for kind in (old, new)
        )
        raise ValueError(
            f"loss: state{path} of {part} must stay {had}, as init makes it, got {has} from apply"
        )


def check_inputs(stats: TokenStats, rollouts: Rollouts, parts: Iterable[Reader]) -> None:
    """Raises if a batch lacks an input of a part, or if an array does not fit the mask."""
    mask = rollouts.mask
    if mask.ndim != 2 or mask.dtype != bool:
        raise ValueError(
            f"loss: rollouts.mask must be bool [B, T], got {mask.dtype} {list(mask.shape)}"
        )
    wanted = {"logp": "every objective"}
    parts = tuple(parts)
    for part in parts:
        wanted.update(dict.fromkeys(part.reads - {"batch_statistics"}, part.label))
    for need, reader in sorted(wanted.items()):
        source = "stats" if need in STATISTICS else "rollouts"
        field = SAMPLED.get(need, need)
        value = stats.get(field) if source == "stats" else rollouts.get(field)
        _check_given("loss", f"{source}.{field}", value, mask.shape, reader)
    for part in parts:
        _check_last_axes(part, stats, rollouts)
    sizes = dict(zip("BT", mask.shape, strict=True))
    for source, name, value, _, axes in _arrays(stats, rollouts):
        if not fits(value.shape, axes, sizes):
            shape = ", ".join(str(sizes.get(axis, axis)) for axis in axes)
            raise ValueError(
                f"loss: {source}.{name} must have the shape [{shape}] as rollouts.mask"
                f" {list(mask.shape)}, got {list(value.shape)}"
            )


def _check_last_axes(part, stats, rollouts) -> None:
    """Raises if the last axis K of an array is not that of the part's options and records."""
    wanted = {}
    if top_k := dict(part.options).get("top_k"):
        wanted |= dict.fromkeys(("topk_logp", "topk_ids", "old_topk_logp"), top_k)
    for name, made in getattr(part, "records", ()):
        wanted[name] = made if isinstance(made, int) else len(made)
    for name, number in wanted.items():
        if name not in part.reads:
            continue
        source = "stats" if name in STATISTICS else "rollouts"
        value = (stats if source == "stats" else rollouts).get(name)
        if value.shape[-1] != number:
            raise ValueError(
                f"loss: the last axis of {source}.{name} must be {number} for {part.label}, got"
                f" {value.shape[-1]}"
            )


def check_recorded(rollouts: Rollouts, parts: Iterable[Reader]) -> None:
    """Raises if rollouts lack records that parts read; "logp" means `old_logp` here."""
    for part in parts:
        for need in sorted(part.reads - {"batch_statistics"}):
            name = "old_logp" if need == "logp" else SAMPLED.get(need, need)
            value = rollouts.get(name)
            _check_given("decide_once", f"rollouts.{name}", value, rollouts.mask.shape, part.label)


def _check_given(function: str, name: str, value, mask_shape: tuple[int, int], reader: str) -> None:
    if value is None:
        raise ValueError(f"{function}: {name} must be given ({reader} reads it), got None")
    source, _, field = name.partition(".")
    axes = STATISTICS[field].axes if source == "stats" else kind_and_axes(field)[1]
    # Shapes of numbers per rollout: [B, K] may happen to be [B, T].
    shape = mask_shape[: 2 if axes[:2] == ("B", "T") else 1]
    if value.shape[: len(shape)] != shape:
        raise ValueError(
            f"{function}: {name} must begin with the shape {shape} as rollouts.mask does, got"
            f" {value.shape}"
        )


def wide(dtype: DTypeLike) -> Any:
    """The dtype of computations with numbers of this dtype: float64 for float64, else float32."""
    return jnp.float64 if dtype == jnp.float64 else jnp.float32


def on_mask(stats: TokenStats, rollouts: Rollouts) -> tuple[TokenStats, Rollouts]:
    """The inputs with only valid rows, and 0 off the mask. Numbers (also bool and integer rewards)
    get the dtype of the statistics, float32 at least."""
    rollouts = rollouts.only_valid()
    mask, dtype = rollouts.mask, wide(stats.logp.dtype)

    cleaned: dict[str, dict[str, Any]] = {"stats": {}, "rollouts": {}}
    for source, name, value, kind, axes in _arrays(stats, rollouts):
        missing = missing_number(name) if source == "rollouts" else 0
        value = jnp.asarray(value, dtype) if kind == "Float" else value
        if axes[:2] == ("B", "T") and (kind == "Float" or missing):
            tokens = mask.reshape(mask.shape + (1,) * (value.ndim - 2))
            value = jnp.where(tokens, value, missing)
        cleaned[source][name] = value
    return stats.replace(**cleaned["stats"]), rollouts.replace(**cleaned["rollouts"])
