"""Calls: functions that take a judge's questions and return a reply to each."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from rlvr_jax.arguments import check_arguments
from rlvr_jax.types.hyperparameters import Bound, Count

Message = Mapping[str, str]
"""{"role": "system", "user" or "assistant", "content": text}."""

OVER_BUDGET = "over budget"
"""Failure of a question that was not sent."""


class Question(NamedTuple):
    """A chat and the number of the attempt.

    Fields:
      messages: a chat that ends with the user's message.
      attempt: number of the attempt, from 0; a judge that samples may reply differently to each.
    """

    messages: tuple[Message, ...]
    attempt: int = 0


class Reply(NamedTuple):
    """A judge's reply or failure.

    Fields:
      text: the reply; None if it failed.
      failure: reason, a word or two without an address; "" without a failure.
      tokens: number of tokens of prompt and reply, if known.
      calls: number of calls, including retries.
    """

    text: str | None
    failure: str = ""
    tokens: int = 0
    calls: int = 1


@dataclass
class Spending:
    """The remaining budget, common to all threads.

    Fields:
      calls, tokens: numbers that remain; None: unlimited.
    """

    calls: int | None = None
    tokens: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def take(self) -> bool:
        """Uses one call; returns False if no call or no token remains."""
        with self._lock:
            if (self.tokens is not None and self.tokens <= 0) or self.calls == 0:
                return False
            if self.calls is not None:
                self.calls -= 1
            return True

    def spend(self, tokens: int) -> None:
        """Uses tokens, once their number is known."""
        with self._lock:
            if self.tokens is not None:
                self.tokens -= tokens


@dataclass(frozen=True)
class Call:
    """A source of replies.

    Fields:
      query: (questions, spending) -> a reply to each, in order. It takes each call from the
        spending and never raises: a question that fails has a `Reply` without text.
      identity: model and sampling, without a key. Replies of one identity are interchangeable.
      together: whether all processes send all questions together, because they run one compiled
        function. Otherwise one process sends each question.
    """

    query: Callable[[Sequence[Question], Spending], Sequence[Reply]]
    identity: str
    together: bool = False


def one_by_one(
    reply: Callable[[Question, Spending], Reply], identity: str, at_once: Count = 32
) -> Call:
    """A call that replies to each question separately, in threads.

    Args:
      reply: replies to one question, in a thread; never raises.
      identity: as in `Call`.
      at_once: number of threads.
    """
    check_arguments(one_by_one, {"at_once": at_once})

    def query(questions, spending):
        if not questions:
            return []
        with ThreadPoolExecutor(min(at_once, len(questions))) as pool:
            return list(pool.map(lambda question: reply(question, spending), questions))

    return Call(query, identity)


def by_function(
    function: Callable[[Sequence[Message]], str],
    identity: str,
    at_once: int = 1,
    seconds: Bound | None = None,
) -> Call:
    """A custom function (messages) -> text as a call.

    An exception or a result that is not a text is a failure.

    Args:
      function: (messages) -> text.
      identity: a name that changes when the function's replies do.
      at_once: number of threads that call it simultaneously.
      seconds: time limit (seconds), after which the thread continues until the process ends; None:
        no limit.
    """
    check_arguments(by_function, {"seconds": seconds})

    def reply(question, spending):
        if not spending.take():
            return Reply(None, OVER_BUDGET, calls=0)
        found: list[Reply] = []
        thread = threading.Thread(
            target=lambda: found.append(_reply_of(function, question)), daemon=True
        )
        thread.start()
        thread.join(seconds)
        return found[0] if found else Reply(None, "time-out")

    return one_by_one(reply, f"function {identity}", at_once)


def _reply_of(function: Callable[[Sequence[Message]], str], question: Question) -> Reply:
    # Any exception of a third-party function is a failure of the judge.
    try:
        text = function(question.messages)
    except BaseException as error:
        return Reply(None, type(error).__name__)
    return Reply(text) if isinstance(text, str) else Reply(None, "no text")
