"""Replies to requests, as they are stored until a client fetches them."""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from rlvr_jax.server.wire import PROTOBUF

JSON = "application/json"


class Reply(NamedTuple):
    """Content type and body of the reply to a request."""

    kind: str
    body: bytes


def of_json(value: Mapping[str, Any]) -> Reply:
    """A reply of JSON."""
    return Reply(JSON, json.dumps(value, allow_nan=False).encode())


def of_arrays(body: bytes) -> Reply:
    """A reply that is a protocol buffer."""
    return Reply(PROTOBUF, body)


def failed(sentence: str, category: str) -> Reply:
    """The reply to a request that failed by the client's ("user") or the server's fault."""
    return of_json({"error": sentence, "category": category})


def finite(metrics: Mapping[str, float]) -> dict[str, float]:
    """The metrics that are numbers; JSON has no others."""
    return {name: value for name, value in metrics.items() if math.isfinite(value)}
