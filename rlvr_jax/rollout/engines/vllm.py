"""vLLM as an engine, over the HTTP interface of its server.

    VLLM_SERVER_DEV_MODE=1 python -m vllm.entrypoints.openai.api_server --model FOLDER \\
        --enable-scale-out --logprobs-mode processed_logprobs

`--enable-scale-out` opens the interface of token ids, `VLLM_SERVER_DEV_MODE=1` that of weights.
Source: vLLM 0.32, https://docs.vllm.ai.
"""

import base64
import contextlib
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

import numpy as np

from rlvr_jax.connections import LOST, Connections, address_parts
from rlvr_jax.rollout.engines.engine import Decoding, Done, EngineError, Generated

START = (
    "VLLM_SERVER_DEV_MODE=1 python -m vllm.entrypoints.openai.api_server --model FOLDER"
    " --enable-scale-out --logprobs-mode processed_logprobs"
)
"""How a server is started that this engine can use."""

LARGEST = 64 << 20
"""Largest size of a reply (bytes)."""

_GENERATE = "/inference/v1/generate"
_ADAPTER = "rlvr_jax"
"""Name of the adapter on the server."""


class VllmServer:
    """A vLLM server as an engine.

    Args:
      address: such as http://127.0.0.1:8000.
      seconds: time limit of one request (seconds).
      at_once: number of simultaneous requests; the server batches them.
      meaning: the server's `--logprobs-mode`, "processed" or "raw".
    Raises:
      ValueError: the address is not http(s).
      EngineError: there is no server, or one without the interfaces of token ids and weights.
    """

    def __init__(
        self,
        address: str,
        seconds: float = 600.0,
        at_once: int = 64,
        meaning: Literal["processed", "raw"] = "processed",
    ):
        parts = address_parts(address.rstrip("/"))
        if parts is None:
            raise ValueError(
                f"--engine-address must be like http://127.0.0.1:8000, got {address!r}"
            )
        self._parts, self._seconds, self._at_once = parts, seconds, at_once
        self._connections = Connections(parts, seconds, LARGEST)
        self._meaning: Literal["processed", "raw"] = meaning
        # Names the adapter, once there is one; without it the server uses the base.
        self._of_model: dict[str, str] = {}
        # Both interfaces are there before anything is sampled.
        self._checked("GET", "/is_paused", None)
        self._generated([0], {"max_tokens": 1, "logprobs": 0})

    @property
    def meaning(self) -> Literal["processed", "raw"]:
        """The distribution of reported log-probs."""
        return self._meaning

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        temperatures: Sequence[float],
        decoding: Decoding,
        done: Done | None = None,
    ) -> list[Generated]:
        """See `Engine.generate`."""
        cuts = decoding.sampling
        shared = {
            "max_tokens": decoding.tokens,
            "top_k": cuts.top_k or -1,
            "top_p": cuts.top_p,
            "min_p": cuts.min_p,
            "stop_token_ids": list(decoding.stop_tokens),
            "ignore_eos": True,  # the stop tokens are all of `decoding`
            "detokenize": False,
            "logprobs": 0,
        }

        def one(place: int, prompt: Sequence[int], seed: int, temperature: float) -> Generated:
            own = {"temperature": temperature, "seed": seed}
            choice = self._generated(prompt, shared | own)["choices"][0]
            try:
                tokens = [int(token) for token in choice["token_ids"]]
                logp = [float(each["logprob"]) for each in choice["logprobs"]["content"]]
                stopped = choice["finish_reason"] == "stop"
                routes = _routes(choice.get("routed_experts"))
            except (KeyError, IndexError, TypeError, ValueError) as error:
                raise self._error("token ids with log-probs", json.dumps(choice)) from error
            if not 0 < len(tokens) == len(logp) <= decoding.tokens:
                raise self._error(
                    f"1 to {decoding.tokens} tokens, each with a log-prob",
                    f"{len(tokens)} tokens and {len(logp)} log-probs",
                )
            if not all(map(math.isfinite, logp)):
                raise self._error("finite log-probs", str(logp))
            if stopped and tokens[-1] not in decoding.stop_tokens:
                raise self._error("a stop token at the end of a response", str(tokens[-1]))
            found = Generated(tokens, logp, stopped, routes)
            if done is not None:
                done(place, found)
            return found

        with ThreadPoolExecutor(self._at_once) as threads:
            return list(threads.map(one, range(len(prompts)), prompts, seeds, temperatures))

    def score(self, sequences: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """See `Engine.score`."""
        how = {"max_tokens": 1, "prompt_logprobs": 0, "temperature": 1.0, "detokenize": False}

        def one(sequence: Sequence[int]) -> np.ndarray:
            found: Any = self._generated(sequence, how).get("prompt_logprobs")
            try:
                values = [
                    float(entry[str(token)]["logprob"])
                    for token, entry in zip(sequence[1:], found[1:], strict=True)
                ]
            except (KeyError, TypeError, ValueError) as error:
                raise self._error("a log-prob of each prompt token", json.dumps(found)) from error
            return np.array(values)

        with ThreadPoolExecutor(self._at_once) as threads:
            return list(threads.map(one, sequences))

    def load(self, folder: Path) -> None:
        """See `Engine.load`. Running requests end first; the prefix cache is dropped."""
        paths = {"weights_path": str(folder.absolute())}
        with self._paused():
            self._checked("POST", "/collective_rpc", {"method": "reload_weights", "kwargs": paths})

    def load_adapter(self, folder: Path) -> None:
        """See `Engine.load_adapter`. The server is started with `--enable-lora` and with the
        environment variable VLLM_ALLOW_RUNTIME_LORA_UPDATING."""
        how = {"lora_name": _ADAPTER, "lora_path": str(folder.absolute()), "load_inplace": True}
        with self._paused():
            self._reply("POST", "/v1/load_lora_adapter", how)
        self._of_model = {"model": _ADAPTER}

    @contextlib.contextmanager
    def _paused(self) -> Iterator[None]:
        """No request runs, and the prefix cache is dropped before the next one."""
        self._checked("POST", "/pause?" + urlencode({"mode": "wait"}), None)
        try:
            yield
            dropped = self._checked("POST", "/reset_prefix_cache", None)
            if not dropped.get("success"):
                raise self._error("the prefix cache to be dropped", json.dumps(dropped))
        finally:
            self._checked("POST", "/resume", None)

    def _generated(self, tokens: Sequence[int], how: Mapping[str, Any]) -> dict[str, Any]:
        body = {"token_ids": list(map(int, tokens)), "sampling_params": dict(how), "stream": False}
        body |= self._of_model
        return self._checked("POST", _GENERATE, body)

    def _checked(self, method: str, path: str, body: Any) -> dict[str, Any]:
        """The JSON object of a reply.

        Raises:
          EngineError: as `_reply`, or another text.
        """
        text = self._reply(method, path, body)
        try:
            found = json.loads(text or "{}")
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise self._error("a JSON object", text)
        return found

    def _reply(self, method: str, path: str, body: Any) -> str:
        """The text of a reply.

        Raises:
          EngineError: no reply, or another status than 200.
        """
        sent = b"" if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if sent else {}
        place = f"{self._parts.path}{path}"
        try:
            status, _, text = self._connections.exchange(method, place, sent, headers)
        except TimeoutError:
            raise self._error(
                f"a reply within {self._seconds:g} s (--engine-seconds)", "none"
            ) from None
        except LOST as error:
            got = f"no connection ({type(error).__name__}); start it by {START}"
            raise self._error("a reply", got) from None
        if status == 404:
            raise self._error(
                f"the path {path.partition('?')[0]}", f"status 404; start it by {START}"
            )
        if status != 200:
            raise self._error(f"a reply to {path.partition('?')[0]}", f"status {status}: {text}")
        return text

    def _error(self, wanted: str, got: str) -> EngineError:
        where = f"{self._parts.hostname}:{self._parts.port or ''}"
        return EngineError(f"engine vllm at {where} must return {wanted}, got {got[:200]}")


def _routes(text: str | None) -> np.ndarray | None:
    """The array of a reply, an .npy file in base64.

    Raises:
      ValueError: another text.
    """
    if text is None:
        return None
    return np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False)
