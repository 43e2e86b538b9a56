"""Environments that reply to a policy within its response."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Reply:
    """An environment's reply to a text of the policy.

    Fields:
      state: state of the episode from now on; not shown.
      text: text that the policy reads next; None: none, and the response ends where the policy
        ended it.
      done: whether the episode is over, with or without a text.
      reward: reward of this turn; None: the environment has no rewards of turns.
      outcome: in [0, 1], at the end of an episode, by environments that judge; None: not yet.
      info: numbers for metrics, averaged over responses by name.
      role: "": the text continues the policy's text. "tool" or "user": it is the next message of a
        chat, written by the tokenizer's template. Special tokens in it are words.
      lost: the reply is unknown (a sandbox was ended from outside); the response is ungraded.
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
    """A game's replies to its players, after each has written a text.

    Fields:
      state: state of the game from now on.
      each: reply to each player; the states of these replies are not read.
    """

    state: Any
    each: Sequence[Reply]


class World(Protocol):
    """The common part of `Environment` and `Game`.

    One object serves all rows, from several threads; only the state differs.

    Fields:
      stops: texts at which a response pauses for a reply. It pauses at the token that completes a
        stop within the turn, in any tokenization. That token may continue after the stop. It was
        sampled and stays whole in the response, and the reply follows it. The environment also
        replies at the end of a response.
      label: Python expression that makes this object.
      judges: True: the outcome of a response is that of its last reply with one (else 0), and its
        reward is the sum of the rewards (the outcome if all are 0). False: the task's verifier
        grades the response.
    """

    @property
    def stops(self) -> Sequence[str]: ...

    @property
    def label(self) -> str: ...

    @property
    def judges(self) -> bool: ...

    def start(self, prompt: Any) -> tuple[Any, Sequence[Mapping[str, Any]]]:
        """The picklable state at the start of an episode for a `Prompt`, and messages before the
        prompt (how to call tools); none if the prompt is complete. A message that explains tools
        may have "tools", their JSON schemas, and "marks". A chat template that shows the tools and
        writes these marks replaces the message."""
        ...


class Environment(World, Protocol):
    """An environment in which every response is independent."""

    def reply(self, state: Any, text: str) -> Reply:
        """The reply to the text since the last reply with a text. After a pause without a reply the
        turn continues, and the next text includes it.

        Equal states and texts should have equal replies; otherwise the reply log of a run stores
        them.
        """
        ...


class Game(World, Protocol):
    """An environment of several players, who move at the same time and answer one prompt.

    The first `players` responses to a prompt play with each other, then the next ones, so the group
    size must be a multiple of it. All players are the policy. A game is over for all players when
    one of them has used up its budget.

    Fields:
      players: number of players of a game, at least 2.
    """

    @property
    def players(self) -> int: ...

    def reply(self, state: Any, text: Sequence[str]) -> Replies:
        """The replies to the texts of all players since the previous replies, in order."""
        ...


def before_stop(text: str, stops: Sequence[str]) -> str:
    """A text up to its first stop; the whole text without one."""
    ends = [place for stop in stops if (place := text.find(stop)) >= 0]
    return text[: min(ends, default=len(text))]
