"""The client of a vLLM server: against a server of the tests, and against vLLM where one runs."""

import os
import socket
import sys
import threading
from pathlib import Path

import jax
import numpy as np
import pytest
import training_runs
from own_engine import OwnEngine, serving

from rlvr_jax import policy, tasks
from rlvr_jax.experience import PLAIN, grades
from rlvr_jax.experience.engine_sampler import EngineActor
from rlvr_jax.methods.guidance.scope import salvage
from rlvr_jax.rollout import Sampling
from rlvr_jax.rollout.engines.engine import Decoding, EngineError
from rlvr_jax.rollout.engines.probe import own_scores
from rlvr_jax.rollout.engines.started import started
from rlvr_jax.rollout.engines.vllm import VllmServer
from rlvr_jax.runs.resolved import resolve
from rlvr_jax.runs.step import collect
from rlvr_jax.types import replace

BASE = Path(tasks.load("brackets").base_model)
DECODING = Decoding(6, Sampling(top_k=20), (107,))
ADDRESS = "RLVR_JAX_VLLM"
"""Environment variable with the address of a vLLM server of the brackets base, for slow tests."""


@pytest.fixture(scope="module")
def server():
    with serving(OwnEngine(BASE)) as server:
        yield server


@pytest.fixture
def faulty(server):
    """A client of the server, and a function that gives the server a fault."""
    client = VllmServer(server.address, seconds=1.0)
    yield client, lambda fault: setattr(server, "fault", fault)
    server.fault = ""


def test_tokens_and_log_probs_are_those_of_the_engine(server):
    client = VllmServer(server.address)
    prompts = [[3, 4, 5], [6, 7]]
    there = server.engine.generate(prompts, [1, 2], [1.0, 0.7], DECODING)
    found = client.generate(prompts, [1, 2], [1.0, 0.7], DECODING)
    assert found == there
    assert client.generate(prompts, [1, 2], [1.0, 0.7], DECODING) == found
    for own, their in zip(client.score(prompts), server.engine.score(prompts), strict=True):
        np.testing.assert_allclose(own, their, rtol=1e-6)


def test_weights_are_loaded_between_pause_and_resume(server):
    client = VllmServer(server.address)
    server.seen.clear()
    client.load(BASE)
    paths = ["/pause?mode=wait", "/collective_rpc", "/reset_prefix_cache", "/resume"]
    assert server.seen == [("POST", path) for path in paths]


def test_an_adapter_is_named_in_every_request(tmp_path):
    """The server of the tests answers by the base to a request without a model."""
    model, params = policy.load(BASE)
    adapted = replace(model, config=replace(model.config, lora=policy.LoraConfig(4, 8.0)))
    adapter = jax.tree.map(lambda x: x + 0.1, policy.lora.init(adapted, jax.random.key(0)))
    policy.lora.save(tmp_path, adapted, adapter, "")
    ids = [[3, 4, 5, 6]]
    with serving(OwnEngine(BASE)) as server:
        client = VllmServer(server.address)
        (before,) = client.score(ids)
        client.load_adapter(tmp_path)
        (own,) = own_scores(adapted, policy.lora.attach(params, adapter), ids)
        np.testing.assert_allclose(client.score(ids)[0], own, atol=1e-5)
        assert np.abs(own - before).max() > 0.01
        paths = ["/pause?mode=wait", "/v1/load_lora_adapter", "/reset_prefix_cache", "/resume"]
        assert [path for _, path in server.seen if "generate" not in path][1:] == paths


def test_adapters_of_an_engine_need_adapters(tmp_path):
    config = training_runs.settings(str(BASE), tmp_path / "run", engine="vllm")
    with pytest.raises(ValueError, match=r"--engine-adapters must come with --engine and --lora-"):
        resolve(config.replace(engine_adapters=True))


@pytest.mark.parametrize(
    ("fault", "wanted"),
    [
        ("gone", r"must return a reply, got no connection"),
        ("late", r"must return a reply within 1 s \(--engine-seconds\), got none"),
        ("page", r"must return a JSON object, got <html>Bad gateway"),
        ("fewer tokens", r"must return 1 to 6 tokens, each with a log-prob, got \d tokens and \d"),
        ("no log-probs", r"must return token ids with log-probs, got \{"),
        ("/inference/v1/generate", r"got status 404; start it by VLLM_SERVER_DEV_MODE=1 python"),
    ],
)
def test_a_server_that_answers_otherwise_is_one_error(fault, wanted, faulty):
    client, make = faulty
    make(fault)
    with pytest.raises(EngineError, match=rf"^engine vllm at 127.0.0.1:\d+ .*{wanted}"):
        client.generate([[3, 4, 5, 6]], [1], [1.0], DECODING)


