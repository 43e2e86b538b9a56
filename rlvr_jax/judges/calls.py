"""Who answers a judge's questions: a call takes questions and gives a reply to each."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

Message = Mapping[str, str]
"""{"role": "system", "user" or "assistant", "content": text}."""

OVER_BUDGET = "over budget"
"""The failure of a question that nobody was asked."""


class Question(NamedTuple):
    """What is asked.

    Fields:
      messages: a chat that ends with the user's.
      attempt: number of the try, from 0; a judge that samples answers another one differently.
    """

    messages: tuple[Message, ...]
    attempt: int = 0


class Reply(NamedTuple):
    """What came back.

    Fields:
      text: the judge's words; None if it failed.
      failure: why, a word or two that names no address; "" if it did not.
      tokens: of prompt and reply, as far as they are known.
      calls: that it took, retries included.
    """

    text: str | None
    failure: str = ""
    tokens: int = 0
    calls: int = 1


@dataclass
class Spending:
    """What may still be spent; threads share it.

    Fields:
      calls, tokens: that are left; None: as many as one likes.
    """

    calls: int | None = None
    tokens: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def take(self) -> bool:
        """Takes one call; False if none is left, or no tokens are."""
        with self._lock:
            if (self.tokens is not None and self.tokens <= 0) or self.calls == 0:
                return False
            if self.calls is not None:
                self.calls -= 1
            return True

    def spend(self, tokens: int) -> None:
        """Takes tokens, once it is known how many they were."""
        with self._lock:
            if self.tokens is not None:
                self.tokens -= tokens


@dataclass(frozen=True)
class Call:
    """Somebody who answers.

    Fields:
      ask: (questions, spending) -> a reply to each, in order. It takes each call from the spending,
        and raises nothing: a question that fails is a `Reply` without text.
      identity: who that is and how it samples; the same identity gives replies that may stand for
        each other. It names no key.
      together: all processes ask everything at the same time, for they answer with one program;
        else each question is asked by one of them.
    """

    ask: Callable[[Sequence[Question], Spending], Sequence[Reply]]
    identity: str
    together: bool = False


def one_by_one(
    reply: Callable[[Question, Spending], Reply], identity: str, at_once: int = 32
) -> Call:
    """A call that answers questions by themselves, several at the same time.

    Args:
      reply: answers one, in a thread; raises nothing.
      identity: of the call.
      at_once: threads.
    Raises:
      ValueError: no thread.
    """
    if at_once < 1:
        raise ValueError(f"one_by_one: at_once must be at least 1, got {at_once}")

    def ask(questions, spending):
        if not questions:
            return []
        with ThreadPoolExecutor(min(at_once, len(questions))) as pool:
            return list(pool.map(lambda question: reply(question, spending), questions))

    return Call(ask, identity)


def by_function(
    function: Callable[[Sequence[Message]], str],
    identity: str,
    at_once: int = 1,
    seconds: float | None = None,
) -> Call:
    """A function of one's own: messages in, text out.

    What it raises, and what is no text, is a failure.

    Args:
      identity: a name that changes when its answers do.
      at_once: threads that call it at the same time.
      seconds: until it is given up, and left alone in a thread that ends with the process; None: it
        is waited for.
    Raises:
      ValueError: no thread, or seconds that are not positive.
    """
    if seconds is not None and not seconds > 0:
        raise ValueError(f"by_function: seconds must be positive, got {seconds}")

    def reply(question, spending):
        if not spending.take():
            return Reply(None, OVER_BUDGET, calls=0)
        told: list[Reply] = []
        thread = threading.Thread(
            target=lambda: told.append(_told_by(function, question)), daemon=True
        )
        thread.start()
        thread.join(seconds)
        return told[0] if told else Reply(None, "time-out")

    return one_by_one(reply, f"function {identity}", at_once)


def _told_by(function: Callable[[Sequence[Message]], str], question: Question) -> Reply:
    # Whatever a stranger's function raises is a judge that failed.
    try:
        text = function(question.messages)
    except BaseException as error:
        return Reply(None, type(error).__name__)
    return Reply(text) if isinstance(text, str) else Reply(None, "no text")
