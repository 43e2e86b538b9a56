"""Rollouts of another engine, which are graded while it samples others."""

import contextlib
import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience.actor import RunActor, Scorer
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.engines import EngineLink
from rlvr_jax.experience.given import rows_of_responses
from rlvr_jax.experience.requests import SampleRequest
from rlvr_jax.experience.sampling import Sampler, occurrences
from rlvr_jax.policy import Params
from rlvr_jax.policy.config import ModelConfig, wide_dtype
from rlvr_jax.policy.experts import no_routes
from rlvr_jax.rollout.engines import Decoding, Engine, EngineError, Generated
from rlvr_jax.tasks import Grade
from rlvr_jax.types import Rollouts, replace


@dataclass(frozen=True)
class EngineActor(RunActor):
    """The actor of a run with another engine. Its `sampler` is an `EngineSampler`."""

    def draw_graded(
        self,
        requests: Sequence[SampleRequest],
        key: jax.Array,
        sampling: Mapping[str, Any] | None = None,
        constants: Any = None,
    ) -> Batch:
        """The results of `draw`, with grades in `Batch.brought`.

        A response is graded as soon as it is complete. Requests with given tokens, or of several
        kinds, are not graded here.

        Raises:
          GradingError: as `grade`.
          ValueError: as `draw`.
        """
        kinds = {(a.round, a.samples, a.temperature is None) for a in requests}
        bare = all(a.limit is None and a.prefix is None for a in requests)
        if len(kinds) > 1 or not bare or any(self._given(a)[0] for a in requests):
            return self.draw(requests, key, sampling, constants)
        rows = [request for request in requests for _ in range(request.samples)]
        grades: list[Grade | None] = [None] * len(rows)

        def finished(places: np.ndarray, rollouts: Rollouts) -> None:
            own = [rows[place] for place in places]
            graded = self.grade(Batch(rollouts, own, (), self.sampler.tokenizer))
            for place, grade in zip(places.tolist(), graded.grades, strict=True):
                grades[place] = grade

        early = replace(self, sampler=replace(self.sampler, finished=finished))
        return replace(early.draw(requests, key, sampling, constants), brought=grades)


@dataclass(frozen=True, kw_only=True)
class EngineSampler(Sampler):
    """A sampler whose responses come from another engine; the trainer computes their entropy.

    Fields:
      link: the engine, with its weights.
      scorer: token statistics of rollouts at these weights.
      finished: called with numbers of rows and their rollouts, without entropy, when they are
        complete. None: it is not called.
    """

    link: EngineLink
    scorer: Scorer
    finished: Callable[[np.ndarray, Rollouts], None] | None = None

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
        self.link.load(params, weight_version)
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
        dtype = wide_dtype(self.model.config.compute_dtype)

        def made(places: np.ndarray, responses: Sequence[Generated]) -> Rollouts:
            """Rollouts of some rows."""
            groups = places // self.samples
            rows = rows_of_responses(
                tokens[groups],
                length[groups],
                [one.tokens for one in responses],
                groups.astype(np.int32),
                heat[places].astype(dtype),
                self.response_tokens,
                weight_version=weight_version,
            )
            logp = np.zeros(rows.tokens.shape, dtype)
            for row, one in zip(logp, responses, strict=True):
                row[: len(one.logp)] = one.logp
            truncated = np.array([not one.stopped for one in responses])
            return rows.replace(behaviour_logp=logp, truncated=truncated)

        given = prompts, seeds, heat.tolist(), decoding
        with _generating(self.link.engine, *given) as (complete, whole):
            # The engine has its first responses to compute meanwhile.
            self.link.check(params, weight_version)
            grading = 0.0
            for part in complete:
                if self.finished is not None:
                    began = time.perf_counter()
                    places = np.array([place for place, _ in part])
                    self.finished(places, made(places, [one for _, one in part]))
                    grading += time.perf_counter() - began
            found, seconds = whole()
        self.link.metrics |= {"engine/generate_s": seconds, "engine/grade_s": grading}
        rows = made(np.arange(len(prompts)), found)
        if self.record_routes:
            rows = rows.replace(**routes_of(rows, self.model.config, found))
        entropy = self.scorer(rows, {"entropy"}, "current")["entropy"]
        return rows.replace(entropy=np.where(rows.mask, entropy, 0).astype(dtype))


@contextlib.contextmanager
def _generating(
    engine: Engine, *given: Any
) -> Iterator[tuple[Iterator[list[tuple[int, Generated]]], Callable[[], Any]]]:
    """Responses while an engine samples others: those that are complete since the last look, until
    all are; and a function that returns all of them in order, with the seconds that they took."""
    complete: queue.SimpleQueue[tuple[int, Generated] | None] = queue.SimpleQueue()

    def generate():
        started = time.perf_counter()
        try:
            found = engine.generate(*given, done=lambda *one: complete.put(one))
            return found, time.perf_counter() - started
        finally:
            complete.put(None)

    def parts():
        while (one := complete.get()) is not None:
            part = [one]
            while not complete.empty() and (one := complete.get()) is not None:
                part.append(one)
            yield part
            if one is None:
                return

    with ThreadPoolExecutor(1) as thread:
        later = thread.submit(generate)
        yield parts(), later.result


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
                f"the engine must return the experts of {read} tokens, {whole.shape[2]} layers and"
                f" {whole.shape[3]} experts for --router-replay, got"
                f" {'none' if one.routes is None else list(one.routes.shape)}; start a vLLM server"
                " with --enable-return-routed-experts"
            )
        least, most = int(one.routes.min()), int(one.routes.max())
        if not 0 <= least <= most < config.num_experts:
            raise EngineError(
                f"the engine must return experts in 0 … {config.num_experts - 1}, got {least} …"
                f" {most}"
            )
        row[:length] = 1 + one.routes[:length]
        row[asked : asked + len(one.tokens) - 1] = 1 + one.routes[length:]
    return {"prompt_routes": whole[:, :asked], "routes": whole[:, asked:]}
