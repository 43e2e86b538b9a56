"""The kinds of parts of an experience (curricula, samplers, stages) and the protocol of actors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import jax
import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.reply_log import ReplyLog
from rlvr_jax.experience.requests import SampleRequest, View
from rlvr_jax.rollout import named_key
from rlvr_jax.tasks import Task
from rlvr_jax.tools import Environment, Game
from rlvr_jax.types.parts import Part

Metrics = Mapping[str, float]


@dataclass(frozen=True, eq=False)
class RunInfo:
    """The run context of parts: task, sizes of a step, number of steps, seed.

    Examples:
      >>> from rlvr_jax import tasks
      >>> from rlvr_jax.experience import RunInfo
      >>> info = RunInfo(tasks.load("brackets"), 8, 4, 4, 24)
      >>> info.prompts, info.samples, len(info.task.train)
      (8, 4, 9768)

    Fields:
      task: the task whose train prompts are trained on.
      prompts, samples: groups of a step, and trained rollouts of each group.
      initial_samples: rollouts of each group that are sampled first; stages make the others.
      response_tokens: budget of a response (T).
      seed: the seed of all randomness.
      steps: number of steps of the run.
      rounds: largest number of prompt batches that a step may request.
      vocabulary: size of the policy's vocabulary; 0: unknown.
      width: size of its hidden states; 0: unknown.
      reply_log: log of the replies of environments; None: no log.
    """

    task: Task
    prompts: int
    samples: int
    initial_samples: int
    response_tokens: int
    seed: int = 0
    steps: int = 1
    rounds: int = 1
    vocabulary: int = 0
    width: int = 0
    reply_log: ReplyLog | None = None

    def sampler_key(self, step: int) -> jax.Array:
        """The key of a step's first responses, also for prompts of its later rounds."""
        return named_key(self.seed, "sampler", step)


class StepContext(NamedTuple):
    """The step context of a part: number of the step, random key, run context.

    Fields:
      step: step of the run, from 0.
      key: key of jax.random, from (seed, part, step); all randomness comes from it.
      setting: run context.
      more: (prompts) -> up to as many further requests of the curriculum, in later rounds of the
        step. There are fewer when the rounds are used up. Raises ValueError for other parts than
        stages.
      round: round of the step, in `propose`.
    """

    step: int
    key: jax.Array
    setting: RunInfo
    more: Callable[[int], list[SampleRequest]]
    round: int = 0

    def random(self) -> np.random.Generator:
        """A numpy generator seeded by the key: each call returns an equal generator."""
        return np.random.default_rng(np.asarray(jax.random.key_data(self.key)).tolist())


class Written(NamedTuple):
    """A sampled text that is not a response to a prompt (no stop token), and its token count."""

    text: str
    tokens: int


