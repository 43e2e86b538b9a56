"""What is asked of the policy: a prompt, what is shown of it, and how often."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rlvr_jax.tasks import Prompt, Task
from rlvr_jax.types.parts import Part

__all__ = ["PLAIN", "Ask", "Shown", "View", "numbered_answers", "shows_nothing"]


class Shown(NamedTuple):
    """What the policy sees of a prompt, and what its response begins with.

    Fields:
      text: in the place of the prompt's own text.
      opening: text that the response begins with; it is graded with the rest and counts in the
        budget of the response.
      trained: the opening is learned from as if the policy had drawn it.
      share: of the opening's tokens, how many are given, rounded; the first ones.
    """

    text: str
    opening: str = ""
    trained: bool = False
    share: float = 1.0

    def begun(self, encode: Callable[[str], Sequence[int]]) -> list[int]:
        """The tokens that a response begins with.

        Args:
          encode: the tokens of a text, without a template.
        """
        tokens = list(encode(self.opening)) if self.opening else []
        return tokens[: round(self.share * len(tokens))]


@dataclass(frozen=True, eq=False, repr=False)
class View(Part):
    """A way to show a prompt.

    Fields:
      show: (prompt, task) -> `Shown`, pure.
      reads: fields of the task's prompts that it reads ("solution", "hints") beside their text.
      fraction: how much of a worked solution it gives away, in [0, 1].
      responses: answers that a run puts into it, each of a response's budget at most; room for them
        is asked for before weights are read.
    """

    show: Callable[[Prompt, Task], Shown]
    reads: frozenset[str] = frozenset()
    fraction: float = 0.0
    responses: int = 0


def plain(prompt: Prompt, task: Task) -> Shown:
    """A prompt as it is."""
    del task
    return Shown(prompt.text)


PLAIN = View(plain)
"""A prompt as it is."""


@dataclass(frozen=True)
class Ask:
    """One prompt, asked some times; its responses are a group.

    A response is drawn with a random key of (seed, part, step, round, number, sample): it does not
    depend on what else is asked.

    Fields:
      prompt: what is answered and graded.
      number: its identity: the position in `task.train`, or behind it for prompts that a run makes.
      samples: responses.
      view: how it is shown.
      round: of the step; further prompts of a step have later ones.
      first_sample: number of its first sample, for one that is asked again under the same key.
      temperature: of the sampler; None: the run's.
      rating: drawn, graded and counted, never trained; apart from the others, under another key.
      cell: label that its rows carry (role, domain); -1: none.
      given: tokens that every response begins with, not drawn and not trained.
      unanswered: so many last ones of them belong to the turn that goes on; a text that pauses a
        response may begin in them.
      prefix: [E, D], vectors that stand before the prompt in every response; None: none.
      limit: tokens that are drawn at most, where a response is written piece by piece; None: what
        is left of its budget.
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
    prefix: Any = field(default=None, compare=False, repr=False)


def shows_nothing(ask: Ask, task: Task) -> bool:
    """Whether the view of an ask shows its prompt as it is, as where a hint says the answer; white
    space around it aside."""
    shown = ask.view.show(ask.prompt, task)
    return shown.text.strip() == ask.prompt.text.strip() and not shown.opening


def numbered_answers(asks: Sequence[Ask]) -> list[tuple[Ask, int]]:
    """The ask of each answer, and its number among all answers to the prompt."""
    found, before = [], Counter[int]()
    for ask in asks:
        first = ask.first_sample + before[ask.number]
        before[ask.number] += ask.samples
        found += [(ask, first + sample) for sample in range(ask.samples)]
    return found