def test_weights_of_another_model_are_refused_and_the_server_goes_on(faulty, server):
    client, make = faulty
    make("another model")
    server.seen.clear()
    with pytest.raises(EngineError, match=r"a reply to /collective_rpc, got status 500: .*size"):
        client.load(BASE)
    assert server.seen[-1] == ("POST", "/resume")


def test_a_run_needs_a_server(tmp_path):
    settings = training_runs.settings(str(BASE), tmp_path / "run")
    with pytest.raises(ValueError, match=r"--engine-address must be like http://.*, got 'there'"):
        training_runs.quietly(settings.replace(engine="vllm", engine_address="there"))
    with pytest.raises(ValueError, match="must return a reply, got no connection"):
        training_runs.quietly(settings.replace(engine="vllm", engine_address="http://127.0.0.1:1"))


def sampled_by_a_teacher():
    """A stage that an engine cannot serve, as `salvage` with the teacher of the recipe."""
    return salvage(PLAIN, policy="teacher")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (
            dict(method="scope", hyperparameters=("teacher=start", "hint_fraction=0")),
            r"method 'scope', got 'vllm': its part salvage\(.*\) requests samples of the recipe's",
        ),
        (
            dict(stage=(f"{__name__}:sampled_by_a_teacher",)),
            r"method 'grpo', got 'vllm': its part salvage\(.*\) requests samples of the recipe's",
        ),
        (dict(method="soft_grpo"), r"method 'soft_grpo', got .* feeds the model vectors"),
    ],
)
def test_parts_that_need_our_sampler_are_refused_before_a_server_is_reached(
    settings, named, tmp_path
):
    config = training_runs.settings(str(BASE), tmp_path / "run", engine="vllm", **settings)
    config = config.replace(task="hinted_brackets")
    with pytest.raises(ValueError, match=rf"^--engine must be left out for {named}"):
        resolve(config)
    resolve(config.replace(engine=""))


def test_a_run_samples_from_the_engine_and_measures_it(server, tmp_path):
    settings = training_runs.settings(str(BASE), tmp_path / "run")
    own = {"task": "brackets", "engine": "vllm", "engine_address": server.address}
    training_runs.quietly(settings.replace(**own, samples_stored=1))
    steps = training_runs.metrics(tmp_path / "run")[1:]
    assert all(0 <= line["engine/gap_max"] < 1e-4 for line in steps)
    assert all(abs(line["sampler_ratio/max"] - 1) < 1e-4 for line in steps)
    assert all(line["engine/reported_gap_max"] < 1e-4 for line in steps)


def test_responses_are_graded_while_others_are_sampled(server, tmp_path, monkeypatch):
    """The engine completes its second half only after the first one was graded."""
    settings = training_runs.settings(str(BASE), tmp_path / "run", task="brackets", steps=1)
    run = training_runs.prepared(settings.replace(engine="vllm", engine_address=server.address))
    graded = threading.Event()
    rows = []
    sampled = VllmServer.generate

    def slow(self, prompts, seeds, temperatures, decoding, done=None):
        half = len(prompts) // 2
        given = prompts, seeds, temperatures
        if len(prompts) < 16:  # the probe
            return sampled(self, *given, decoding, done)
        first = sampled(self, *(each[:half] for each in given), decoding, done)
        assert graded.wait(60)
        return first + sampled(
            self,
            *(each[half:] for each in given),
            decoding,
            lambda place, one: done(half + place, one),
        )

    grade = EngineActor.grade

    def noted(self, batch):
        rows.append(len(batch))
        if sum(rows) == 8:
            graded.set()
        return grade(self, batch)

    monkeypatch.setattr(VllmServer, "generate", slow)
    monkeypatch.setattr(EngineActor, "grade", noted)
    batch = collect(run, run.initial_state(), 0).batch
    assert sum(rows) == len(batch) == 16
    whole = grades.grade(run.task, batch)
    assert [one.outcome for one in batch.grades] == [one.outcome for one in whole.grades]
    assert [one.answer for one in batch.grades] == [one.answer for one in whole.grades]
    np.testing.assert_array_equal(batch.rollouts.outcome, whole.rollouts.outcome)


