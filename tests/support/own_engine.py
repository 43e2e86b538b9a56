"""An engine in this process, which can have the faults that other engines had.

`serving` puts it behind the HTTP interface of a vLLM server. `python own_engine.py FOLDER PORT`
does so in a process, until it is ended.
"""

import base64
import contextlib
import copy
import io
import json
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax import policy
from rlvr_jax.rollout import Sampling
from rlvr_jax.rollout.engines.engine import Decoding, Generated
from rlvr_jax.rollout.engines.probe import own_scores
from rlvr_jax.types import replace

FIRST = 109
"""A special token of brackets."""


class OwnEngine:
    """The policy of a folder.

    Args:
      fault: "" or one of "stale", "late", "head", "swapped", "transposed" (weights), "first"
        (a token before every prompt), "temperature", "cuts" (reported log-probs), "routes" (none).
    """

    meaning = "processed"

    def __init__(self, folder, fault=""):
        self.fault, self.loads = fault, 0
        self._read(folder)
        self.base = self

    def _read(self, folder):
        model, self.params = policy.load(folder)
        untied = replace(model.config, tied=False)
        self.params.setdefault("unembedding", self.params["embedding"])
        self.model = replace(model, config=untied)

    def load(self, folder):
        before, self.loads = self.params, self.loads + 1
        if self.fault == "stale" and self.loads > 1:
            return
        self._read(folder)
        layers, older = (jax.tree.map(np.array, each["layers"]) for each in (self.params, before))
        for name, leaf in layers.items():
            if self.fault == "late":
                leaf[1:] = older[name][1:]
            if self.fault == "swapped":
                leaf[:] = leaf[::-1].copy()
            if self.fault == "transposed" and name == "query":
                leaf[0] = leaf[0].T.copy()
        self.params = {**self.params, "layers": layers}
        if self.fault == "head":
            self.params["unembedding"] = before["unembedding"]

    def load_adapter(self, folder):
        self.loads += 1
        if self.base is self:
            self.base = copy.copy(self)
        if self.fault == "stale" and self.loads > 1:
            return
        self.model, adapter = policy.lora.load(folder, self.base.model)
        self.params = policy.lora.attach(self.base.params, adapter)

    def score(self, sequences):
        if self.fault == "first":
            own = own_scores(self.model, self.params, [[FIRST, *ids] for ids in sequences])
            return [each[1:] for each in own]
        return own_scores(self.model, self.params, sequences)

    def generate(self, prompts, seeds, temperatures, decoding, done=None):
        found = []
        for prompt, seed, heat in zip(prompts, seeds, temperatures, strict=True):
            found.append(self._one(list(prompt), seed, heat, decoding))
            if done is not None:
                done(len(found) - 1, found[-1])
        return found

    def _one(self, prompt, seed, heat, decoding):
        random = np.random.default_rng(seed)
        before = [FIRST] if self.fault == "first" else []
        tokens, logp = [], []
        sampling = replace(decoding.sampling, temperature=heat)
        while len(tokens) < decoding.tokens and (
            not tokens or tokens[-1] not in decoding.stop_tokens
        ):
            whole = np.zeros((1, self.model.config.max_positions), np.int32)
            known = [*before, *prompt, *tokens]
            whole[0, : len(known)] = known
            logits = _logits(self.model, self.params, whole)[:, len(known) - 1]
            cut = logits / heat
            if (chain := sampling.chain()) is not None:
                cut, _ = chain.apply(cut, chain.init(1), None)
            sampled_from = np.asarray(jax.nn.log_softmax(cut), float)[0]
            reported = {"temperature": logits, "cuts": logits / heat}.get(self.fault, cut)
            p = np.exp(sampled_from)
            token = int(random.choice(len(p), p=p / p.sum()))
            tokens.append(token)
            logp.append(float(jax.nn.log_softmax(reported)[0, token]))
            ended = token in decoding.stop_tokens
        return Generated(tokens, logp, ended, self._routes([*prompt, *tokens[:-1]]))

    def _routes(self, tokens):
        """The experts of all tokens, from 0; None of a dense model or with the fault "routes"."""
        if self.model.config.num_experts is None or self.fault == "routes":
            return None
        whole = np.zeros((1, self.model.config.max_positions), np.int32)
        whole[0, : len(tokens)] = tokens
        return np.asarray(_used_routes(self.model, self.params, whole))[0, : len(tokens)] - 1


