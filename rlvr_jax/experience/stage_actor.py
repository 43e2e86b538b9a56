"""The actors that parts of a chain get, around the actor of a run.

CountedActor    counts tokens               the chain's draw, and stages with `at_grading`
StageActor      samples as the chain does   all other stages
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience.batch import Batch, given_tokens
from rlvr_jax.experience.parts import Actor, Written
from rlvr_jax.experience.requests import SampleRequest


class CountedActor(Actor):
    """An actor that counts generated, given and scored tokens.

    Args:
      metrics: counts "sampled_tokens", "given_tokens" and "scored_tokens", to which it adds.
      graded: all responses will be graded as they are sampled. An actor that can does so while it
        samples others (`draw_graded`).
    """

    def __init__(self, actor: Actor, metrics: dict[str, float], graded: bool = False):
        self._actor = actor
        self._metrics = metrics
        self._sampled = getattr(actor, "draw_graded", actor.draw) if graded else actor.draw

    def draw(
        self,
        requests: Sequence[SampleRequest],
        key: jax.Array,
        sampling: Mapping[str, Any] | None = None,
        constants: Any = None,
    ) -> Batch:
        batch = self._sampled(requests, key, sampling, constants)
        given = float(given_tokens(batch.rollouts).sum())
        self._metrics["given_tokens"] += given
        self._metrics["sampled_tokens"] += float(batch.rollouts.length.sum()) - given
        return batch

    def written(
        self, requests: Sequence[SampleRequest], responses: Sequence[Sequence[int]]
    ) -> Batch:
        return self._actor.written(requests, responses)

    def grade(self, batch: Batch) -> Batch:
        return self._actor.grade(batch)

    def score(self, batch: Batch, needs: Iterable[str], of: str = "current") -> dict[str, Any]:
        self._metrics["scored_tokens"] += float(batch.rollouts.length.sum())
        return self._actor.score(batch, needs, of)

    def prompts(self, requests: Sequence[SampleRequest]) -> tuple[np.ndarray, np.ndarray]:
        return self._actor.prompts(requests)

    def write(
        self,
        chats: Sequence[Sequence[Mapping[str, str]]],
        key: jax.Array,
        attempts: Sequence[int],
        sampling: Mapping[str, Any] | None = None,
    ) -> list[Written | None]:
        replies = self._actor.write(chats, key, attempts, sampling)
        self._metrics["sampled_tokens"] += float(sum(reply.tokens for reply in replies if reply))
        return replies

    def encode(self, text: str) -> list[int]:
        return self._actor.encode(text)

    def embeddings(self) -> np.ndarray:
        return self._actor.embeddings()

    def stop_token(self) -> int:
        return self._actor.stop_token()


class StageActor(CountedActor):
    """The actor of stages: it samples by the chain's draw, and observers see its grades.

    Args:
      draw: (requests, key) -> responses, counted.
      grade: (batch) -> the batch with grades.
    """

    def __init__(
        self,
        actor: Actor,
        metrics: dict[str, float],
        draw: Callable[[Sequence[SampleRequest], jax.Array], Batch],
        grade: Callable[[Batch], Batch],
    ):
        super().__init__(actor, metrics)
        self._draw = draw
        self._grade = grade

    def draw(
        self,
        requests: Sequence[SampleRequest],
        key: jax.Array,
        sampling: Mapping[str, Any] | None = None,
        constants: Any = None,
    ) -> Batch:
        """Responses by the chain's draw.

        Raises:
          ValueError: sampling or constants are given, which the draw sets.
        """
        for name, value in (("sampling", sampling), ("constants", constants)):
            if value is not None:
                raise ValueError(
                    f"draw: {name} must be None in a stage, as the experience's draw sets it, got"
                    f" {value!r:.80}. Requests may set a temperature and a limit, and a stage with"
                    " at_grading samples without the draw"
                )
        return self._draw(requests, key)

    def grade(self, batch: Batch) -> Batch:
        return self._grade(batch)