def test_with_learning_rate_0_the_gap_does_not_grow(server, tmp_path):
    settings = training_runs.settings(str(BASE), tmp_path / "run")
    own = {"task": "brackets", "engine": "vllm", "engine_address": server.address}
    loads = server.engine.loads
    training_runs.quietly(settings.replace(**own, learning_rate=0.0, steps=4))
    steps = training_runs.metrics(tmp_path / "run")[1:]
    assert server.engine.loads == loads + 4
    assert len({line["engine/gap_max"] for line in steps}) == 1
    assert all(abs(line["engine/k1"]) <= line["engine/gap_p99"] < 1e-4 for line in steps)


def test_a_server_that_dies_ends_the_step_and_the_run_resumes(tmp_path):
    folder = tmp_path / "run"
    settings = training_runs.settings(str(BASE), folder)
    settings = settings.replace(task="brackets", engine="vllm", steps=3)
    with serving(OwnEngine(BASE)) as server:
        settings = settings.replace(engine_address=server.address)
        loads = []
        whole = server.engine.load

        def load(path):
            loads.append(path)
            if len(loads) == 2:
                server.fault = "gone"
            whole(path)

        server.engine.load = load
        with pytest.raises(EngineError, match="got no connection") as raised:
            training_runs.quietly(settings)
        assert "the state before is saved" in "".join(raised.value.__notes__)
    with serving(OwnEngine(BASE)) as server:
        again = settings.replace(engine_address=server.address, resume=True)
        training_runs.quietly(again)
    assert [line["step"] for line in training_runs.metrics(folder)] == [0, 1, 2, 3]


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.mark.thorough
def test_a_run_starts_its_server_and_ends_it(tmp_path, monkeypatch):
    settings = training_runs.settings(str(BASE), tmp_path / "run").replace(task="brackets")
    port = free_port()
    own = {"engine": "vllm", "engine_address": f"http://127.0.0.1:{port}", "engine_seconds": 120.0}
    server = Path(__file__).parents[1] / "support/own_engine.py"
    command = f"JAX_PLATFORMS=cpu {sys.executable} {server} {{model}} {port}"
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    training_runs.quietly(settings.replace(**own, engine_command=command))
    with pytest.raises(OSError), socket.create_connection(("127.0.0.1", port), 1):
        pass


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "nothing_of_this_name",
            "--engine-command must be a command that can be run, got 'nothing",
        ),
        ("A=1", "--engine-command must be a command that can be run, got 'A=1'"),
        ("sh -c 'echo no such model; exit 3'", "ended with exit code 3: no such model"),
        ("sleep 60", r"is not ready within 1 s \(--engine-seconds\): no output"),
    ],
)
def test_a_server_that_does_not_start_is_one_error(command, message):
    address = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ValueError, match=message), started(command, address, 1.0):
        pass


@pytest.mark.slow
@pytest.mark.skipif(ADDRESS not in os.environ, reason=f"{ADDRESS} is not set")
def test_vllm_trains_brackets_with_gaps_of_rounding(tmp_path):
    settings = training_runs.settings(str(BASE), tmp_path / "run")
    own = {"task": "brackets", "engine": "vllm", "engine_address": os.environ[ADDRESS], "steps": 5}
    training_runs.quietly(settings.replace(**own))
    for line in training_runs.metrics(tmp_path / "run")[1:]:
        assert line["engine/gap_max"] < 1e-3
        assert line["engine/reported_gap_max"] < 1e-3


@pytest.mark.slow
@pytest.mark.skipif(ADDRESS not in os.environ, reason=f"{ADDRESS} is not set")
def test_vllm_has_equal_responses_for_equal_seeds():
    client = VllmServer(os.environ[ADDRESS])
    prompts, seeds = [[3, 4, 5]] * 16, list(range(16))
    found = client.generate(prompts, seeds, [1.0] * 16, DECODING)
    assert [one.tokens for one in client.generate(prompts, seeds, [1.0] * 16, DECODING)] == [
        one.tokens for one in found
    ]
    assert len({tuple(one.tokens) for one in found}) > 1
