"""Rollouts from another engine: its weights are synced and checked before it samples."""

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from rlvr_jax import policy
from rlvr_jax.experience.actor import Scorer
from rlvr_jax.experience.given import rows_of_responses
from rlvr_jax.experience.sampling import Sampler, occurrences
from rlvr_jax.policy import Model, Params
from rlvr_jax.policy.config import ModelConfig, wide_dtype
from rlvr_jax.policy.experts import no_routes
from rlvr_jax.rollout.engines import Decoding, Engine, EngineError, Generated
from rlvr_jax.rollout.engines.probe import (
    FLOORS,
    LIMITS,
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
      model: the policy; its adapters are merged into the weights that the engine reads.
      folder: place of the two policy folders through which weights go.
      longest: tokens of the long sequences of the probe.
      every: syncs between two probes; 0: the first sync only.
      bound: largest gap (nats); 0: `SLACK` times that of the first sync.

    Fields:
      metrics: of the last sync: engine/gap_max, engine/gap_mean, engine/reported_gap_max (nats),
        engine/sync_s, engine/probe_s (seconds).
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
    ):
        how = decoding.sampling
        if engine.meaning == "raw" and (how.temperature != 1 or how.cuts):
            raise ValueError(
                "EngineLink: engine must report processed log-probs with a temperature of"
                f" {how.temperature:g} and the cuts {', '.join(how.cuts) or 'none'}, got raw ones"
            )
        self.engine, self._model, self._tokenizer = engine, model, tokenizer
        self._folder, self._decoding, self._every = folder, decoding, every
        self._limit = LIMITS[model.config.compute_dtype]
        self._bound = bound
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
          EngineError: the engine is gone, or the gap is above the bound; the message names the
            fault.
        """
        if version == self._version:
            return
        self._version = None  # until it is known to have these weights
        started = time.perf_counter()
        where = self._folder / f"weights_{self._syncs % 2}"
        self._save(where, params)
        self.engine.load(where)
        probing = time.perf_counter()
        self.metrics = {"engine/sync_s": probing - started}
        if self._syncs == 0 or (self._every and self._syncs % self._every == 0):
            self._probe(params)
            self.metrics["engine/probe_s"] = time.perf_counter() - probing
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
        gap = Gap.of(own_scores(self._model, params, self._sequences), theirs)
        reported, other = reported_gap(
            self._model, params, self.engine, self._sequences[1 : 2 * _PROMPTS : 2], self._decoding
        )
        self.metrics |= {
            "engine/gap_max": gap.largest,
            "engine/gap_mean": gap.mean,
            "engine/reported_gap_max": reported.largest,
        }
        most = self._limit
        if self._syncs:
            most = self._bound
        elif not self._bound:
            floor = FLOORS[self._model.config.compute_dtype]
            self._bound = max(floor, SLACK * max(gap.largest, reported.largest))
        if gap.largest > most:
            raise self._fault(gap, most, self._explained(params, theirs))
        if reported.largest > most:
            why = f"its log-probs are {other}" if other else "its log-probs are of no known kind"
            raise self._fault(reported, most, f"{why}, not {self.engine.meaning}")

    def _explained(self, params: Params, theirs: Sequence[np.ndarray]) -> str:
        previous = base = None
        before = self._folder / f"weights_{(self._syncs + 1) % 2}"
        if self._syncs:
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

    def _fault(self, gap: Gap, most: float, why: str) -> EngineError:
        return EngineError(
            f"the engine must give the trainer's log-probs to {most:.2g} nats, got a gap of"
            f" {gap.largest:.2g} (mean {gap.mean:.2g}) after sync {self._syncs}: {why}"
        )


@dataclass(frozen=True, kw_only=True)
class EngineSampler(Sampler):
    """A sampler whose responses come from another engine; the trainer computes their entropy.

    Fields:
      link: the engine, with its weights.
      scorer: token statistics of rollouts at these weights.
    """

    link: EngineLink
    scorer: Scorer

    @classmethod
    def of(cls, sampler: Sampler, link: EngineLink, scorer: Scorer) -> "EngineSampler":
        """The sampler of a run with its responses from an engine."""
        own = {name: getattr(sampler, name) for name in Sampler.__dataclass_fields__}
        return cls(**own | {"opening": 0, "at_once": None}, link=link, scorer=scorer)

    def calls(self, count: int, samples: int) -> list[tuple[int, int, int]]:
        """One call for all requests: nothing is compiled."""
        return [(0, count, count)]

    def draw(
        self,
        params: Params,
        tokens: np.ndarray,
        length: np.ndarray,
        numbers: np.ndarray,
        key: jax.Array,
        *,
        first_sample: int | np.ndarray = 0,
        weight_version: int = 0,
        temperature: np.ndarray | None = None,
        constants: Any = None,
        soft_prompt: np.ndarray | None = None,
        stop_state: np.ndarray | None = None,
    ) -> Rollouts:
        """See `Sampler.draw`; params are all weights of the policy, with adapters.

        Raises:
          ValueError: a part of the method needs the sampler in this process.
          EngineError: as `EngineLink.sync` and `Engine.generate`.
        """
        needs = {
            "a logits processor": self.sampling.processor is not None or constants is not None,
            "mixtures of embeddings": self.sampling.soft is not None or soft_prompt is not None,
            "stop texts": self.sampling.stops is not None or stop_state is not None,
            "the most probable tokens": self.record_top > 0,
        }
        if missing := [name for name, needed in needs.items() if needed]:
            raise ValueError(
                f"--engine must be left out for this method, which samples with"
                f" {', '.join(missing)}; an engine cannot"
            )
        self.link.sync(params, weight_version)
        first = np.asarray(first_sample, np.int64)
        if first.ndim == 0:
            first = first + self.samples * occurrences(numbers)
        heat = self.sampling.temperature if temperature is None else np.asarray(temperature)
        heat = np.repeat(np.broadcast_to(heat, len(numbers)), self.samples)
        base = np.asarray(jax.random.key_data(key)).ravel().tolist()
        prompts, seeds = [], []
        for ids, count, number, start in zip(tokens, length, numbers, first, strict=True):
            for sample in range(self.samples):
                prompts.append(ids[:count].tolist())
                entropy = [*base, int(number), int(start) + sample]
                seeds.append(int(np.random.SeedSequence(entropy).generate_state(1)[0]))
        decoding = Decoding(self.response_tokens, self.sampling, self.stop_tokens)
        found = self.link.engine.generate(prompts, seeds, heat.tolist(), decoding)
        dtype = wide_dtype(self.model.config.compute_dtype)
        rows = rows_of_responses(
            np.repeat(tokens, self.samples, axis=0),
            np.repeat(length, self.samples, axis=0),
            [one.tokens for one in found],
            np.repeat(np.arange(len(numbers), dtype=np.int32), self.samples),
            heat.astype(dtype),
            self.response_tokens,
            weight_version=weight_version,
        )
        logp = np.zeros(rows.tokens.shape, dtype)
        for row, one in zip(logp, found, strict=True):
            row[: len(one.logp)] = one.logp
        rows = rows.replace(
            behaviour_logp=logp, truncated=np.array([not one.stopped for one in found])
        )
        if self.record_routes:
            rows = rows.replace(**routes_of(rows, self.model.config, found))
        entropy = self.scorer(rows, {"entropy"}, "current")["entropy"]
        return rows.replace(entropy=np.where(rows.mask, entropy, 0).astype(dtype))


def routes_of(
    rollouts: Rollouts, config: ModelConfig, found: Sequence[Generated]
) -> dict[str, np.ndarray]:
    """The records `routes` and `prompt_routes` of the responses of an engine.

    Raises:
      EngineError: a response without routes, or with others than those of the model.
    """
    asked, tokens = rollouts.prompt_tokens.shape[1], rollouts.tokens.shape[1]
    whole = np.array(no_routes(config, len(found), asked + tokens))
    for row, one, length in zip(whole, found, rollouts.prompt_length, strict=True):
        read = int(length) + len(one.tokens) - 1
        if one.routes is None or one.routes.shape != (read, *whole.shape[2:]):
            raise EngineError(
                f"the engine must give the experts of {read} tokens, {whole.shape[2]} layers and"
                f" {whole.shape[3]} experts for --router-replay, got"
                f" {'none' if one.routes is None else list(one.routes.shape)}; start a vLLM server"
                " with --enable-return-routed-experts"
            )
        least, most = int(one.routes.min()), int(one.routes.max())
        if not 0 <= least <= most < config.num_experts:
            raise EngineError(
                f"the engine must give experts in 0 … {config.num_experts - 1}, got {least} …"
                f" {most}"
            )
        row[:length] = 1 + one.routes[:length]
        row[asked : asked + len(one.tokens) - 1] = 1 + one.routes[length:]
    return {"prompt_routes": whole[:, :asked], "routes": whole[:, asked:]}


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
