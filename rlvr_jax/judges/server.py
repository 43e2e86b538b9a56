"""A server that speaks OpenAI's chat completions, whoever made it (vLLM, llama.cpp, a company).

Address and key come from the environment and are written nowhere.
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

from rlvr_jax.judges.calls import OVER_BUDGET, Call, Question, Reply, Spending, one_by_one

__all__ = ["ADDRESS", "KEY", "server"]

ADDRESS = "OPENAI_BASE_URL"
KEY = "OPENAI_API_KEY"
"""Names in the environment, those of OpenAI's own client."""

LARGEST = 4 << 20
"""Bytes of a reply that are read."""

LONGEST_WAIT = 30.0
"""Seconds between two calls, whatever a server asks for."""

_VISIBLE = re.compile("[!-~]+")
_AGAIN = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_LOST = (OSError, http.client.HTTPException)


def server(
    model: str,
    *,
    temperature: float = 0.0,
    tokens: int = 512,
    at_once: int = 32,
    seconds: float = 60.0,
    retries: int = 4,
    wait: float = 0.5,
    environment: Mapping[str, str] = os.environ,
) -> Call:
    """Asks a server, several questions at a time over connections that stay open.

    A time-out, a lost connection and the statuses that say so (429, 5xx) are tried again, after
    `wait`, 2 `wait`, 4 `wait` … seconds, or as long as the server asks for. Other statuses, and
    what is no reply of this kind (an error page), are failures at once. The number of the try is
    the seed of the reply.

    Args:
      model: name on the server.
      temperature: of its sampling.
      tokens: of a reply at most.
      at_once: questions that are under way at a time.
      seconds: until a call is given up, whether nothing comes or too slowly.
      retries: calls that are made again for one question, at most.
      wait: seconds before the first of them.
      environment: holds `OPENAI_BASE_URL` (such as http://127.0.0.1:8000/v1) and, where the server
        wants one, `OPENAI_API_KEY`.
    Raises:
      ValueError: numbers out of range; no address, or one that is no http(s); a key that no header
        can hold.
    """
    for name, value, least in (
        ("temperature", temperature, 0),
        ("retries", retries, 0),
        ("wait", wait, 0),
        ("tokens", tokens, 1),
        ("at_once", at_once, 1),
    ):
        if not value >= least:
            raise ValueError(f"server: {name} must be at least {least}, got {value}")
    if not seconds > 0:
        raise ValueError(f"server: seconds must be positive, got {seconds}")
    if not model:
        raise ValueError("server: model must be a name, got ''")
    address = environment.get(ADDRESS, "").rstrip("/")
    parts = _parts(address)
    if parts is None:
        # The address may hold a password: it is not repeated.
        raise ValueError(
            f"server: {ADDRESS} must be an address like http://127.0.0.1:8000/v1 in the"
            f" environment, got {'another text' if address else 'none'}"
        )
    headers = {"Content-Type": "application/json"}
    if key := environment.get(KEY):
        # What a header cannot hold would be told with the key in it.
        if not _VISIBLE.fullmatch(key):
            raise ValueError(
                f"server: {KEY} must be visible ASCII characters in the environment, got a text"
                f" with another one, such as the end of a line"
            )
        headers["Authorization"] = f"Bearer {key}"
    pool = _Connections(parts, seconds)
    body = {"model": model, "temperature": temperature, "max_tokens": tokens}

    def reply(question: Question, spending: Spending) -> Reply:
        told = json.dumps(
            {**body, "messages": list(question.messages), "seed": question.attempt}
        ).encode()
        made, failure = 0, OVER_BUDGET
        for again in range(retries + 1):
            if not spending.take():
                return Reply(None, failure, calls=made)
            made += 1
            pause = wait * 2**again
            try:
                status, found, text = pool.post(f"{parts.path}/chat/completions", told, headers)
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
    """An address in parts; None if nothing can be reached there."""
    try:
        parts = urlsplit(address)
        # Both raise where they are no host and no port.
        reached = parts.port != 0 and (parts.hostname or "").encode("idna")
    except ValueError:
        return None
    known = parts.scheme in ("http", "https") and _VISIBLE.fullmatch(address)
    return parts if known and reached else None


class _Connections:
    """Open connections to one server; a thread takes one, or makes it, and gives it back."""

    def __init__(self, parts: Any, seconds: float):
        self._parts, self._seconds = parts, seconds
        self._idle: list[tuple[int, http.client.HTTPConnection]] = []
        self._lock = threading.Lock()
        weakref.finalize(self, _close, self._idle)

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, Headers, str]:
        """Status, headers and text of a reply.

        Raises:
          TimeoutError: it is not there in time.
          OSError, HTTPException: there is none.
        """
        end = time.monotonic() + self._seconds
        with self._lock:
            owner, kept = self._idle.pop() if self._idle else (0, None)
        if kept is not None and owner != os.getpid():
            kept.close()  # a copy: what a process had open when it was forked is still its own
        elif kept is not None:
            try:
                return self._exchange(kept, path, body, headers, end)
            except TimeoutError:
                raise
            except _LOST:
                # The server has closed what it had left open; that says nothing about it.
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
            pieces, size = [], 0
            while piece := response.read1(1 << 16):
                pieces.append(piece)
                size += len(piece)
                if size > LARGEST:
                    raise http.client.HTTPException(f"more than {LARGEST} bytes")
            if response.length == 0:
                response.close()  # Python 3.11 leaves it open, and so the connection busy
            whole = response.isclosed() and not response.length and not response.will_close
            text = b"".join(pieces).decode("utf-8", "replace")
            return response.status, response.headers, text
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
    """A reply of which all is there by some time: a server that sends a byte a minute is stopped,
    in its headers, too."""

    def __init__(self, sock, *others, end: float, **named):
        super().__init__(sock, *others, **named)
        self.fp = io.BufferedReader(_Timed(self.fp.detach(), sock, end))


class _Timed(io.RawIOBase):
    """What a socket gives until some time."""

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
    """Seconds that a server wants to be left alone."""
    try:
        return max(0.0, float(headers.get("Retry-After", "0")))
    except ValueError:
        return 0.0


def _read(text: str) -> Reply:
    """The words of a reply of the server."""
    try:
        told = json.loads(text)
        words = told["choices"][0]["message"]["content"]
        used = told.get("usage") or {}
        tokens = used.get("total_tokens", 0)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return Reply(None, "no chat completion")
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        tokens = 0
    if not isinstance(words, str):
        return Reply(None, "no words", tokens)
    return Reply(words, tokens=tokens)