class Actor(Protocol):
    """The current policy for parts of a batch: it samples, grades and scores responses.

    `RunActor` has the sampler, scorer and verifier of a run. Any object with these methods can be
    an actor: a page of numpy, or a third-party engine. A subclass that lacks a method cannot be
    instantiated.
    """

    @abstractmethod
    def draw(
        self,
        requests: Sequence[SampleRequest],
        key: jax.Array,
        sampling: Mapping[str, Any] | None = None,
        constants: Any = None,
    ) -> Batch:
        """Samples the responses to all requests, group by group, in the order of the requests.

        Args:
          key: key of the part and step; a row's key also depends on round, number and sample.
          sampling: sampler settings by name that replace the settings of the run. Two further names
            are "stops" and "record_top". The first has texts: a response pauses at the token that
            completes one. The second is the number of most probable tokens recorded with each
            generated token.
          constants: inputs of a logits processor, traced.
        """
        ...

    @abstractmethod
    def written(
        self, requests: Sequence[SampleRequest], responses: Sequence[Sequence[int]]
    ) -> Batch:
        """Rows of given responses as if they were sampled now, on the mask up to their ends.
        Log-probs and entropies are 0.

        Args:
          responses: tokens, group by group, for each request as many as its samples.
        """
        ...

    @abstractmethod
    def grade(self, batch: Batch) -> Batch:
        """The same rows with the verifier's grades, outcomes and rewards."""
        ...

    @abstractmethod
    def score(self, batch: Batch, needs: Iterable[str], of: str = "current") -> dict[str, Any]:
        """Token statistics of rows in their contexts under the policy `of`: "current", "start" or
        "teacher".

        Args:
          needs: names of statistics: "logp" and "entropy" [B, T]; "all_logp" [B, T, V], log-probs
            of the vocabulary. "mean_hidden" [B, D], the mean last hidden state over the mask;
            "max_id", the most probable token, int [B, T]; "verdict_logp" [B, K], for rows with a
            question.
        """
        ...

    @abstractmethod
    def prompts(self, requests: Sequence[SampleRequest]) -> tuple[np.ndarray, np.ndarray]:
        """Tokens [n, P] of the shown prompts, right-padded, and their lengths [n]."""
        ...

    @abstractmethod
    def write(
        self,
        chats: Sequence[Sequence[Mapping[str, str]]],
        key: jax.Array,
        attempts: Sequence[int],
        sampling: Mapping[str, Any] | None = None,
    ) -> list[Written | None]:
        """Samples replies to chats that are not prompts of the task.

        Args:
          chats: messages, each {"role": …, "content": …}; the last one is the user's.
          key: key of the part and step; a reply depends on it, the chat and the attempt.
          attempts: number of the attempt at each chat.
          sampling: as for `draw`, and "tokens", the largest size of a reply (else a response's).
        Returns:
          None for a chat that leaves no positions for a reply.
        """
        ...

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The tokens of a text, without a template."""
        ...

    @abstractmethod
    def embeddings(self) -> np.ndarray:
        """The policy's input embeddings, [V, D]."""
        ...

    @abstractmethod
    def stop_token(self) -> int:
        """The token that ends a response."""
        ...


def no_state(setting: RunInfo) -> tuple[()]:
    """The state of a part without state."""
    return ()


def same_size(samples: int) -> int:
    """The group size before a part that does not change it."""
    return samples


def _observe_nothing(state, turn, seen, learned):
    return state, {}


def _no_events(state, step) -> frozenset[str]:
    return frozenset()


