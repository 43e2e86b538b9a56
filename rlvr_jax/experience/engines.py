"""Rollouts from another engine: its weights are synced and checked before it samples."""

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlvr_jax import policy
from rlvr_jax.policy import Model, Params
from rlvr_jax.policy.config import wide_dtype
from rlvr_jax.rollout.engines import Decoding, Engine, EngineError
from rlvr_jax.rollout.engines.probe import (
    FLOORS,
    LIMITS,
    MEAN_FLOOR,
    SLACK,
    Gap,
    explain,
    own_scores,
    probe_sequences,
    reported_gap,
)
from rlvr_jax.types import Rollouts, replace

_PROMPTS = 2
"""Probe sequences from which the engine samples for the comparison of reported log-probs."""


class EngineLink:
    """Keeps the weights of an engine equal to those of the trainer, and measures that they are.

    Args:
      model: the policy.
      folder: place of the two policy folders through which weights go.
      longest: tokens of the long sequences of the probe.
      every: syncs between two probes; 0: the first sync only.
      bound: largest gap (nats); 0: `SLACK` times that of the first sync, also of the mean gap.

      adapters: only adapters are synced, and the engine has the base weights already. False: they
        are merged into the weights that are synced.

    Fields:
      metrics: of the last sync: engine/gap_max, engine/gap_mean, engine/reported_gap_max (nats),
        engine/sync_s, engine/probe_s (seconds). Of the last draw: engine/generate_s and
        engine/grade_s, the grading during it (seconds).
    Raises:
      ValueError: an engine that reports raw log-probs, with a temperature or cuts.
    """

    def __init__(
        self,
        engine: Engine,
        model: Model,
        tokenizer: Any,
        folder: Path,
        decoding: Decoding,
        *,
        longest: int,
        every: int = 1,
        bound: float = 0.0,
        adapters: bool = False,
    ):
        how = decoding.sampling
        if engine.meaning == "raw" and (how.temperature != 1 or how.cuts):
            raise ValueError(
                "EngineLink: engine must report processed log-probs with a temperature of"
                f" {how.temperature:g} and the cuts {', '.join(how.cuts) or 'none'}, got raw ones"
            )
        self.engine, self._model, self._tokenizer = engine, model, tokenizer
        self._folder, self._decoding, self._every = folder, decoding, every
        self._adapters = adapters
        # A bound of the settings is for the largest gap only.
        self._bound, self._mean_bound = bound, np.inf
        special = {token: index for index, token in _special(tokenizer).items()}
        self._first_tokens = special
        self._sequences = probe_sequences(
            model.config.vocab_size, sorted(special.values()), longest
        )
        self._version: int | None = None
        self._syncs = 0
        self.metrics: dict[str, float] = {}

    def sync(self, params: Params, version: int) -> None:
        """Loads the weights into the engine, unless it has this version, and probes it.

        Raises:
          EngineError: as `load` and `check`.
        """
        self.load(params, version)
        self.check(params, version)

    def load(self, params: Params, version: int) -> None:
        """Loads the weights into the engine, unless it has this version.

        Raises:
          EngineError: the engine is gone, or did not load them.
        """
        if version == self._version:
            return
        self._version = None  # until it is known to have these weights
        started = time.perf_counter()
        where = self._folder / f"weights_{self._syncs % 2}"
        if self._adapters:
            policy.lora.save(where, self._model, policy.lora.detach(params)[1], "")
            self.engine.load_adapter(where)
        else:
            self._save(where, params)
            self.engine.load(where)
        self.metrics = {"engine/sync_s": time.perf_counter() - started}

    def check(self, params: Params, version: int) -> None:
        """Probes the weights that were loaded last, unless they are known to be these.

        The engine may sample at the same time; its responses are used only after the check.

        Raises:
          EngineError: the engine is gone, or the gap is above the bound; the message names the
            fault.
        """
        if version == self._version:
            return
        started = time.perf_counter()
        if self._syncs == 0 or (self._every and self._syncs % self._every == 0):
            self._probe(params)
            self.metrics["engine/probe_s"] = time.perf_counter() - started
        self._syncs += 1
        self._version = version

    def _save(self, where: Path, params: Params) -> None:
        """Writes a policy folder, always with an output matrix.

        vLLM 0.32 on a CPU has a packed copy of a tied matrix. It replaces the copy only if the
        folder has this matrix.
        """
        model = self._model
        if model.config.tied:
            model = replace(model, config=replace(model.config, tied=False))
            params = {**params, "unembedding": params["embedding"]}
        shutil.rmtree(where, ignore_errors=True)
        policy.save(where, model, params, self._tokenizer)

    def _probe(self, params: Params) -> None:
        theirs = self.engine.score(self._sequences)
        own = own_scores(self._model, params, self._sequences)
        gap = Gap.of(own, theirs)
        reported, other = reported_gap(
            self._model, params, self.engine, self._sequences[1 : 2 * _PROMPTS : 2], self._decoding
        )
        self.metrics |= {
            "engine/gap_max": gap.largest,
            "engine/gap_mean": gap.mean,
            "engine/reported_gap_max": reported.largest,
        }
        most, most_mean = self._bound, self._mean_bound
        if not self._syncs:
            most, most_mean = self._rounding(params, own), np.inf
            if not self._bound:
                floor = FLOORS[self._model.config.compute_dtype]
                self._bound = max(floor, SLACK * max(gap.largest, reported.largest))
                self._mean_bound = max(MEAN_FLOOR * floor, SLACK * gap.mean)
        if gap.largest > most:
            raise self._fault(gap, f"{most:.2g} nats", self._explained(params, theirs))
        if gap.mean > most_mean:
            bound = f"{most_mean:.2g} nats in the mean"
            raise self._fault(gap, bound, self._explained(params, theirs))
        if reported.largest > most:
            why = f"its log-probs are {other}" if other else "its log-probs are of no known kind"
            raise self._fault(reported, f"{most:.2g} nats", f"{why}, not {self.engine.meaning}")

    def _rounding(self, params: Params, own: Sequence[np.ndarray]) -> float:
        """Largest gap that is rounding at equal weights. Narrow formats are compared with float32,
        since their rounding depends on the policy."""
        config = self._model.config
        if config.compute_dtype == wide_dtype(config.compute_dtype):
            return LIMITS[config.compute_dtype]
        wide = replace(
            self._model, config=replace(config, compute_dtype=wide_dtype(config.compute_dtype))
        )
        rounded = Gap.of(own, own_scores(wide, params, self._sequences))
        return max(LIMITS[config.compute_dtype], SLACK * rounded.largest)

    def _explained(self, params: Params, theirs: Sequence[np.ndarray]) -> str:
        previous = base = None
        before = self._folder / f"weights_{(self._syncs + 1) % 2}"
        if self._syncs and self._adapters:
            whole = policy.lora.detach(params)[0]
            previous = policy.lora.attach(whole, policy.lora.load(before, self._model)[1])
        elif self._syncs:
            # As they were saved: with an output matrix of its own and merged adapters.
            previous = policy.load(before)[1]
            if self._model.config.tied:
                previous = {key: leaf for key, leaf in previous.items() if key != "unembedding"}
        if self._model.config.lora is not None:
            base, _ = policy.lora.detach(params)
        return explain(
            self._model,
            params,
            self._sequences,
            theirs,
            previous=previous,
            base=base,
            first_tokens=self._first_tokens,
        )

    def _fault(self, gap: Gap, bound: str, why: str) -> EngineError:
        return EngineError(
            f"the engine must return the trainer's log-probs to {bound}, got a gap of"
            f" {gap.largest:.2g} (mean {gap.mean:.2g}) after sync {self._syncs}: {why}"
        )


