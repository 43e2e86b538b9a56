"""The effect of an update on every token of a rollout, as columns and as JSON lines.

With o the sampled token, R = exp(log π - log π_old), A the advantage, r = log π_ref - log π:

    probability change e^logπ - e^logπ_old     surprise -log π     rank: tokens more likely than o
    margin p₍₁₎ - p₍₂₎     mismatch KL R - 1 - ln R     reference KL e^r - 1 - r
    clipped: R > 1 + high and A > 0, or R < 1 - low and A < 0
    surrogate min(R A, clip(R) A)              gradient weight R A where not clipped, else 0

Mismatch KL and probability change are prime-rl's, https://github.com/PrimeIntellect-ai/prime-rl.
The log-prob of the sampler differs from the recomputed one; both are stored under their names. Rows
can contain test items and gold answers: `held_out` marks them.
"""

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlvr_jax.analysis.arrays import log_softmax, row_mean
from rlvr_jax.analysis.page import replace_file

SCHEMA = 1  # version of the JSON lines; it grows if the meaning of a column changes
_DIGITS = 4


class TokenTrace(NamedTuple):
    """Columns of [B, T], 0 off the mask; see the module. `ref_logp` and `ref_kl` may be None."""

    logp: np.ndarray
    old_logp: np.ndarray
    ref_logp: np.ndarray | None
    entropy: np.ndarray
    ratio: np.ndarray
    prob_delta: np.ndarray
    surprise: np.ndarray
    rank: np.ndarray
    margin: np.ndarray
    mismatch_kl: np.ndarray
    ref_kl: np.ndarray | None
    advantages: np.ndarray
    clipped_high: np.ndarray
    clipped_low: np.ndarray
    surrogate: np.ndarray
    gradient_weight: np.ndarray


def rank_and_margin(logits: ArrayLike, tokens: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Number of tokens that are more probable than the sampled one, and p₍₁₎ - p₍₂₎.

    Args:
      logits: [..., V]. Memory is that of the logits: pass a few rollouts at a time.
      tokens: int [...].
    Returns:
      rank: int [...], 0 for the greedy token. margin: [...].
    """
    logp = log_softmax(logits)
    own = np.take_along_axis(logp, np.asarray(tokens)[..., None], axis=-1)
    best = np.exp(np.partition(logp, -2, axis=-1)[..., -2:])
    return np.sum(logp > own, axis=-1), best[..., 1] - best[..., 0]


def token_trace(
    *,
    logp: ArrayLike,
    old_logp: ArrayLike,
    entropy: ArrayLike,
    rank: ArrayLike,
    margin: ArrayLike,
    advantage: ArrayLike,
    mask: ArrayLike,
    ref_logp: ArrayLike | None = None,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
) -> TokenTrace:
    """Computes the columns of a trace.

    To compare two checkpoints on equal tokens, pass the log-probs of the other one as `old_logp`.

    Args:
      logp, old_logp, ref_logp: [B, T], nats, of the sampled token. Policies: the current one, the
        one that sampled (recomputed), and the frozen reference.
      entropy, rank, margin: [B, T], of the current policy, over the whole vocabulary.
      advantage: [B, T], or [B, 1] with one advantage per response.
      mask: bool [B, T].
      clip_low, clip_high: half-widths of the clip range of the ratio.
    """
    mask = np.asarray(mask, bool)

    def column(values):
        return np.where(mask, np.asarray(values, float), 0.0)

    new, old, a = column(logp), column(old_logp), column(advantage)
    ratio = np.exp(new - old)
    high, low = mask & (ratio > 1 + clip_high) & (a > 0), mask & (ratio < 1 - clip_low) & (a < 0)
    trusted = np.clip(ratio, 1 - clip_low, 1 + clip_high)
    reference = None if ref_logp is None else column(ref_logp)
    gap = None if reference is None else reference - new
    return TokenTrace(
        logp=new,
        old_logp=old,
        ref_logp=reference,
        entropy=column(entropy),
        ratio=column(ratio),
        prob_delta=column(np.exp(new) - np.exp(old)),
        surprise=column(-new),
        rank=column(rank).astype(int),
        margin=column(margin),
        mismatch_kl=column(np.expm1(new - old) - (new - old)),
        ref_kl=None if gap is None else column(np.expm1(gap) - gap),
        advantages=a,
        clipped_high=high,
        clipped_low=low,
        surrogate=column(np.minimum(ratio * a, trusted * a)),
        gradient_weight=np.where(high | low, 0.0, column(ratio * a)),
    )


def clip_fraction(trace: TokenTrace, mask: ArrayLike) -> np.ndarray:
    """Fraction of each row's tokens that are clipped, [B]."""
    return row_mean(trace.clipped_high | trace.clipped_low, mask)


def write_traces(
    path: str | Path,
    trace: TokenTrace,
    mask: ArrayLike,
    rows: Iterable[Mapping[str, Any]],
    held_out: bool = False,
) -> Path:
    """Writes one JSON line per rollout: the fields of its row, and a list per column over its
    tokens.

    Numbers are rounded to 4 digits. Numbers that are not finite are null.

    Args:
      path: file to write, for example `traces/step_000010.jsonl`; its folder is made.
      trace: the columns.
      mask: bool [B, T]; tokens off the mask are left out.
      rows: further values of each rollout in order, for example tokens, rewards by name, ids,
        answers.
      held_out: whether the rollouts answer test items.
    """
    path, mask = Path(path), np.asarray(mask, bool)
    columns = {name: values for name, values in trace._asdict().items() if values is not None}
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for own, kept, fields in zip(range(len(mask)), mask, rows, strict=True):
        line = {"schema": SCHEMA, "held_out": held_out, **fields}
        line |= {name: _short(values[own][kept]) for name, values in columns.items()}
        lines.append(json.dumps(_finite(line), allow_nan=False) + "\n")
    replace_file(path, "".join(lines).encode())
    return path


def _short(values: np.ndarray) -> list:
    if values.dtype.kind in "bi":
        return values.astype(int).tolist()
    return [float(f"{value:.{_DIGITS}g}") for value in values]


def _finite(value: Any) -> Any:
    """The value, with None for NaN and infinities, which JSON does not have."""
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