@dataclass(frozen=True, eq=False, repr=False)
class Curriculum(Part):
    """A curriculum: a part that requests the prompts of a step and reads their results.

    Examples:
      >>> from rlvr_jax.experience import Curriculum, SampleRequest, experience
      >>> from rlvr_jax.experience.laws.numpy_actor import NumpyActor, walk
      >>> def first(requests, state, turn):
      ...     return [SampleRequest(turn.setting.task.train[0], 0, turn.setting.samples)]
      >>> chain = experience(Curriculum(first))
      >>> [len(collected.batch) for collected, _, _ in walk(chain, NumpyActor(), steps=1)]
      [4]

    Fields:
      propose: (requests, state, turn) -> requests. The first curriculum of a chain gets none and
        picks `setting.prompts` prompts; later ones set views, temperatures and levels.
      init: (setting) -> state, a pytree of numpy arrays of constant shapes.
      observe: (state, turn, seen, learned) -> (state, metrics), after the updates. `seen` has all
        graded batches of the step, before any filter; `learned` is the trained batch.
      at_evaluation: (state, found) -> state, after the held-out metrics; None: not called.
      events: (state, step) -> actions before the step. "restart" loads the initial weights, "reset"
        resets the optimizer, "refresh" makes the current weights the reference of a KL.
      reads: fields of prompts that it reads, in addition to those of its views.
      views: views that it may show.
      writes: records of `Rollouts` that its requests fill ("cell").
      refreshes: its events may have "refresh", so the run has a separate reference.
    """

    propose: Callable[[list[SampleRequest], Any, StepContext], list[SampleRequest]]
    init: Callable[[RunInfo], Any] = no_state
    observe: Callable[..., tuple[Any, Metrics]] = _observe_nothing
    at_evaluation: Callable[[Any, Mapping[str, float]], Any] | None = None
    events: Callable[[Any, int], frozenset[str]] = _no_events
    reads: frozenset[str] = frozenset()
    views: tuple[View, ...] = ()
    writes: frozenset[str] = frozenset()
    refreshes: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Draw(Part):
    """A part that samples the requested responses, such as `plain` or `turns`.

    Fields:
      apply: (requests, actor, state, turn) -> (batch, state, metrics).
      init, observe, reads, views: as in `Curriculum`.
      sampling: settings of the sampler that it prescribes for the whole run.
      of_policy: it belongs to the policy, so evaluations also use it (segments, turns). Otherwise
        only training uses it (processors, drafts).
      evaluation: with `of_policy`, a draw without state that evaluations use instead; None: itself.
      most: largest number of returned rows, as a multiple of the requested ones.
      splits: a response may be several rows (record `trace`).
      environment: replies to the policy within a response; "task": that of the task. Its messages
        at the start of an episode precede each prompt.
      writes: records of `Rollouts` that it fills, for the objective.
      fewer: it may return fewer rows than requested.
      as_sampled: it returns the responses as the actor sampled them, so they may be graded earlier.
    """

    apply: Callable[[Sequence[SampleRequest], Actor, Any, StepContext], tuple[Batch, Any, Metrics]]
    init: Callable[[RunInfo], Any] = no_state
    observe: Callable[..., tuple[Any, Metrics]] = _observe_nothing
    reads: frozenset[str] = frozenset()
    sampling: Mapping[str, Any] = field(default_factory=dict)
    of_policy: bool = False
    evaluation: Draw | None = None
    most: float = 1.0
    splits: bool = False
    environment: Environment | Game | Literal["task"] | None = None
    writes: frozenset[str] = frozenset()
    fewer: bool = False
    views: tuple[View, ...] = ()
    as_sampled: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Stage(Part):
    """A batch transform: a part that changes the graded batch of a step.

    Examples:
      >>> from rlvr_jax.experience import all_incorrect, redraw
      >>> from rlvr_jax.experience.views import hint
      >>> stage = redraw(all_incorrect, hint(0.5))
      >>> type(stage).__name__, stage.label
      ('Stage', 'redraw(when=all_incorrect, view=hint(fraction=0.5))')

    Fields:
      apply: (batch, actor, state, turn) -> (batch, state, metrics).
      init, observe, reads, views: as in `Curriculum`.
      size: (rollouts of a group after the stage) -> rollouts before it. For example 16 -> 4 if each
        of four is branched three times.
      rounds: largest number of further prompt batches that it requests.
      writes: records of `Rollouts` that it fills, for the objective.
      most: largest number of rows after it, as a multiple of the rows before it.
      updates: largest number of batches that it adds to `Batch.further`.
      by_row: each row must be a whole response, so a draw that splits responses is refused.
      counts: groups must have all requested rows, so a draw that may return fewer is refused.
      at_grading: it adds to all grades of the step when they are made, not at its place in the
        order. Its metrics are counts, which are summed. Its actor samples without the chain's draw,
        and returns only the verifier's grades.
      rewards: names of numbers that it adds to grades: further rewards of the task.
      of_task: fields of `Task` that it reads, among "answers", "rewards" and "score_steps".
      samples_teacher: it has requests with the policy "teacher", which an engine cannot answer.
    """

    apply: Callable[[Batch, Actor, Any, StepContext], tuple[Batch, Any, Metrics]]
    init: Callable[[RunInfo], Any] = no_state
    observe: Callable[..., tuple[Any, Metrics]] = _observe_nothing
    reads: frozenset[str] = frozenset()
    views: tuple[View, ...] = ()
    size: Callable[[int], int] = same_size
    rounds: int = 0
    writes: frozenset[str] = frozenset()
    most: float = 1.0
    updates: int = 0
    by_row: bool = False
    counts: bool = False
    at_grading: bool = False
    rewards: tuple[str, ...] = ()
    of_task: frozenset[str] = frozenset()
    samples_teacher: bool = False
