"""An actor in numpy: it samples random tokens by a rule instead of a policy.

An actor for another engine has the same methods. A row is a pure function of the key, the round and
number of the prompt request, and the number of the sample.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience import Batch, Collected, Experience, RunInfo, SampleRequest
from rlvr_jax.experience.given import behind_given, rows_of_responses
from rlvr_jax.experience.laws.numbered_task import ONE_WORD, numbered_task
from rlvr_jax.experience.parts import Actor, Written
from rlvr_jax.experience.requests import groups_of
from rlvr_jax.experience.sampling import occurrences
from rlvr_jax.tasks import Grade, Prompt, Task
from rlvr_jax.tasks.worlds.triplets import is_proposal, proposal_in
from rlvr_jax.types import Rollouts

Walked = tuple[Collected, Mapping[str, Any], dict[str, Any]]
"""Collected batch, metrics of `observe` and next state of a step."""

WORDS = 12
STOP = 0
WORD = ["<stop>", *(f"word{number}" for number in range(1, WORDS - 1)), "x"]


class Words:
    """The functions of a tokenizer that parts call."""

    all_special_ids: tuple[int, ...] = (STOP,)

    def __len__(self) -> int:
        return WORDS

    def __hash__(self) -> int:
        return hash(Words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Words)

    def __call__(self, texts: Iterable[str], **options: Any) -> dict[str, list[list[int]]]:
        own = [[1 + ord(letter) % (WORDS - 1) for letter in text][:3] for text in texts]
        return {"input_ids": own}

    def batch_decode(self, rows: Iterable[Iterable[int]], **options: Any) -> list[str]:
        return [" ".join(WORD[id] for id in row) for row in rows]


@dataclass(frozen=True)
class NumpyActor(Actor):
    """Samples tokens 1 … 11; 0 ends a row; other views and teachers are correct more often.

    Examples:
      >>> from rlvr_jax.experience import experience
      >>> from rlvr_jax.experience.laws.numpy_actor import NumpyActor, walk
      >>> ((collected, _, _),) = walk(experience(), NumpyActor(chance=1.0), steps=1)
      >>> [grade.outcome for grade in collected.batch.grades[:2]], len(collected.batch)
      ([1.0, 1.0], 16)
    """

    response_tokens: int = 8
    prompt_tokens: int = 6
    chance: Any = None
    tokenizer: Any = field(default_factory=Words)

    def draw(
        self,
        requests: Sequence[SampleRequest],
        key: jax.Array,
        sampling: Mapping[str, Any] | None = None,
        constants: Any = None,
    ) -> Batch:
        del constants
        # A second request for a prompt gets other responses.
        known = {}
        same = [known.setdefault((a.number, a.first_sample), len(known)) for a in requests]
        before = occurrences(np.array(same))
        rows = [
            self._row(request, request.samples * int(copies) + sample, key)
            for request, copies in zip(requests, before, strict=True)
            for sample in range(request.samples)
        ]
        of_row = [request for request in requests for _ in range(request.samples)]
        for row in rows:
            _cut_at(row, self.tokenizer, (sampling or {}).get("stops", ()))
        stacked = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
        count = len(rows)
        none = np.full(count, -1, np.int32)
        prompts, length = self.prompts(of_row)
        temperature = np.array([request.temperature or 1.0 for request in of_row], np.float32)
        if sampling and "temperature" in sampling:
            temperature[:] = sampling["temperature"]
        sampled = Rollouts(
            prompt_tokens=prompts,
            prompt_length=length,
            tokens=stacked["tokens"],
            length=stacked["length"],
            mask=np.arange(self.response_tokens)[None] < stacked["length"][:, None],
            group=groups_of(requests),
            rollout_id=np.arange(count, dtype=np.int32),
            parent=none,
            branch_position=none,
            truncated=stacked["truncated"],
            behaviour_logp=stacked["logp"],
            entropy=stacked["entropy"],
            temperature=np.repeat(temperature[:, None], self.response_tokens, axis=1),
            outcome=np.zeros(count, np.float32),
            reward=np.zeros(count, np.float32),
            valid=np.ones(count, bool),
            weight_version=np.zeros(count, np.int32),
        )
        shown = [request.view.show(request.prompt, numbered_task()) for request in of_row]
        given = [
            [*view.prefill(self.encode), *request.given]
            for view, request in zip(shown, of_row, strict=True)
        ]
        if any(given):
            trained = np.array([view.trained for view in shown])
            sampled = behind_given(sampled, prompts, length, given, trained, self.response_tokens)
        if sampling and sampling.get("record_top"):
            sampled = sampled.replace(**_likeliest(sampled, sampling["record_top"]))
        if any(request.cell >= 0 for request in requests):
            sampled = sampled.replace(cell=np.array([request.cell for request in of_row], np.int32))
        return Batch(sampled, of_row, (), self.tokenizer)

    def prompts(self, requests: Sequence[SampleRequest]) -> tuple[np.ndarray, np.ndarray]:
        tokens = np.zeros((len(requests), self.prompt_tokens), np.int32)
        tokens[:, 0] = [request.number % WORDS for request in requests]
        tokens[:, 1] = [
            1 + zlib.crc32(request.view.label.encode()) % (WORDS - 1) for request in requests
        ]
        return tokens, np.full(len(requests), 2, np.int32)

    def written(
        self, requests: Sequence[SampleRequest], responses: Sequence[Sequence[int]]
    ) -> Batch:
        of_row = [request for request in requests for _ in range(request.samples)]
        group = groups_of(requests)
        heat = np.array([request.temperature or 1.0 for request in of_row], np.float32)
        rows = rows_of_responses(
            *self.prompts(of_row), responses, group, heat, self.response_tokens
        )
        return Batch(rows, of_row, (), self.tokenizer)

    def write(
        self,
        chats: Sequence[Sequence[Mapping[str, str]]],
        key: jax.Array,
        attempts: Sequence[int],
        sampling: Mapping[str, Any] | None = None,
    ) -> list[Written | None]:
        requests = [
            SampleRequest(
                Prompt(chat[-1]["content"]), zlib.crc32(str(chat).encode()), 1, first_sample=tries
            )
            for chat, tries in zip(chats, attempts, strict=True)
        ]
        sampled = self.draw(requests, key, sampling)
        lengths = sampled.rollouts.length.tolist()
        return [
            Written(response.text, length)
            for response, length in zip(sampled.responses, lengths, strict=True)
        ]

    def _row(self, request, sample, key):
        seed = np.asarray(jax.random.key_data(key)).tolist()
        # The words of a segment differ from the tokens before it.
        behind = [1 + len(request.given)] if request.given or request.limit is not None else []
        identity = request.round, request.number, request.first_sample + sample
        random = np.random.default_rng([*seed, *identity, *behind])
        budget = self.response_tokens
        length = int(random.integers(1, budget + 3))
        truncated = length > budget
        length = min(length, budget)
        if request.limit is not None and length > request.limit:
            length, truncated = request.limit, True
        tokens = np.zeros(budget, np.int32)
        tokens[:length] = random.integers(1, WORDS, length)
        if not truncated:
            tokens[length - 1] = STOP
        on = np.arange(budget) < length
        return {
            "tokens": tokens,
            "length": np.int32(length),
            "truncated": np.bool_(truncated),
            "logp": np.where(on, self._logp(tokens, 0), 0).astype(np.float32),
            "entropy": np.where(on, random.uniform(0, 2, budget), 0).astype(np.float32),
        }

    @staticmethod
    def _logp(tokens, policy):
        return -0.1 - 0.2 * ((tokens * 7 + 3 * policy) % 11)

    def grade(self, batch: Batch) -> Batch:
        rollouts = batch.rollouts
        grades = []
        for row, request in enumerate(batch.requests):
            chance = request.prompt.meta.get("chance", 0.5) if self.chance is None else self.chance
            helped = request.view.label != "plain" or request.policy == "teacher"
            chance += 0.4 * helped
            draw = np.random.default_rng([*rollouts.tokens[row].tolist(), request.number]).uniform()
            correct = draw < chance and not rollouts.truncated[row]
            ended = float(not rollouts.truncated[row])
            answer = str(rollouts.tokens[row, 0] % 3) if ended else None
            if correct and is_proposal(request.prompt):
                (found,) = proposal_in(ONE_WORD, [request.prompt], [batch.responses[row].text])
                correct, answer = found is not None, found and found.text()
            grades.append(Grade(float(correct), info={"ended": ended}, answer=answer))
        return batch.graded(grades)

    def score(self, batch: Batch, needs: Iterable[str], of: str = "current") -> dict[str, Any]:
        rollouts = batch.rollouts
        policy = ("current", "start", "teacher").index(of)
        logp = np.where(rollouts.mask, self._logp(rollouts.tokens, policy), 0)
        entropy = np.where(rollouts.mask, 0.1 * (rollouts.tokens % 5), 0)
        known = {"logp": logp.astype(np.float32), "entropy": entropy.astype(np.float32)}
        # All tokens other than the sampled one are equally likely.
        others = np.log((1 - np.exp(known["logp"], dtype=np.float64)) / (WORDS - 1) + 1e-12)
        every = np.repeat(others[:, :, None], WORDS, axis=-1)
        np.put_along_axis(every, rollouts.tokens[:, :, None], known["logp"][:, :, None], axis=-1)
        known["all_logp"] = every.astype(np.float32)
        # The counts of the words also serve as a representation.
        words = np.arange(WORDS)[None, None] == rollouts.tokens[:, :, None]
        counted = np.sum(words & rollouts.mask[:, :, None], axis=1)
        number = np.maximum(rollouts.mask.sum(axis=1), 1)[:, None]
        known["mean_hidden"] = (counted / number).astype(np.float32)
        known["max_id"] = (rollouts.tokens + policy) % WORDS
        if "verdict_ids" in rollouts.records:
            total = (
                (rollouts.tokens * rollouts.mask).sum(axis=1)
                + rollouts.records["asked_length"]
                + policy
            )
            known["verdict_logp"] = -0.1 - 0.3 * (
                (total[:, None] + rollouts.records["verdict_ids"]) % 7
            )
            known["verdict_logp"] = known["verdict_logp"].astype(np.float32)
        return {name: known[name] for name in needs}

    def encode(self, text: str) -> list[int]:
        return Words()([text])["input_ids"][0]

    def embeddings(self) -> np.ndarray:
        return np.cos(np.outer(1 + np.arange(WORDS), 1 + np.arange(4)))

    def stop_token(self) -> int:
        return STOP


def _cut_at(row, tokenizer, texts):
    """Ends a row at the first word with which it contains one of the texts, in place."""
    tokens = row["tokens"][: row["length"]].tolist()
    for end in range(1, len(tokens)):
        (written,) = tokenizer.batch_decode([tokens[:end]])
        if any(text in written for text in texts):
            row["length"], row["truncated"] = np.int32(end), np.bool_(True)
            for name in ("tokens", "logp", "entropy"):
                row[name][end:] = 0
            return


def _likeliest(sampled, number):
    """The sampled token and the next ids, each with half the probability of the one before."""
    ids = (sampled.tokens[:, :, None] + np.arange(number)) % WORDS
    logp = sampled.behaviour_logp[:, :, None] - np.log(2.0) * np.arange(number)
    there = sampled.mask[:, :, None]
    return {
        "sampled_topk_logp": np.where(there, logp, 0).astype(np.float32),
        "sampled_topk_ids": np.where(there, ids, 0).astype(np.int32),
    }


def setting(
    chain: Experience,
    task: Task | None = None,
    prompts: int = 4,
    samples: int = 4,
    seed: int = 0,
    steps: int = 10,
) -> RunInfo:
    """The run context that parts of a chain get in a run of `NumpyActor`.

    Args:
      chain: the experience.
      task: None: that of `NumpyActor`.
      prompts: prompts of a step.
      samples: responses of each prompt.
      seed: of the run.
      steps: of the run.
    """
    sampled = chain.initial_samples(samples)
    task = chain.graded(task or numbered_task())
    return RunInfo(task, prompts, samples, sampled, 8, seed, steps, chain.rounds, WORDS, WORDS)


def walk(
    chain: Experience,
    actor: Actor | None = None,
    steps: int = 4,
    first: int = 0,
    state: dict[str, Any] | None = None,
    own: RunInfo | None = None,
) -> list[Walked]:
    """Runs steps of a chain without updates; returns batch, metrics and next state of each.

    Args:
      chain: the experience.
      actor: None: a new `NumpyActor`.
      steps: number of steps.
      first: number of the first step.
      state: of the parts, by name; None: the initial state.
      own: context of the run; None: that of `setting`.

    Examples:
      >>> from rlvr_jax.experience import experience
      >>> from rlvr_jax.experience.laws.numpy_actor import walk
      >>> [len(collected.batch) for collected, _, _ in walk(experience(), steps=2)]
      [16, 16]
    """
    actor = actor or NumpyActor()
    own = own or setting(chain)
    state = chain.init(own) if state is None else state
    found = []
    for step in range(first, first + steps):
        collected = chain.collect(actor, state, step, own)
        batch = collected.batch
        trained = batch.with_rollouts(old_logp=actor.score(batch, ["logp"])["logp"])
        state, metrics = chain.observe(collected, trained, step, own)
        if step % 2:
            state = chain.at_evaluation(state, {"held_out/pass@1": 0.5})
        found.append((collected, metrics, state))
    return found
