"""The Tinker protocol over HTTP, by the server of the standard library.

A connection has a thread that checks a request and waits for its reply. Few clients with long
requests need no more, and the library has no further dependency. `tinker` itself is not imported.
"""

import hashlib
import hmac
import sys
import threading
import traceback
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from rlvr_jax.server.actions import CONNECTIONS, GET, POST, Action
from rlvr_jax.server.refusal import Refused
from rlvr_jax.server.reply import Reply, of_json
from rlvr_jax.server.service import Service

ROOT = "/api/v1/"
_IDLE_SECONDS = 90.0


class Server(ThreadingHTTPServer):
    """An HTTP server of a service.

    Args:
      address: host and port; port 0 takes a free one.
      tokens: keys of clients. Each key is a client, which sees only what it made.
      largest: bytes of the largest body.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, address: tuple[str, int], service: Service, tokens: Iterable[str], largest: int
    ):
        self.service, self.largest = service, largest
        self._digests = [hashlib.sha256(token.encode()).digest() for token in tokens]
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__(address, _Handler)

    def owner(self, token: str) -> str | None:
        """The client of a key; None for another key."""
        seen = hashlib.sha256(token.encode("utf-8", "replace")).digest()
        found = [digest for digest in self._digests if hmac.compare_digest(digest, seen)]
        return found[0].hex()[:16] if found else None

    def process_request(self, request: Any, client_address: Any) -> None:
        """Starts the thread of a connection; too many are closed."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serves a connection until it ends."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Prints errors, but for those of a client that left."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "rlvr_jax"
    sys_version = ""
    timeout = _IDLE_SECONDS
    server: Server

    def do_GET(self) -> None:
        self._answer(GET)

    def do_POST(self) -> None:
        self._answer(POST)

    def log_message(self, format: str, *args: Any) -> None:
        """No line per request."""

    def _answer(self, table: Mapping[str, Action]) -> None:
        try:
            reply, status = self._reply(table), 200
        except Refused as error:
            reply, status = of_json({"detail": str(error)}), error.status
        except (ConnectionError, TimeoutError):
            self.close_connection = True
            return
        except Exception as error:
            traceback.print_exc()
            self.close_connection = True  # the body may be unread
            sentence = f"the server failed: {type(error).__name__}: {error}"
            reply, status = of_json({"detail": sentence}), 500
        self.send_response(status)
        self.send_header("Content-Type", reply.kind)
        self.send_header("Content-Length", str(len(reply.body)))
        if status in (401, 411, 413):
            # The body was not read, so the connection cannot go on.
            self.close_connection = True
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(reply.body)

    def _reply(self, table: Mapping[str, Action]) -> Reply:
        path = urlsplit(self.path).path
        if path == f"{ROOT}healthz" and table is GET:
            return of_json({"status": "ok"})
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        owner = self.server.owner(self.headers.get("X-API-Key") or bearer)
        if owner is None:
            raise Refused("X-API-Key must be the token of this server, got another or none", 401)
        body = self._body()
        words = [unquote(word) for word in path.removeprefix(ROOT).split("/")]
        for pattern, action in table.items():
            parts = pattern.split("/")
            if len(parts) == len(words) and path.startswith(ROOT):
                pairs = list(zip(parts, words, strict=True))
                if all(part in ("*", word) for part, word in pairs):
                    given = [word for part, word in pairs if part == "*"]
                    return action(self.server.service, owner, body, *given)
        raise Refused(
            f"the path must be one of this server (docs/how_to/tinker.md), got {self.command}"
            f" {path[:120]}",
            404,
        )

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding"):
            raise Refused("the request must have a Content-Length, got a body in chunks", 411)
        if self.headers.get("Content-Encoding", "identity") != "identity":
            raise Refused("the body must not be compressed, got Content-Encoding", 415)
        size = self.headers.get("Content-Length", "0")
        if not (size.isascii() and size.isdecimal()):
            raise Refused(f"Content-Length must be a number, got {size!r:.40}", 411)
        if int(size) > self.server.largest:
            raise Refused(
                f"the body must have at most {self.server.largest} bytes, got {size}; send fewer or"
                " shorter datums, or start the server with a larger --body-megabytes",
                413,
            )
        body = self.rfile.read(int(size))
        if len(body) < int(size):
            raise Refused(f"the body must have its {size} bytes, got {len(body)}", 411)
        return body
