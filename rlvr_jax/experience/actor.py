"""The in-process actor: a run's sampler, verifier and scorer at the current weights."""

import json
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience import grades
from rlvr_jax.experience.batch import Batch, concatenate
from rlvr_jax.experience.given import behind_given, rows_of_responses, with_given
from rlvr_jax.experience.parts import Actor, Written
from rlvr_jax.experience.prompts import PromptTable, encode_text
from rlvr_jax.experience.requests import SampleRequest
from rlvr_jax.experience.sampling import Sampler, occurrences
from rlvr_jax.experience.stops import stops_of
from rlvr_jax.parallel import fetch
from rlvr_jax.policy import Params
from rlvr_jax.policy.config import wide_dtype
from rlvr_jax.tasks import Prompt
from rlvr_jax.types import Rollouts

QUARTERS = 4
"""Given tokens are padded to a multiple of this fraction of the budget, so few sizes compile."""

Scorer = Callable[[Rollouts, Iterable[str], str], dict[str, np.ndarray]]


@dataclass(frozen=True)
class RunActor(Actor):
    """The actor of a run; see `Actor`.

    Fields:
      sampler: of the run, with the samples per prompt of first requests.
      params: weights in the form that the sampler reads.
      tables: the task's prompts as tokens, by the label of their view.
      weight_version: number of updates of the weights.
      scorer: (rollouts, needs, name of the policy) -> token statistics.
      teacher: returns the weights of the recipe's teacher in the form that the sampler reads;
        None: the recipe has none.
    """

    sampler: Sampler
    params: Params
    tables: Mapping[str, PromptTable]
    weight_version: int
    scorer: Scorer
    teacher: Callable[[], Params] | None = None

    def draw(
        self,
        requests: Sequence[SampleRequest],
        key: jax.Array,
        sampling: Mapping[str, Any] | None = None,
        constants: Any = None,
    ) -> Batch:
        """Samples the responses to all requests; see `Actor`.

        A call samples requests of one kind: they agree in round, samples, limit, policy and length
        of the prefix. All or none of them have a temperature, or given tokens.

        Raises:
          ValueError: as `prompts`; given tokens that fill the budget of a response; a request to a
            teacher, if the recipe has none.
        """
        started = time.perf_counter()
        sampler = self.sampler
        if sampling:
            how = dict(sampling)
            sampler = replace(sampler, record_top=how.pop("record_top", 0))
            if "stops" in how:
                size = sampler.model.config.vocab_size
                how["stops"] = stops_of(sampler.tokenizer, tuple(how["stops"]), size)
            sampler = replace(sampler, sampling=replace(sampler.sampling, **how))
        given = [self._given(request) for request in requests]
        calls: dict[tuple, list[int]] = {}
        for place, (request, (tokens, _)) in enumerate(zip(requests, given, strict=True)):
            kind = (
                request.round,
                request.samples,
                request.temperature is not None,
                len(tokens) > 0,
                request.limit,
                request.policy,
            )
            kind += (0 if request.prefix is None else len(request.prefix),)
            calls.setdefault(kind, []).append(place)
        first = np.array([request.first_sample for request in requests])
        # Requests that number their samples need no further numbers.
        known: dict[tuple[int, int], int] = {}
        same = np.array(
            [known.setdefault((a.number, a.first_sample), len(known)) for a in requests]
        )
        for places in calls.values():
            repeats = occurrences(same[places])
            first[places] += repeats * np.array([requests[place].samples for place in places])
        sampled = []
        for (number, *_), places in calls.items():
            own = [requests[place] for place in places]
            prefill = [given[place] for place in places]
            folded = jax.random.fold_in(key, number)
            rollouts = self._called(sampler, own, prefill, first[places], folded, constants)
            sampled.append(self._batch(rollouts, own))
        batch = sampled[0]
        if len(sampled) > 1:
            order = np.argsort(np.concatenate(list(calls.values())), kind="stable")
            whole = concatenate(sampled)
            batch = whole.take(np.concatenate([whole.groups[place] for place in order]))
            sizes = [len(whole.groups[place]) for place in order]
            group = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
            batch = batch.with_rollouts(group=group).renumbered()
        return replace(batch, sample_seconds=time.perf_counter() - started)

    def written(
        self, requests: Sequence[SampleRequest], responses: Sequence[Sequence[int]]
    ) -> Batch:
        """Rows of given responses; see `Actor`.

        Raises:
          ValueError: as `prompts`.
        """
        sampler = self.sampler
        samples = [request.samples for request in requests]
        tokens, length = (np.repeat(x, samples, axis=0) for x in self.prompts(requests))
        heat = [request.temperature or sampler.sampling.temperature for request in requests]
        rollouts = rows_of_responses(
            tokens,
            length,
            responses,
            np.repeat(np.arange(len(requests), dtype=np.int32), samples),
            np.repeat(np.asarray(heat, wide_dtype(sampler.model.config.compute_dtype)), samples),
            sampler.response_tokens,
            weight_version=self.weight_version,
        )
        return self._batch(rollouts, requests)

    def grade(self, batch: Batch) -> Batch:
        """The batch with the verifier's grades."""
        return grades.grade(self.sampler.task, batch)

    def score(self, batch: Batch, needs: Iterable[str], of: str = "current") -> dict[str, Any]:
        """Token statistics [B, T] by name; see `Actor`."""
        return self.scorer(batch.rollouts, needs, of)

    def write(
        self,
        chats: Sequence[Sequence[Mapping[str, str]]],
        key: jax.Array,
        attempts: Sequence[int],
        sampling: Mapping[str, Any] | None = None,
    ) -> list[Written | None]:
        """Replies to chats; see `Actor`. Without a chat template, empty lines separate messages."""
        how = dict(sampling or {})
        budget = how.pop("tokens", self.sampler.response_tokens)
        # Chats do not begin with the opening of the task's prompts.
        writer = replace(self, sampler=replace(self.sampler, opening=0, response_tokens=budget))
        room = self.sampler.model.config.max_positions - budget
        requests = [writer._free(*pair) for pair in zip(chats, attempts, strict=True)]
        fits = [len(writer._prompt(request)) <= room for request in requests]
        own = [request for request, there in zip(requests, fits, strict=True) if there]
        if not own:
            return [None] * len(requests)
        sampled = writer.draw(own, key, how)
        written = (
            Written(response.text, int(length))
            for response, length in zip(sampled.responses, sampled.rollouts.length, strict=True)
        )
        return [next(written) if there else None for there in fits]

    def _free(self, chat: Sequence[Mapping[str, str]], attempt: int) -> SampleRequest:
        """A request for a reply to a chat, whose hash is its number."""
        number = zlib.crc32(json.dumps([dict(message) for message in chat]).encode()) >> 1
        *before, last = chat
        prompt = Prompt(last["content"], messages=before)
        if not self.sampler.tokenizer.chat_template:
            prompt = Prompt("\n\n".join(message["content"] for message in chat))
        return SampleRequest(prompt, number, 1, first_sample=attempt)

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, without a template and without special tokens."""
        return encode_text(self.sampler.tokenizer, text)

    def embeddings(self) -> np.ndarray:
        """The policy's input embeddings, [V, D]."""
        return np.asarray(fetch(self.params["embedding"]))

    def stop_token(self) -> int:
        """The tokenizer's end of sequence, which is the first of the sampler's stop tokens."""
        return self.sampler.stop_tokens[0]

    def _batch(self, rollouts: Rollouts, requests: Sequence[SampleRequest]) -> Batch:
        rows = [request for request in requests for _ in range(request.samples)]
        if any(request.cell >= 0 for request in requests):
            cells = np.array([request.cell for request in rows], np.int32)
            rollouts = rollouts.replace(cell=cells)
        return Batch(rollouts, rows, (), self.sampler.tokenizer)

    def _given(self, request: SampleRequest) -> tuple[list[int], bool]:
        """The given first tokens of a response, and whether they are trained."""
        shown = request.view.show(request.prompt, self.sampler.task)
        tokens = [*shown.prefill(self.encode), *request.given]
        room = self.sampler.response_tokens
        if len(tokens) >= room:
            raise ValueError(
                f"draw: given tokens must be fewer than the {room} of a response, got"
                f" {len(tokens)} for prompt {request.prompt.text[:80]!r}"
            )
        return tokens, shown.trained

    def prompts(self, requests: Sequence[SampleRequest]) -> tuple[np.ndarray, np.ndarray]:
        """Tokens [n, P] and lengths [n] of the shown prompts; see `Actor`.

        P is the width of the task's prompts; for longer views it grows by quarters of the budget.

        Raises:
          ValueError: a view that leaves too few positions for a response, or a view without the
            shared opening, which is computed once for all prompts.
        """
        rows = [self._prompt(request) for request in requests]
        length = np.array(list(map(len, rows)), np.int32)
        width, longest = next(iter(self.tables.values())).tokens.shape[1], int(length.max())
        budget, positions = self.sampler.response_tokens, self.sampler.model.config.max_positions
        if longest > width:
            quarter = -(-budget // QUARTERS)
            width += -(-(longest - width) // quarter) * quarter
            width = max(longest, min(width, positions - budget))
        if width + budget > positions:
            request = requests[int(length.argmax())]
            raise ValueError(
                f"view {request.view.label}: it must have at most {positions - budget} tokens, the"
                f" model's {positions} positions less the {budget} of a response, got {longest} for"
                f" prompt {request.prompt.text[:80]!r}"
            )
        tokens = np.zeros((len(requests), width), np.int32)
        for row, ids in zip(tokens, rows, strict=True):
            row[: len(ids)] = ids
        opening = next(iter(self.tables.values())).tokens[0, : self.sampler.opening]
        other = np.flatnonzero((tokens[:, : len(opening)] != opening).any(axis=1))
        if len(other):
            raise ValueError(
                f"view {requests[other[0]].view.label}: it must begin with the tokens that all"
                " prompts have in common, got others; list this view in `views` of its part"
            )
        return tokens, length

    def _prompt(self, request: SampleRequest) -> Sequence[int] | np.ndarray:
        """The tokens of the shown prompt."""
        table, shown = self.tables.get(request.view.label), None
        if table is None:
            shown = request.view.show(request.prompt, self.sampler.task)
            table = self.tables["plain"] if shown.text == request.prompt.text else None
        if table is not None and table.has(request.number, request.prompt):
            return table.tokens[request.number, : table.length[request.number]]
        shown = shown or request.view.show(request.prompt, self.sampler.task)
        return self.tables["plain"].encode(shown.text, request.prompt.messages)

    def _params(self, policy: str) -> Params:
        """The weights that sample."""
        if policy == "current":
            return self.params
        if self.teacher is None:
            raise ValueError(
                "draw: the recipe must have a teacher that samples (and no --engine), got none"
            )
        return self.teacher()

    def _called(self, sampler, requests, given, first, key, constants) -> Rollouts:
        """Rollouts of requests of one kind, in as few calls as the compiled sizes allow."""
        tokens, length = self.prompts(requests)
        # Arguments of the sampler by prompt.
        by_prompt: dict[str, np.ndarray] = {}
        vectors = None
        if requests[0].prefix is not None:
            vectors = by_prompt["soft_prompt"] = np.stack([request.prefix for request in requests])
            tokens, length = self._behind(vectors, tokens, length)
            sampler = replace(sampler, opening=0)
        if requests[0].temperature is not None:
            by_prompt["temperature"] = np.array(
                [request.temperature for request in requests], np.float32
            )
        samples = requests[0].samples
        prefill = [ids for ids, _ in given]
        prompts = tokens, length
        # Otherwise the sampled segment is placed in a whole response.
        whole = not any(prefill) and requests[0].limit is None
        if any(prefill):
            quarter = -(-sampler.response_tokens // QUARTERS)
            most = -(-max(map(len, prefill)) // quarter) * quarter
            least = min(map(len, prefill)) // quarter * quarter
            sampler = replace(sampler, response_tokens=sampler.response_tokens - least)
            prompts = with_given(tokens, length, prefill, most)
            if (watch := sampler.sampling.stops) is not None:
                ends = [
                    ids[len(ids) - a.unanswered :] for a, ids in zip(requests, prefill, strict=True)
                ]
                by_prompt["stop_state"] = np.array([watch.after(ids) for ids in ends], np.int32)
        if requests[0].limit is not None:
            room = min(requests[0].limit, sampler.response_tokens)
            sampler = replace(sampler, response_tokens=room)

        numbers = np.array([request.number for request in requests], np.int32)
        params = self._params(requests[0].policy)

        def call(sampler, part):
            return sampler.draw(
                params,
                *(array[part] for array in (*prompts, numbers)),
                key,
                first_sample=first[part].astype(np.int32),
                weight_version=self.weight_version,
                constants=constants,
                **{name: array[part] for name, array in by_prompt.items()},
            )

        if (len(requests), samples) == (sampler.num_prompts, sampler.samples):
            sampled = call(sampler, np.arange(len(requests)))
        else:
            parts = []
            for start, count, size in sampler.calls(len(requests), samples):
                # Padding repeats the first request.
                part = np.arange(start, start + size)
                part = np.where(part < start + count, part, start)
                own = replace(
                    sampler, num_prompts=size, samples=samples, sampling_batch=(size, samples)
                )
                if sampler.model.mesh is not None and size % sampler.model.mesh.size:
                    # Devices with common prompts all compute up to the longest response.
                    own = replace(own, at_once=None)
                found = call(own, part)
                parts.append(jax.tree.map(lambda x, n=count * samples: x[:n], found))
            sampled = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
            rows = np.arange(len(requests) * samples, dtype=np.int32)
            sampled = sampled.replace(group=rows // np.int32(samples), rollout_id=rows)
        if not whole:
            rows = [ids for ids in prefill for _ in range(samples)]
            trained = np.repeat([flag for _, flag in given], samples)
            sampled = behind_given(
                sampled,
                np.repeat(tokens, samples, axis=0),
                np.repeat(length, samples, axis=0),
                rows,
                trained,
                self.sampler.response_tokens,
            )
        if vectors is not None:
            sampled = sampled.replace(
                soft_prompt=np.repeat(vectors, samples, axis=0),
                soft_length=np.full(len(sampled.group), vectors.shape[1], np.int32),
            )
        return sampled

    def _behind(self, vectors, tokens, length) -> tuple[np.ndarray, np.ndarray]:
        """Prompts with positions for the vectors that precede them.

        Raises:
          ValueError: they need more positions than the model has.
        """
        number = vectors.shape[1]
        width = number + tokens.shape[1] + self.sampler.response_tokens
        most = self.sampler.model.config.max_positions
        if width > most:
            raise ValueError(
                f"draw: prefix must have at most {most - width + number} vectors, so that prompts"
                f" and responses fit into the {most} positions of the model, got {number}"
            )
        return np.pad(tokens, ((0, 0), (number, 0))), length + np.int32(number)