def gap_metrics(rollouts: Rollouts, old_logp: np.ndarray) -> dict[str, float]:
    """Distance of sampler and scorer in log p, over the tokens that the policy sampled.

    `metrics.toml` has the meaning of each name.

    Args:
      old_logp: log-probs of the scorer at the weights that sampled.
    """
    mask = np.asarray(rollouts.mask)
    for foreign in ("off_policy", "stored"):
        if foreign in rollouts.records:
            mask = mask & ~np.asarray(rollouts.records[foreign])[:, None]
    if "origin" in rollouts.records:
        mask = mask & (np.asarray(rollouts.records["origin"]) == 0)
    if not mask.any():
        return {}
    rows, places = np.nonzero(mask)
    apart = (np.asarray(rollouts.behaviour_logp) - old_logp)[mask].astype(np.float64)
    ends = np.asarray(rollouts.length)[rows] - 1
    found = _distribution(apart)
    for name, where in (("position", places), ("length", ends)):
        quarter = 4 * where // mask.shape[1]
        for number in np.unique(quarter):
            own = _distribution(apart[quarter == number])
            found |= {f"{kind}_{name}/{number + 1}": value for kind, value in own.items()}
    return {f"engine/{name}": float(value) for name, value in found.items()}


def _distribution(apart: np.ndarray) -> dict[str, float]:
    """Numbers of log p of the engine less that of the trainer: the estimators k1 and k3 of the KL
    divergence, the mean distance, and its 99 % quantile."""
    distance = np.abs(apart)
    return {
        "k1": apart.mean(),
        "k3": (np.expm1(-apart) + apart).mean(),
        "gap": distance.mean(),
        "gap_p99": np.quantile(distance, 0.99),
    }


def _special(tokenizer: Any) -> dict[int, str]:
    """The special tokens of a tokenizer by id."""
    ids = sorted(set(tokenizer.all_special_ids))
    return dict(zip(ids, tokenizer.convert_ids_to_tokens(ids), strict=True))
