"""Calls to a server with OpenAI's chat completions (vLLM, llama.cpp, a company).

Address and key come from environment variables and are never written.
"""

import json
import os
import time
from collections.abc import Mapping
from email.message import Message as Headers

from rlvr_jax.arguments import check_arguments
from rlvr_jax.connections import LOST, VISIBLE, Connections, address_parts
from rlvr_jax.judges.calls import OVER_BUDGET, Call, Question, Reply, Spending, one_by_one
from rlvr_jax.types.hyperparameters import Bound, Count, NonNegative, NonNegativeInt

__all__ = ["ADDRESS", "KEY", "server"]

ADDRESS = "OPENAI_BASE_URL"
KEY = "OPENAI_API_KEY"
"""Names of environment variables, as in OpenAI's client."""

LARGEST = 4 << 20
"""Largest size of a reply (bytes)."""

LONGEST_WAIT = 30.0
"""Longest time between two calls (seconds)."""

_AGAIN = {408, 409, 425, 429, 500, 502, 503, 504, 529}


def server(
    model: str,
    *,
    temperature: NonNegative = 0.0,
    tokens: Count = 512,
    at_once: Count = 32,
    seconds: Bound = 60.0,
    retries: NonNegativeInt = 4,
    wait: NonNegative = 0.5,
    environment: Mapping[str, str] = os.environ,
) -> Call:
    """Sends questions to a server in parallel, over connections that stay open.

    Time-outs, lost connections and their statuses (429, 5xx) are retried after `wait`, 2 `wait`,
    4 `wait` … seconds, or after the time that the server requests. Other statuses and other replies
    (an error page) are failures at once. The number of the attempt is the seed of the reply.

    Args:
      model: name of the model on the server.
      temperature: sampling temperature.
      tokens: largest number of tokens of a reply.
      at_once: number of simultaneous questions.
      seconds: time limit of a call (seconds).
      retries: largest number of repeated calls for one question.
      wait: time before the first repeated call (seconds).
      environment: has `OPENAI_BASE_URL` (such as http://127.0.0.1:8000/v1) and, if the server
        requires it, `OPENAI_API_KEY`.
    Raises:
      ValueError: a number is out of range, the address is not http(s), or the key is not valid in a
        header.
    """
    numbers = {"temperature": temperature, "tokens": tokens, "at_once": at_once}
    numbers |= {"seconds": seconds, "retries": retries, "wait": wait}
    check_arguments(server, numbers)
    if not model:
        raise ValueError("server: model must be a name, got ''")
    address = environment.get(ADDRESS, "").rstrip("/")
    parts = address_parts(address)
    if parts is None:
        # The address may contain a password, so it is not repeated.
        raise ValueError(
            f"server: {ADDRESS} must be an address like http://127.0.0.1:8000/v1 in the"
            f" environment, got {'another text' if address else 'none'}"
        )
    headers = {"Content-Type": "application/json"}
    if key := environment.get(KEY):
        # The error of a header would print the key.
        if not VISIBLE.fullmatch(key):
            raise ValueError(
                f"server: {KEY} must be visible ASCII characters in the environment, got a text"
                f" with another character, such as the end of a line"
            )
        headers["Authorization"] = f"Bearer {key}"
    pool = Connections(parts, seconds, LARGEST)
    body = {"model": model, "temperature": temperature, "max_tokens": tokens}

    def reply(question: Question, spending: Spending) -> Reply:
        request = {**body, "messages": list(question.messages), "seed": question.attempt}
        sent = json.dumps(request).encode()
        made, failure = 0, OVER_BUDGET
        for again in range(retries + 1):
            if not spending.take():
                return Reply(None, failure, calls=made)
            made += 1
            pause = wait * 2**again
            try:
                status, found, text = pool.exchange(
                    "POST", f"{parts.path}/chat/completions", sent, headers
                )
            except TimeoutError:
                failure = "time-out"
            except LOST:
                failure = "no connection"
            else:
                if status == 200:
                    read = _read(text)
                    spending.spend(read.tokens)
                    return read._replace(calls=made)
                failure = f"status {status}"
                if status not in _AGAIN:
                    break
                pause = max(pause, _asked_for(found))
            if again < retries:
                time.sleep(min(pause, LONGEST_WAIT))
        return Reply(None, failure, calls=made)

    identity = json.dumps(["server", address, body], sort_keys=True)
    return one_by_one(reply, identity, at_once)


def _asked_for(headers: Headers) -> float:
    """Time until the next call that a server requests (seconds)."""
    try:
        return max(0.0, float(headers.get("Retry-After", "0")))
    except ValueError:
        return 0.0


def _read(text: str) -> Reply:
    """The reply in a server's text."""
    try:
        found = json.loads(text)
        words = found["choices"][0]["message"]["content"]
        used = found.get("usage") or {}
        tokens = used.get("total_tokens", 0)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return Reply(None, "no chat completion")
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        tokens = 0
    if not isinstance(words, str):
        return Reply(None, "no words", tokens)
    return Reply(words, tokens=tokens)
