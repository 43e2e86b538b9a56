"""Prompt requests: a prompt, the view of it, and the number of responses."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from rlvr_jax.tasks import Prompt, Task
from rlvr_jax.types.parts import Part


class ShownPrompt(NamedTuple):
    """The text of a prompt that the policy sees, and the beginning of its response.

    Fields:
      text: replaces the prompt's `text`.
      opening: text that begins the response; graded with it, and part of its token budget.
      trained: whether the opening is trained like sampled tokens.
      fraction: fraction of the opening's tokens that are given, from the first one on; rounded.
    """

    text: str
    opening: str = ""
    trained: bool = False
    fraction: float = 1.0

    def prefill(self, encode: Callable[[str], Sequence[int]]) -> list[int]:
        """The given first tokens of a response.

        Args:
          encode: the tokens of a text, without a template.
        """
        tokens = list(encode(self.opening)) if self.opening else []
        return tokens[: round(self.fraction * len(tokens))]


@dataclass(frozen=True, eq=False, repr=False)
class View(Part):
    """A way to show a prompt to the policy, such as with a hint.

    Fields:
      show: (prompt, task) -> `ShownPrompt`, pure.
      reads: fields of the prompts that it reads in addition to their text ("solution", "hints").
      fraction: fraction of a worked solution that it reveals.
      responses: number of responses that it shows, each at most as long as a response's budget. A
        run reserves positions for them before it reads weights.
    """

    show: Callable[[Prompt, Task], ShownPrompt]
    reads: frozenset[str] = frozenset()
    fraction: float = 0.0
    responses: int = 0


def plain(prompt: Prompt, task: Task) -> ShownPrompt:
    """An unchanged prompt."""
    return ShownPrompt(prompt.text)


PLAIN = View(plain)
"""An unchanged prompt."""


@dataclass(frozen=True)
class SampleRequest:
    """A request for responses to one prompt, which form a group.

    Examples:
      >>> from rlvr_jax.experience.requests import SampleRequest
      >>> from rlvr_jax.tasks import Prompt
      >>> SampleRequest(Prompt("1 + 1 =", "2"), number=0, samples=8).samples
      8

    A response is sampled with a random key of (seed, part, step, round, number, sample). It does
    not depend on other requests.

    Fields:
      prompt: the prompt that is answered and graded.
      number: position in `task.train`, or a later number for prompts that a run makes.
      samples: number of responses.
      view: how the prompt is shown.
      round: round of the step; further prompts of a step have later rounds.
      first_sample: number of the first sample, for a prompt that is sampled again with one key.
      temperature: of the sampler; None: the run's.
      rating: sampled, graded and counted, but not trained; sampled with a separate key.
      cell: label of its rows (role, domain); -1: none.
      given: first tokens of every response, neither sampled nor trained.
      unanswered: how many of the last given tokens belong to the current turn; a stop text may
        begin in them.
      limit: largest number of sampled tokens, for a response in segments; None: the rest of the
        budget.
      policy: who samples, "current" or "teacher": the teacher of the recipe.
      prefix: [E, D], vectors before the prompt in every response; None: none.
    """

    prompt: Prompt
    number: int
    samples: int
    view: View = PLAIN
    round: int = 0
    first_sample: int = 0
    temperature: float | None = None
    rating: bool = False
    cell: int = -1
    given: Sequence[int] = ()
    unanswered: int = 0
    limit: int | None = None
    policy: Literal["current", "teacher"] = "current"
    prefix: Any = field(default=None, compare=False, repr=False)


def groups_of(requests: Sequence[SampleRequest]) -> np.ndarray:
    """The group of each row, int32: one group for each request, in order."""
    samples = [request.samples for request in requests]
    return np.repeat(np.arange(len(requests), dtype=np.int32), samples)


def shows_nothing(request: SampleRequest, task: Task) -> bool:
    """Whether the view of a request leaves its prompt unchanged, except for outer white space."""
    shown = request.view.show(request.prompt, task)
    return shown.text.strip() == request.prompt.text.strip() and not shown.opening


def numbered_answers(requests: Sequence[SampleRequest]) -> list[tuple[SampleRequest, int]]:
    """The request of each response, and the response's number among those to its prompt."""
    found, before = [], Counter[int]()
    for request in requests:
        first = request.first_sample + before[request.number]
        before[request.number] += request.samples
        found += [(request, first + sample) for sample in range(request.samples)]
    return found
