"""What the parts of an experience are: curricula, draws, stages, and what they may know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import jax
import numpy as np

from rlvr_jax.experience.asks import Ask, View
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.told import Told
from rlvr_jax.tasks import Task
from rlvr_jax.tools import Environment, Game
from rlvr_jax.types.parts import Part

__all__ = [
    "Actor",
    "Curriculum",
    "Draw",
    "Setting",
    "Stage",
    "Turn",
    "Written",
    "no_state",
    "same_size",
]

Metrics = Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Setting:
    """What parts may know of a run before it begins.

    Fields:
      task: its train prompts are what is learned from.
      prompts, samples: groups of a step, and rollouts of each that are trained on.
      drawn_samples: rollouts of each that are drawn first; stages make the others of them.
      response_tokens: budget of a response (T).
      seed: of everything random.
      steps: of the run.
      rounds: batches of prompts that a step may take at most.
      vocabulary: size of the policy's; 0: not known.
      width: of its hidden states; 0: not known.
      told: where what environments say is kept; None: nowhere.
    """

    task: Task
    prompts: int
    samples: int
    drawn_samples: int
    response_tokens: int
    seed: int = 0
    steps: int = 1
    rounds: int = 1
    vocabulary: int = 0
    width: int = 0
    told: Told | None = None


class Turn(NamedTuple):
    """Where a part is called.

    Fields:
      step: of the run, from 0.
      key: of jax.random, of (seed, the part, step): all that is random comes from it.
      setting: of the run.
      more: (prompts) -> so many further asks of the curriculum, of rounds that come after those of
        the step; fewer when the rounds are used up. Raises ValueError where no part was to ask.
      round: of the step, in `propose`.
    """

    step: int
    key: jax.Array
    setting: Setting
    more: Callable[[int], list[Ask]]
    round: int = 0

    def random(self) -> np.random.Generator:
        """A generator of numpy, begun by the key: each call gives the same one."""
        return np.random.default_rng(np.asarray(jax.random.key_data(self.key)).tolist())


class Written(NamedTuple):
    """A free text of a policy.

    Fields:
      text: without the stop token.
      tokens: that were drawn.
    """

    text: str
    tokens: int


class Actor(Protocol):
    """The current policy at work; parts talk to nothing else.

    `RunActor` is the in-process sampler, scorer and verifier of a run. A test's actor may be a page
    of numpy, and somebody else's engine can be one.
    """

    def draw(
        self,
        asks: Sequence[Ask],
        key: jax.Array,
        sampling: Mapping[str, Any] | None = None,
        constants: Any = None,
    ) -> Batch:
        """Samples the responses of all asks, group by group, in the order of the asks.

        Args:
          key: of the part and step; a row is keyed by it, the ask's round and number, and its
            sample.
          sampling: settings of the sampler other than the run's, of which "stops" are texts: a
            response pauses at the token with which it contains one; and "record_top", how many of
            the most probable tokens are recorded beside each drawn one.
          constants: what a logits processor reads, traced.
        """
        ...

    def written(self, asks: Sequence[Ask], responses: Sequence[Sequence[int]]) -> Batch:
        """Rows of given responses as if they had been drawn now, on the mask up to their ends; with
        log-probs and entropies of 0.

        Args:
          responses: tokens, for each ask as many as it has samples, group by group.
        """
        ...

    def grade(self, batch: Batch) -> Batch:
        """The same rows with the verifier's grades, outcomes and rewards."""
        ...

    def score(self, batch: Batch, needs: Iterable[str], of: str = "current") -> dict[str, Any]:
        """Token statistics of rows, in the context that they have, under the policy `of`:
        "current", "start" or "teacher".

        Args:
          needs: of "logp" and "entropy", [B, T], and one of "all_logp", log-probs of the vocabulary
            [B, T, V]; "mean_hidden", the mean last hidden state of the tokens on the mask [B, D];
            "max_id", the likeliest token int [B, T]; and "verdict_logp" [B, K], for rows that say
            what is asked about them.
        """
        ...

    def prompts(self, asks: Sequence[Ask]) -> tuple[np.ndarray, np.ndarray]:
        """Tokens [n, P], right-padded, and lengths [n] of what asks show."""
        ...

    def write(
        self,
        chats: Sequence[Sequence[Mapping[str, str]]],
        key: jax.Array,
        attempts: Sequence[int],
        sampling: Mapping[str, Any] | None = None,
    ) -> list[Written | None]:
        """Free text: what the policy answers to chats that are no prompts of the task.

        Args:
          chats: messages, each {"role": …, "content": …}; the last one is the user's.
          key: of the part and step; an answer depends on it, the chat and the attempt.
          attempts: number of the try at each chat.
          sampling: as for `draw`; and "tokens", of an answer at most, else those of a response.
        Returns:
          None for a chat that leaves no room for an answer.
        """
        ...

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, without a template."""
        ...

    def embeddings(self) -> np.ndarray:
        """The policy's input embeddings, [V, D]."""
        ...

    def stop_token(self) -> int:
        """The token that ends a response."""
        ...


