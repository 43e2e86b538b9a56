"""Worlds that answer a policy in the middle of its response."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Reply:
    """An environment's reply to a text of the policy.

    Fields:
      state: of the episode from now on; not shown.
      text: the policy reads it next; None: nothing, and the response ends as the policy ended it.
      done: the episode is over, whether there is a text or not.
      reward: of this turn; None: the environment gives none.
      outcome: in [0, 1], the end of the episode, of environments that judge; None: nothing yet.
      info: numbers for the curves, averaged over responses by name.
      role: "": the text continues where the policy stopped; "tool" or "user": it is the next
        message of a chat, written by the tokenizer's template. Special tokens in it are words.
      lost: the reply is not known (a sandbox that was ended from outside); the response is
        ungraded.
    """

    state: Any
    text: str | None = None
    done: bool = False
    reward: float | None = None
    outcome: float | None = None
    info: Mapping[str, float] = field(default_factory=dict)
    role: str = ""
    lost: bool = False


@dataclass(frozen=True)
class Replies:
    """A game's replies to its players, who have all written something.

    Fields:
      state: of the game from now on.
      each: to each player; their own states are not read.
    """

    state: Any
    each: Sequence[Reply]


class World(Protocol):
    """The common part of an `Environment` and a `Game`, without their answers.

    One object serves all rows, from several threads; only the state differs.

    Fields:
      stops: texts at which a response pauses for the environment's reply: at the token with which
        the turn contains one of them, however the text is split into tokens. That token may go on
        beyond the stop; it was sampled and stays whole in the response, and the reply follows it.
        The environment also replies where a response ends.
      label: the call that makes it.
      judges: the outcome of a response is that of its last reply that has one, 0 if none has, and
        its reward the sum of the rewards (the outcome if all are 0); False: the task's verifier
        reads the response.
    """

    @property
    def stops(self) -> Sequence[str]: ...

    @property
    def label(self) -> str: ...

    @property
    def judges(self) -> bool: ...

    def start(self, prompt: Any) -> tuple[Any, Sequence[Mapping[str, Any]]]:
        """The state of an episode's start for a `Prompt`, picklable, and messages before the prompt
        (how tools are called); none if the prompt is complete. One that explains tools may have
        "tools", their JSON schemas, and "marks": a chat template that shows the tools and writes
        these marks takes its place."""
        ...


class Environment(World, Protocol):
    """A world in which every response is independent."""

    def reply(self, state: Any, text: str) -> Reply:
        """The answer to the text since the last reply with a text. After a pause that is not
        answered the turn goes on, and the next text includes it.

        Equal states and texts should have equal replies; the reply log of a run covers the
        other case.
        """
        ...


class Game(World, Protocol):
    """A world of several players, who move at the same time and answer one prompt.

    The first `players` responses to a prompt play with each other, then the next ones; their number
    is a multiple of it. All players are the policy. A game is over for all where one of them has
    used up its budget.

    Fields:
      players: of a game, at least 2.
    """

    @property
    def players(self) -> int: ...

    def reply(self, state: Any, text: Sequence[str]) -> Replies:
        """The replies to the texts of all players, in order, since the last time."""
        ...


def before_stop(text: str, stops: Sequence[str]) -> str:
    """A text up to the first stop that is in it; all of it without any."""
    ends = [place for stop in stops if (place := text.find(stop)) >= 0]
    return text[: min(ends, default=len(text))]
