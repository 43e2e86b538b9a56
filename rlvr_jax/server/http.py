"""The Tinker protocol over HTTP, by the server of the standard library.

A connection has a thread that checks a request and waits for its reply. Few clients with long
requests need no more, and the library has no further dependency. `tinker` itself is not imported.
"""

import hashlib
import hmac
import json
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from rlvr_jax.server import checkpoints
from rlvr_jax.server.refusal import Refused
from rlvr_jax.server.reply import Reply, of_json
from rlvr_jax.server.service import Service
from rlvr_jax.server.storage import Record
from rlvr_jax.server.training_run import TrainingRun, read_spec
from rlvr_jax.server.wire import read_address

ROOT = "/api/v1/"
WARNING = (
    "rlvr_jax trains adapters of attention and MLP matrices; train_unembed has no effect. Rank 0"
    " trains all weights"
)
"""Sentence that the SDK logs when a session begins."""

_POLL_SECONDS = 30.0
_IDLE_SECONDS = 90.0
_CONNECTIONS = 512
_CHUNK_BYTES = 4_000_000


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
        self._free = threading.BoundedSemaphore(_CONNECTIONS)
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
        """Says nothing about a client that left, and prints other errors."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "rlvr_jax"
    sys_version = ""
    timeout = _IDLE_SECONDS
    server: Server

    def do_GET(self) -> None:
        self._answer(_GET)

    def do_POST(self) -> None:
        self._answer(_POST)

    def log_message(self, format: str, *args: Any) -> None:
        """No line per request."""

    def _answer(self, table: Mapping[str, Callable[..., Reply]]) -> None:
        try:
            reply, status = self._reply(table), 200
        except Refused as error:
            reply, status = of_json({"detail": str(error)}), error.status
        self.send_response(status)
        self.send_header("Content-Type", reply.kind)
        self.send_header("Content-Length", str(len(reply.body)))
        if status in (401, 411, 413):
            # The body was not read, so the connection cannot go on.
            self.close_connection = True
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(reply.body)

    def _reply(self, table: Mapping[str, Callable[..., Reply]]) -> Reply:
        path = urlsplit(self.path).path
        if path == f"{ROOT}healthz" and table is _GET:
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
        raise Refused(f"{self.command} {path[:120]} is not here; see docs/how_to/tinker.md", 404)

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


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Refused("the body must be an object of JSON, got other bytes")
    return value


def _seq(body: Mapping[str, Any], name: str = "seq_id") -> int:
    value = body.get(name)
    if type(value) is not int or not 0 <= value < 2**31:
        raise Refused(f"{name} must be a number of a request, got {value!r:.80}")
    return value


def _word(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise Refused(f"{name} must be a text, got {value!r:.80}")
    return value


def _config(service: Service, owner: str, body: bytes) -> Reply:
    return of_json(
        {
            "use_pyqwest_transport": False,
            "fwdbwd_max_chunk_bytes_count": _CHUNK_BYTES,
            "sample_max_concurrent_requests": _CONNECTIONS // 2,
        }
    )


def _nothing(service: Service, owner: str, body: bytes) -> Reply:
    return of_json({})


def _telemetry(service: Service, owner: str, body: bytes) -> Reply:
    return of_json({"status": "accepted"})


def _capabilities(service: Service, owner: str, body: bytes) -> Reply:
    models = [
        {
            "model_name": name,
            "max_context_length": base.model.config.max_positions,
            "trainable": True,
            "sampleable": True,
        }
        for name, base in service.bases.items()
    ]
    return of_json({"supported_models": models})


def _create_session(service: Service, owner: str, body: bytes) -> Reply:
    session = service.create_session(owner)
    return of_json({"type": "create_session", "session_id": session, "warning_message": WARNING})


def _heartbeat(service: Service, owner: str, body: bytes) -> Reply:
    service.heartbeat(owner, _word(_object(body), "session_id"))
    return of_json({"type": "session_heartbeat"})


def _finish(service: Service, owner: str, body: bytes, session: str) -> Reply:
    service.finish_session(owner, session)
    return of_json({})


def _promised(request_id: str, model_id: str) -> Reply:
    return of_json({"request_id": request_id, "model_id": model_id})


def _create_model(service: Service, owner: str, body: bytes) -> Reply:
    given = _object(body)
    model_id = f"{_word(given, 'session_id')}:train:{_seq(given, 'model_seq_id')}"
    service.check_base(read_spec(given, model_id).base)
    request = service.submit(owner, model_id, Record(0, "create_model", body))
    return _promised(request, model_id)


def _load_weights(service: Service, owner: str, body: bytes) -> Reply:
    given = _object(body)
    address = checkpoints.parse_address(given.get("path"))
    spec = checkpoints.stored_spec(service.file_of(owner, address))
    service.check_base(spec.base)
    if given.get("model_id") is not None:
        model_id, seq = _word(given, "model_id"), _seq(given)
    else:
        model_id = f"{_word(given, 'session_id')}:train:{_seq(given, 'model_seq_id')}"
        seq = 0
    request = service.submit(owner, model_id, Record(seq, "load_weights", body))
    return _promised(request, model_id)


def _forward_backward(service: Service, owner: str, body: bytes) -> Reply:
    model_id, seq = read_address(body)
    request = service.submit(owner, model_id, Record(seq, "forward_backward", body))
    return _promised(request, model_id)


def _of_model(kind: str) -> Callable[..., Reply]:
    def action(service: Service, owner: str, body: bytes) -> Reply:
        given = _object(body)
        model_id = _word(given, "model_id")
        return _promised(service.submit(owner, model_id, Record(_seq(given), kind, body)), model_id)

    return action


def _create_sampler(service: Service, owner: str, body: bytes) -> Reply:
    given = _object(body)
    session, number = _word(given, "session_id"), _seq(given, "sampling_session_seq_id")
    name = service.create_sampler(owner, session, number, given)
    return of_json({"type": "create_sampling_session", "sampling_session_id": name})


def _sampler(service: Service, owner: str, body: bytes, sampler: str) -> Reply:
    base, path = service.sampler_source(owner, sampler)
    return of_json({"sampler_id": sampler, "base_model": base, "model_path": path})


def _sample(service: Service, owner: str, body: bytes) -> Reply:
    request, samples = service.sample(owner, _object(body))
    ids = [f"{request}:{number}" for number in range(samples)]
    return of_json({"request_id": request, "sample_sequence_ids": ids})


def _retrieve(service: Service, owner: str, body: bytes) -> Reply:
    request = _word(_object(body), "request_id")
    reply = service.retrieve(owner, request, _POLL_SECONDS)
    if reply is None:
        return of_json({"type": "try_again", "request_id": request, "queue_state": "active"})
    return reply


def _cancel(service: Service, owner: str, body: bytes) -> Reply:
    service.cancel(owner, _word(_object(body), "request_id"))
    return of_json({})


def _info(service: Service, owner: str, body: bytes) -> Reply:
    model_id = _word(_object(body), "model_id")
    run = service.training_run(owner, model_id)
    spec = _spec(run)
    about = {"model_name": spec.base, "tokenizer_id": service.tokenizer_of(spec.base)}
    return of_json(
        {
            "type": "get_info",
            "model_data": about,
            "model_id": model_id,
            "model_name": spec.base,
            "is_lora": spec.rank > 0,
            "lora_rank": spec.rank or None,
        }
    )


def _spec(run: TrainingRun) -> Any:
    if run.spec is None:
        raise Refused(f"model {run.model_id} must be made first, but is not yet", 404)
    return run.spec


def _weights_info(service: Service, owner: str, body: bytes) -> Reply:
    address = checkpoints.parse_address(_object(body).get("tinker_path"))
    spec = checkpoints.stored_spec(service.file_of(owner, address))
    return of_json(
        {
            "base_model": spec.base,
            "is_lora": spec.rank > 0,
            "lora_rank": spec.rank or None,
            "train_unembed": False,
            "train_mlp": spec.mlp,
            "train_attn": spec.attention,
        }
    )


def _checkpoints(service: Service, owner: str, body: bytes, model_id: str) -> Reply:
    folder = service.folder_of(owner, model_id)
    return of_json({"checkpoints": list(checkpoints.listed(folder, model_id))})


_GET: Mapping[str, Callable[..., Reply]] = {
    "get_server_capabilities": _capabilities,
    "samplers/*": _sampler,
    "training_runs/*/checkpoints": _checkpoints,
}
_POST: Mapping[str, Callable[..., Reply]] = {
    "client/config": _config,
    "client/dynamic_config": _nothing,
    "create_session": _create_session,
    "session_heartbeat": _heartbeat,
    "sessions/*/finish": _finish,
    "create_model": _create_model,
    "get_info": _info,
    "forward_backward": _forward_backward,
    "optim_step": _of_model("optim_step"),
    "save_weights": _of_model("save_weights"),
    "save_weights_for_sampler": _of_model("save_weights_for_sampler"),
    "load_weights": _load_weights,
    "create_sampling_session": _create_sampler,
    "asample": _sample,
    "retrieve_future": _retrieve,
    "cancel_future": _cancel,
    "weights_info": _weights_info,
    "telemetry": _telemetry,
}
