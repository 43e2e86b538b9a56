"""Connections to an HTTP server that stay open, with a time limit for every whole reply."""

import http.client
import io
import os
import re
import ssl
import threading
import time
import weakref
from collections.abc import Iterable, Mapping
from email.message import Message as Headers
from functools import partial
from urllib.parse import SplitResult, urlsplit

VISIBLE = re.compile("[!-~]+")
"""Characters of addresses and keys."""

LOST = (OSError, http.client.HTTPException)
"""Errors of a reply that does not come."""


def address_parts(address: str) -> SplitResult | None:
    """The address of a server in parts; None if it is not valid."""
    try:
        parts = urlsplit(address)
        # Both raise if they are not a host and a port.
        reached = parts.port != 0 and (parts.hostname or "").encode("idna")
    except ValueError:
        return None
    known = parts.scheme in ("http", "https") and VISIBLE.fullmatch(address)
    return parts if known and reached else None


class Connections:
    """Open connections to one server; a thread takes or makes one, and returns it."""

    def __init__(self, parts: SplitResult, seconds: float, largest: int):
        self._parts, self._seconds, self._largest = parts, seconds, largest
        self._idle: list[tuple[int, http.client.HTTPConnection]] = []
        self._lock = threading.Lock()
        weakref.finalize(self, _close, self._idle)

    def exchange(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> tuple[int, Headers, str]:
        """Status, headers and text of the reply to a request.

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
                return self._sent(idle, method, path, body, headers, end)
            except TimeoutError:
                raise
            except LOST:
                # The server may close an idle connection, which is not a failure.
                pass
        return self._sent(self._new(), method, path, body, headers, end)

    def _new(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname, self._parts.port
        if self._parts.scheme == "https":
            secure = ssl.create_default_context()
            return http.client.HTTPSConnection(host, port, timeout=self._seconds, context=secure)
        return http.client.HTTPConnection(host, port, timeout=self._seconds)

    def _sent(self, connection, method, path, body, headers, end):
        whole = False
        try:
            if connection.sock is None:
                connection.connect()
            if connection.sock is not None:
                connection.sock.settimeout(_until(end))
            connection.response_class = partial(_Response, end=end)
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            content = bytearray()
            while chunk := response.read1(1 << 16):
                content += chunk
                if len(content) > self._largest:
                    raise http.client.HTTPException(f"more than {self._largest} bytes")
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
