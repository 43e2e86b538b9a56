"""Requests of the Tinker protocol by the standard library, as its SDK sends them."""

import contextlib
import http.client
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlvr_jax import policy, tasks
from rlvr_jax.server import Base, Limits, Server, Service
from rlvr_jax.server.protobuf import block, decimal, double, entries, entry, fields, integer, text
from rlvr_jax.server.wire import PROTOBUF, Datum

TOKEN, OTHER_TOKEN = "tml-" + 20 * "a", "tml-" + 20 * "b"
PROMPT = [3, 9, 4, 15, 108]
"""Tokens of a prompt of brackets."""


def brackets() -> Base:
    """The small model of the task brackets."""
    folder = tasks.load("brackets").base_model
    model, params = policy.load(folder)
    return Base("brackets", model, params, policy.tokenizer(folder))


def datums(count: int, seed: int = 0, **sent: Any) -> list[Datum]:
    """Random sequences of 5 to 14 tokens.

    Args:
      sent: (rng, length) -> array, by the name of the input.
    """
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        size = int(rng.integers(5, 15))
        tokens = rng.integers(3, 15, size + 1)
        inputs = {name: np.asarray(draw(rng, size)) for name, draw in sent.items()}
        inputs["target_tokens"] = tokens[1:]
        made.append(Datum(tokens[:-1].astype(np.int32), inputs))
    return made


def supervised(count: int, seed: int = 0) -> list[Datum]:
    """Datums of cross_entropy, which counts all but the first three targets."""
    return datums(count, seed, weights=lambda rng, size: (np.arange(size) > 2).astype(np.float32))


def sampled(count: int, seed: int = 0) -> list[Datum]:
    """Datums with log-probs and advantages, whose first three targets are the prompt."""

    def logprobs(rng, size):
        return np.where(np.arange(size) > 2, -rng.uniform(0.1, 3, size), 0).astype(np.float32)

    def advantages(rng, size):
        return np.where(np.arange(size) > 2, rng.normal(), 0).astype(np.float32)

    return datums(count, seed, logprobs=logprobs, advantages=advantages)


def forward_backward(
    model_id: str,
    seq: int,
    data: Sequence[Datum],
    loss: str,
    config: Mapping[str, float] | None = None,
    forward_only: bool = False,
) -> bytes:
    """The body of `forward_backward`."""
    body = text(1, model_id) + integer(2, seq)
    for datum in data:
        chunk = block(1, block(1, np.asarray(datum.tokens, "<i4").tobytes()))
        tensors = {name: _tensor(array) for name, array in datum.inputs.items()}
        body += block(3, block(1, chunk) + entries(2, tensors))
    body += text(4, loss)
    body += entries(7, {name: decimal(1, value) for name, value in (config or {}).items()})
    return body + (integer(6, 1) if forward_only else b"")


def _tensor(array: np.ndarray) -> bytes:
    whole = array.dtype.kind == "i"
    data = array.astype("<i8" if whole else "<f4").tobytes()
    return block(1, data) + integer(3, 2 if whole else 1) + integer(4, array.size)


def read_outputs(body: bytes) -> tuple[dict[str, float], dict[str, list[np.ndarray]]]:
    """Metrics and arrays of a reply to `forward_backward`."""
    metrics, arrays = {}, {}
    for number, value in fields(memoryview(body)):
        if number == 3:
            name, inner = entry(value)
            metrics[name] = double(inner)
        if number == 2:
            for kind, field in fields(value):
                if kind == 2:
                    name, batched = entry(field)
                    parts = dict(fields(batched))
                    ends = np.frombuffer(parts[2], "<i8") // 4
                    arrays[name] = np.split(np.frombuffer(parts[1], "<f4"), ends[1:-1])
    return metrics, arrays