def _used(model, params, tokens):
    caches = model.empty_caches(*tokens.shape)
    return model.extend_routed(params, caches, tokens, jnp.arange(tokens.shape[1])[None])[2]


_used_routes = jax.jit(_used, static_argnums=0)
_logits = jax.jit(policy.Model.logits, static_argnums=0)


class _Handler(BaseHTTPRequestHandler):
    """Answers as vLLM's server does, or has the fault of its server."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self._answer("GET", {})

    def do_POST(self):
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer("POST", json.loads(text or "{}"))

    def _answer(self, method, body):
        server, path = self.server, self.path.partition("?")[0]
        server.seen.append((method, self.path))
        if server.fault == "gone":
            self.close_connection = True
            return
        if server.fault == "late":
            server.stopped.wait(30)
            return
        if server.fault == "page":
            return self._send(200, b"<html>Bad gateway</html>")
        if path == server.fault:
            return self._send(404, b"{}")
        if path == "/collective_rpc":
            if server.fault == "another model":
                return self._send(500, b'{"error": "size mismatch"}')
            server.engine.load(body["kwargs"]["weights_path"])
        if path == "/v1/load_lora_adapter":
            server.engine.load_adapter(body["lora_path"])
            return self._send(200, b"Success: LoRA adapter added")
        found = {"success": True, "is_paused": False}
        if path == "/inference/v1/generate":
            engine = server.engine if "model" in body else server.engine.base
            found = self._generated(engine, body["token_ids"], body["sampling_params"])
        self._send(200, json.dumps(found).encode())

    def _generated(self, engine, tokens, how):
        fault = self.server.fault
        if "prompt_logprobs" in how:
            (logp,) = engine.score([tokens])
            entries = [
                {str(t): {"logprob": float(x)}} for t, x in zip(tokens[1:], logp, strict=True)
            ]
            return {"choices": [{}], "prompt_logprobs": [None, *entries]}
        sampling = Sampling(
            top_k=max(how.get("top_k", 0), 0), top_p=how.get("top_p", 1), min_p=how.get("min_p", 0)
        )
        decoding = Decoding(how["max_tokens"], sampling, tuple(how.get("stop_token_ids", ())))
        heat, seed = how.get("temperature", 1.0), how.get("seed", 0)
        (one,) = engine.generate([tokens], [seed], [heat], decoding)
        content = [{"logprob": x} for x in one.logp]
        routes = None
        if one.routes is not None:
            file = io.BytesIO()
            np.save(file, one.routes)
            routes = base64.b64encode(file.getvalue()).decode()
        choice = {
            "routed_experts": routes,
            "token_ids": one.tokens[:-1] if fault == "fewer tokens" else one.tokens,
            "finish_reason": "stop" if one.stopped else "length",
            "logprobs": None if fault == "no log-probs" else {"content": content},
        }
        return {"choices": [choice]}

    def _send(self, status, content):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *told):
        pass


class _Server(ThreadingHTTPServer):
    """As real servers do, it lets more connections wait than the client opens."""

    request_queue_size = 256
    daemon_threads = True


@contextlib.contextmanager
def serving(engine, port=0):
    """A server on loopback, with `address`, `fault` and the requests that it has `seen`."""
    server = _Server(("127.0.0.1", port), _Handler)
    server.engine, server.fault, server.seen = engine, "", []
    server.address = f"http://127.0.0.1:{server.server_port}"
    server.stopped = threading.Event()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.stopped.set()
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    with serving(OwnEngine(sys.argv[1]), int(sys.argv[2])):
        signal.pause()
