"""A server that is started again goes on where it was: nothing that it acknowledged is lost."""

import numpy as np
import pytest
import tinker_requests as requests
from served_process import Process
from tinker_requests import Client, Refusal, serving

from rlvr_jax.server import training_run

CONFIG = {"fraction": 0.2, "covariance_low": 0.0}


def batch(number):
    return requests.sampled(4, seed=number)


def trained(client, numbers):
    """Losses of steps with two requests each."""
    losses = []
    for number in numbers:
        client.train(batch(number)[:1], "rlvr:clip_cov", CONFIG)
        client.train(batch(number)[1:], "rlvr:clip_cov", CONFIG)
        losses.append(client.step(1e-3)["loss"])
    return losses


@pytest.fixture(scope="module")
def uninterrupted(brackets, tmp_path_factory):
    """Losses of five steps of a server without a restart."""
    with serving(tmp_path_factory.mktemp("whole"), brackets) as port:
        client = Client(port)
        client.create()
        return trained(client, range(5))


@pytest.mark.thorough
@pytest.mark.parametrize("seconds", [0.0, 1e9], ids=["snapshots", "log alone"])
def test_a_model_goes_on_after_a_restart(brackets, tmp_path, uninterrupted, seconds, monkeypatch):
    monkeypatch.setattr(training_run, "SNAPSHOT_SECONDS", seconds)
    monkeypatch.setattr(training_run, "_SNAPSHOT_SHARE", 0)
    with serving(tmp_path, brackets) as port:
        client = Client(port)
        client.create()
        losses = trained(client, range(2))
        unnamed = client.of_model("save_weights_for_sampler", sampling_session_seq_id=0)
        before = client.sample(unnamed["sampling_session_id"], 0)
        path = client.of_model("save_weights", path="two")["path"]
        client.train(batch(2)[:1], "rlvr:clip_cov", CONFIG)  # waits for its step
        client.train(batch(2)[1:], "rlvr:clip_cov", CONFIG)
        promise = f"{client.model_id}:{client.seq}"
        reply = client.retrieve(promise)
    (folder,) = (tmp_path / "models").iterdir()
    assert bool(list(folder.glob("snapshot-*"))) == (seconds == 0)
    with serving(tmp_path, brackets) as port:
        client.port = port
        assert client.retrieve(promise) == reply
        losses.append(client.step(1e-3)["loss"])
        losses += trained(client, range(3, 5))
        after = client.sample(unnamed["sampling_session_id"], 1)
        body = {"session_id": client.session, "model_seq_id": 1, "path": path, "optimizer": True}
        assert client.result("load_weights", body)["path"] == path
    assert losses == uninterrupted
    for one, other in zip(before, after, strict=True):
        assert one[0] == other[0]
        np.testing.assert_array_equal(one[1], other[1])


@pytest.mark.thorough
def test_a_full_disk_leaves_the_last_snapshot(
    brackets, tmp_path, uninterrupted, monkeypatch, capsys
):
    monkeypatch.setattr(training_run, "SNAPSHOT_SECONDS", 0.0)
    monkeypatch.setattr(training_run, "_SNAPSHOT_SHARE", 0)
    write = training_run.write_arrays

    def full(*given):
        raise OSError("No space left on device")

    with serving(tmp_path, brackets) as port:
        client = Client(port)
        client.create()
        losses = trained(client, [0])
        monkeypatch.setattr(training_run, "write_arrays", full)
        losses += trained(client, [1, 2])
        monkeypatch.setattr(training_run, "write_arrays", write)
    assert "no snapshot of" in capsys.readouterr().err
    with serving(tmp_path, brackets) as port:
        client.port = port
        assert losses + trained(client, [3, 4]) == uninterrupted


@pytest.mark.thorough
def test_a_step_that_was_acknowledged_is_not_made_again(brackets, tmp_path):
    with serving(tmp_path, brackets) as port:
        client = Client(port)
        client.create()
        client.train(batch(0), "ppo")
        first = client.step(1e-3)
    with serving(tmp_path, brackets) as port:
        client.port = port
        adam = {"learning_rate": 1e-3}
        again = {"model_id": client.model_id, "seq_id": client.seq, "adam_params": adam}
        assert client.result("optim_step", again)["metrics"] == first
        client.train(batch(0), "ppo")
        assert client.step(1e-3)["step"] == 2


@pytest.mark.thorough
def test_what_was_loaded_does_not_change_with_its_file(brackets, tmp_path):
    with serving(tmp_path, brackets) as port:
        client = Client(port)
        client.create()
        trained(client, [0])
        path = client.of_model("save_weights", path="one")["path"]
        body = {"session_id": client.session, "model_seq_id": 1, "path": path, "optimizer": False}
        other = Client(port)
        other.session, other.model_id = (
            client.session,
            client.result("load_weights", body)["model_id"],
        )
        loss = other.train(batch(9), "ppo", forward_only=True)
        trained(client, [1])
        client.of_model("save_weights", path="one", overwrite=True)
    with serving(tmp_path, brackets) as port:
        other.port = port
        assert other.train(batch(9), "ppo", forward_only=True)[0] == loss[0]


@pytest.mark.thorough
def test_a_request_that_never_comes_does_not_block_the_others(brackets, tmp_path, monkeypatch):
    monkeypatch.setattr("rlvr_jax.server.service._MISSING_SECONDS", 0.2)
    monkeypatch.setattr("rlvr_jax.server.actions._POLL_SECONDS", 0.5)
    with serving(tmp_path, brackets) as port:
        client = Client(port)
        client.create()
        client.train(batch(0), "ppo")
        client.seq += 1
        with pytest.raises(Refusal, match="request 2 failed, so the gradient"):
            client.step()
        client.train(batch(0), "ppo")
        assert client.step()["step"] == 1


@pytest.mark.slow
def test_a_kill_loses_no_acknowledged_request(tmp_path, uninterrupted):
    folder = tmp_path / "served"
    server = Process(folder)
    assert (folder / "token").stat().st_mode & 0o777 == 0o600
    client = Client(server.port, server.token)
    client.create()
    promises = []
    for number in range(5):  # all are accepted, and some of them executed
        for part in (batch(number)[:1], batch(number)[1:]):
            client.seq += 1
            body = (client.model_id, client.seq, part, "rlvr:clip_cov", CONFIG)
            client.call("forward_backward", requests.forward_backward(*body))
        client.seq += 1
        body = {"model_id": client.model_id, "seq_id": client.seq}
        body["adam_params"] = {"learning_rate": 1e-3}
        promises.append(client.call("optim_step", body)["request_id"])
    server.kill()
    server = Process(folder)
    client.port = server.port
    try:
        losses = [client.retrieve(one)["metrics"]["loss"] for one in promises]
        # Tests compile with other options than a process of its own.
        np.testing.assert_allclose(losses, uninterrupted, atol=1e-5)
    finally:
        server.kill()
