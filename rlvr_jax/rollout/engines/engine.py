"""The protocol of engines that sample in place of the sampler in this process."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import numpy as np

from rlvr_jax.rollout.processors import Sampling


class EngineError(ValueError):
    """An engine that is gone, late, or answers with something else than what was requested."""


class Generated(NamedTuple):
    """One response of an engine.

    Fields:
      tokens: ids, with the stop token if it ended by one.
      logp: log-prob of each token as the engine reports it (nats); see `Engine.meaning`.
      stopped: it ended by a stop token, not by the budget.
      routes: [P + T - 1, n, k], numbers of the experts of all tokens but the last one, in a mixture
        of experts. None: the engine does not report them.
    """

    tokens: list[int]
    logp: list[float]
    stopped: bool
    routes: np.ndarray | None = None


@dataclass(frozen=True)
class Decoding:
    """Settings with which an engine samples responses.

    Fields:
      tokens: budget of a response.
      sampling: cuts of the distribution. Its temperature is replaced by that of each prompt.
      stop_tokens: ids that end a response.
    """

    tokens: int
    sampling: Sampling
    stop_tokens: tuple[int, ...]


Done = Callable[[int, Generated], None]
"""Called with the place of a prompt and the response to it."""


class Engine(Protocol):
    """A sampler in another process, such as a vLLM server.

    It receives prompt tokens and returns sampled tokens with their log-probs. It samples with the
    weights that were loaded last.

    Fields:
      meaning: the distribution of reported log-probs. "processed": after temperature and cuts, the
        one that is really sampled from. "raw": the softmax of the logits.
    """

    @property
    @abstractmethod
    def meaning(self) -> Literal["processed", "raw"]: ...

    @abstractmethod
    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        temperatures: Sequence[float],
        decoding: Decoding,
        done: Done | None = None,
    ) -> list[Generated]:
        """One response to each prompt; equal seeds give equal responses to a prompt.

        Args:
          done: called with place and response as soon as each is complete, in any thread and order.
        Raises:
          EngineError: there is no response to one of them.
        """

    @abstractmethod
    def score(self, sequences: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """Log-probs of the tokens after the first of each sequence, at temperature 1, without cuts.

        Raises:
          EngineError: as `generate`.
        """

    @abstractmethod
    def load(self, folder: Path) -> None:
        """Replaces the weights by those of a policy folder. No response mixes old and new ones.

        Raises:
          EngineError: they were not loaded.
        """

    @abstractmethod
    def load_adapter(self, folder: Path) -> None:
        """Uses an adapter in PEFT's format from now on, in place of an earlier one.

        Raises:
          EngineError: as `load`.
        """