def no_state(setting: Setting) -> tuple[()]:
    """The state of a part that has none."""
    del setting
    return ()


def same_size(samples: int) -> int:
    """The group size before a part that leaves it alone."""
    return samples


def _observe_nothing(state, turn, seen, learned):
    del turn, seen, learned
    return state, {}


def _no_events(state, step) -> frozenset[str]:
    del state, step
    return frozenset()


@dataclass(frozen=True, eq=False, repr=False)
class Curriculum(Part):
    """Which prompts a step asks, and how.

    Fields:
      propose: (asks, state, turn) -> asks. The first curriculum of a chain gets none and picks
        `setting.prompts` prompts; later ones set views, temperatures, levels of what they get.
      init: (setting) -> state, a pytree of numpy arrays whose shapes never change.
      observe: (state, turn, seen, learned) -> (state, metrics), after the updates. `seen` are all
        graded batches of the step, before any filter; `learned` is the trained one.
      at_evaluation: (state, found) -> state, told of the held-out metrics; None: it does not ask.
      events: (state, step) -> what the loop does before the step, of "restart" (the weights the run
        began with), "reset" (the optimizer) and "refresh" (the weights as they are become the
        reference of a KL).
      reads: fields of prompts that it reads, in addition to those of its views.
      views: that it may show.
      writes: records of `Rollouts` that its asks fill ("cell").
      refreshes: its events may have "refresh", so that a run keeps a reference of its own.
    """

    propose: Callable[[list[Ask], Any, Turn], list[Ask]]
    init: Callable[[Setting], Any] = no_state
    observe: Callable[..., tuple[Any, Metrics]] = _observe_nothing
    at_evaluation: Callable[[Any, Mapping[str, float]], Any] | None = None
    events: Callable[[Any, int], frozenset[str]] = _no_events
    reads: frozenset[str] = frozenset()
    views: tuple[View, ...] = ()
    writes: frozenset[str] = frozenset()
    refreshes: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Draw(Part):
    """How asks are answered.

    Fields:
      apply: (asks, actor, state, turn) -> (batch, state, metrics).
      init, observe, reads: as in `Curriculum`.
      sampling: settings of the sampler that it prescribes, for the whole run.
      of_policy: it belongs to the policy, so that evaluations draw by it, too (chunks, turns); else
        to training alone (processors, drafts).
      evaluation: with `of_policy`, a draw without state that evaluations are drawn by in its place;
        None: by itself.
      most: rows that it gives at most, as a multiple of those that are asked for.
      splits: an answer may be several rows (`Rollouts.trace`).
      environment: that answers the policy in the middle of a response; "task": that of the task.
        Its messages at the start of an episode precede each prompt.
      writes: records of `Rollouts` that it fills, for the objective.
      fewer: it may give fewer rows than are asked for.
      views: that it may show.
    """

    apply: Callable[[Sequence[Ask], Actor, Any, Turn], tuple[Batch, Any, Metrics]]
    init: Callable[[Setting], Any] = no_state
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


@dataclass(frozen=True, eq=False, repr=False)
class Stage(Part):
    """What becomes of the answers.

    Fields:
      apply: (batch, actor, state, turn) -> (batch, state, metrics).
      init, observe, reads, views: as in `Curriculum`.
      size: rollouts of a group behind the stage -> before it, e.g. 16 -> 4 where each of four is
        branched three times.
      rounds: batches of further prompts that it asks for at most.
      writes: records of `Rollouts` that it fills, for the objective.
      most: rows behind it at most, as a multiple of those before.
      updates: batches of `Batch.further` that it gives at most.
      by_row: it takes each row for an answer, so a draw that splits answers is refused.
      counts: it counts on groups of all rows that are asked for, so a draw that may give fewer is
        refused.
      at_grading: it adds to the grades of all that is graded in the step, whoever had it drawn, and
        not in its place in the order. What it tells are counts, which are summed. Its actor draws
        plainly, whatever the chain's draw is, and gives the grades of the verifier alone.
      rewards: names of numbers that it adds to grades, further rewards of the task.
      of_task: fields of `Task` that it reads, of "answers", "rewards" and "score_steps".
    """

    apply: Callable[[Batch, Actor, Any, Turn], tuple[Batch, Any, Metrics]]
    init: Callable[[Setting], Any] = no_state
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
