"""A server that others keep, with a real model: `transformers serve` and SmolLM2."""

import os
import socket
import subprocess
import sys
import time

import pytest

from rlvr_jax import policy
from rlvr_jax.judges import Judge, question, server, yes_or_no
from rlvr_jax.judges.server import ADDRESS

SECONDS = 300
"""Until the server is there, and until it has answered, on cores with other work."""

ASK = "{prompt} {response}\nIs that right? Write YES or NO."


@pytest.fixture
def address(tmp_path):
    """Of a server on loopback."""
    pytest.importorskip("fastapi")
    pytest.importorskip("openai")
    try:
        path = str(policy.shipped_weights())
    except ValueError as error:
        pytest.skip(str(error))
    policy.save(tmp_path / "smollm2", *policy.load(path), policy.tokenizer(path))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = [sys.executable, "-m", "transformers.cli.transformers", "serve", "--device", "cpu"]
    line += ["--host", "127.0.0.1", "--port", str(port)]
    with (tmp_path / "log").open("w") as log:
        environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
        child = subprocess.Popen(line, stdout=log, stderr=log, env=environment)
    try:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and child.poll() is None:
            with socket.socket() as tried:
                if not tried.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.5)
        assert child.poll() is None, (tmp_path / "log").read_text()
        yield f"http://127.0.0.1:{port}/v1", str(tmp_path / "smollm2")
    finally:
        child.terminate()
        child.wait()


@pytest.mark.slow
def test_a_language_model_behind_a_server_of_others_judges(address):
    base, model = address
    call = server(model, tokens=8, at_once=2, seconds=SECONDS, environment={ADDRESS: base})
    judge = Judge(call, question(ASK), yes_or_no(), ["right"])
    texts = [{"prompt": "What is 2 + 2?", "response": word, "reference": "4"} for word in "45"]
    found = judge.query(texts, 0)
    assert all(words for words in found.words)
    assert found.metrics["judge_calls"] >= 2 and found.metrics["judge_tokens"] > 50
    assert not any(name.startswith("judge_failed") for name in found.metrics)
    again = judge.query(texts, 1)
    assert again.words == found.words and again.metrics["judge_calls"] == 0
