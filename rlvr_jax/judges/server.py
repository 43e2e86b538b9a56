"""Calls to a server with OpenAI's chat completions (vLLM, llama.cpp, a company).

Address and key come from environment variables and are never written.
"""

import http.client
import io
import json
import os
import re
import ssl
import threading
import time
import weakref
from collections.abc import Iterable, Mapping
from email.message import Message as Headers
from functools import partial
from typing import Any
from urllib.parse import SplitResult, urlsplit

from rlvr_jax.arguments import check_arguments
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

_VISIBLE = re.compile("[!-~]+")
_AGAIN = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_LOST = (OSError, http.client.HTTPException)


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
    parts = _parts(address)
    if parts is None:
        # The address may contain a password, so it is not repeated.
        raise ValueError(
            f"server: {ADDRESS} must be an address like http://127.0.0.1:8000/v1 in the"
            f" environment, got {'another text' if address else 'none'}"
        )
    headers = {"Content-Type": "application/json"}
    if key := environment.get(KEY):
        # The error of a header would print the key.
        if not _VISIBLE.fullmatch(key):
            raise ValueError(
                f"server: {KEY} must be visible ASCII characters in the environment, got a text"
                f" with another character, such as the end of a line"
            )
        headers["Authorization"] = f"Bearer {key}"
    pool = _Connections(parts, seconds)
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
                status, found, text = pool.post(f"{parts.path}/chat/completions", sent, headers)
            except TimeoutError:
                failure = "time-out"
            except _LOST:
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


def _parts(address: str) -> SplitResult | None:
    """An address in parts; None if it is not valid."""
    try:
        parts = urlsplit(address)
        # Both raise if they are not a host and a port.
        reached = parts.port != 0 and (parts.hostname or "").encode("idna")
    except ValueError:
        return None
    known = parts.scheme in ("http", "https") and _VISIBLE.fullmatch(address)
    return parts if known and reached else None


class _Connections:
    """Open connections to one server; a thread takes or makes one, and returns it."""

    def __init__(self, parts: Any, seconds: float):
        self._parts, self._seconds = parts, seconds
        self._idle: list[tuple[int, http.client.HTTPConnection]] = []
        self._lock = threading.Lock()
        weakref.finalize(self, _close, self._idle)

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, Headers, str]:
        """Status, headers and text of a reply.

        Raises:
          TimeoutError: the reply is late.
          OSError, HTTPException: there is no reply.
        """
        end = time.monotonic() + self._seconds
        with self._lock:
            owner, idle = self._idle.pop() if self._idle else (0, None)
        if idle is not None and owner != os.getpid():
            idle.close()  # a copy: a fork does not own the connections of its parent
        elif idle is not None:
            try:
                return self._exchange(idle, path, body, headers, end)
            except TimeoutError:
                raise
            except _LOST:
                # The server may close an idle connection, which is not a failure.
                pass
        return self._exchange(self._new(), path, body, headers, end)

    def _new(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname, self._parts.port
        if self._parts.scheme == "https":
            secure = ssl.create_default_context()
            return http.client.HTTPSConnection(host, port, timeout=self._seconds, context=secure)
        return http.client.HTTPConnection(host, port, timeout=self._seconds)

    def _exchange(self, connection, path, body, headers, end):
        whole = False
        try:
            if connection.sock is None:
                connection.connect()
            if connection.sock is not None:
                connection.sock.settimeout(_until(end))
            connection.response_class = partial(_Response, end=end)
            connection.request("POST", path, body, dict(headers))
            response = connection.getresponse()
            content = bytearray()
            while chunk := response.read1(1 << 16):
                content += chunk
                if len(content) > LARGEST:
                    raise http.client.HTTPException(f"more than {LARGEST} bytes")
            if response.length == 0:
                response.close()  # Python 3.11 leaves it open, and so the connection busy
            whole = response.isclosed() and not response.length and not response.will_close
            return response.status, response.headers, content.decode("utf-8", "replace")
        finally:
            if whole:
                with self._lock:
                    self._idle.append((os.getpid(), connection))
            else:
                connection.close()


def _close(connections: Iterable[tuple[int, http.client.HTTPConnection]]) -> None:
    for _, connection in connections:
        connection.close()


class _Response(http.client.HTTPResponse):
    """A reply with a time limit for all its bytes, headers included, for slow servers."""

    def __init__(self, sock, *others, end: float, **named):
        super().__init__(sock, *others, **named)
        self.fp = io.BufferedReader(_Timed(self.fp.detach(), sock, end))


class _Timed(io.RawIOBase):
    """The bytes of a socket, with a deadline."""

    def __init__(self, raw: io.RawIOBase, sock, end: float):
        self._raw, self._sock, self._end = raw, sock, end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int | None:
        self._sock.settimeout(_until(self._end))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _until(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


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