def read_sequences(body: bytes) -> list[tuple[list[int], np.ndarray, bool]]:
    """Tokens, log-probs and whether it was stopped of each response of a reply to `sample`."""
    found = []
    for number, value in fields(memoryview(body)):
        if number == 1:
            parts = dict(fields(value))
            tokens = np.frombuffer(parts[2], "<i4").tolist()
            found.append((tokens, np.frombuffer(parts[3], "<f4"), parts[1] == 0))
    return found


class Refusal(Exception):
    """A reply with an error; `status` is 200 if its future failed."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


class Client:
    """A client of a server at a port of this machine, with a session and one model."""

    def __init__(self, port: int, token: str = TOKEN):
        self.port, self.token = port, token
        self.session = ""
        self.model_id = ""
        self.seq = 0

    def call(self, path: str, body: Any = None, **headers: str) -> Any:
        """The reply to a POST (GET without a body): an object of JSON, or bytes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        with contextlib.closing(connection):
            kind = PROTOBUF if isinstance(body, bytes) else "application/json"
            content = body if isinstance(body, bytes | None) else json.dumps(body)
            sent = {"X-API-Key": self.token, "Content-Type": kind, **headers}
            connection.request("GET" if body is None else "POST", f"/api/v1/{path}", content, sent)
            reply = connection.getresponse()
            content = reply.read()
        if reply.headers["Content-Type"] == PROTOBUF:
            return content
        value = json.loads(content)
        if reply.status != 200 or "error" in value:
            raise Refusal(reply.status, value.get("detail") or value.get("error"))
        return value

    def result(self, path: str, body: Any) -> Any:
        """The result of a request with a future."""
        return self.retrieve(self.call(path, body)["request_id"])

    def retrieve(self, request_id: str) -> Any:
        """The result of a future."""
        while True:
            try:
                return self.call("retrieve_future", {"request_id": request_id})
            except Refusal as refusal:
                if refusal.status != 408:
                    raise

    def create(self, rank: int = 4, **changed: Any) -> str:
        """Makes a session and a model."""
        asked = {"tags": [], "user_metadata": {}, "sdk_version": "0.38.0"}
        self.session = self.call("create_session", asked)["session_id"]
        body = {"session_id": self.session, "model_seq_id": 0, "base_model": "brackets"}
        body["lora_config"] = {"rank": rank, "seed": 1} if rank else None
        self.model_id = self.result("create_model", body | changed)["model_id"]
        return self.model_id

    def train(self, data: Sequence[Datum], loss: str, config: Any = None, **how: Any) -> Any:
        """Metrics and arrays of `forward_backward`."""
        self.seq += 1
        body = forward_backward(self.model_id, self.seq, data, loss, config, **how)
        return read_outputs(self.result("forward_backward", body))

    def of_model(self, path: str, /, **body: Any) -> Any:
        """The result of another request to the model."""
        self.seq += 1
        return self.result(path, {"model_id": self.model_id, "seq_id": self.seq, **body})

    def step(self, learning_rate: float = 0.01, **adam: float) -> dict[str, float]:
        """Metrics of an optimizer step."""
        adam = {"learning_rate": learning_rate, **adam}
        return self.of_model("optim_step", adam_params=adam)["metrics"]

    def sample(self, sampler: str, seq: int, samples: int = 2, **params: Any) -> Any:
        """Responses to `PROMPT`."""
        body = {
            "sampling_session_id": sampler,
            "seq_id": seq,
            "num_samples": samples,
            "prompt": {"chunks": [{"tokens": PROMPT, "type": "encoded_text"}]},
            "sampling_params": {"max_tokens": 24, "seed": 5, **params},
        }
        return read_sequences(self.result("asample", body))


@contextlib.contextmanager
def serving(folder: Path, base: Base, largest: int = 1 << 20) -> Iterator[int]:
    """A server of this process with two clients; yields its port."""
    service = Service(folder, {base.name: base}, Limits(rows=4))
    server = Server(("127.0.0.1", 0), service, [TOKEN, OTHER_TOKEN], largest)
    service.start()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        service.close()
