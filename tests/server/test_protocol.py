"""A server as its clients see it: results, retries, refusals, and two clients at once."""

import http.client
import json
import threading

import numpy as np
import pytest
import tinker_requests as requests
from tinker_requests import Client, Refusal, serving


@pytest.fixture(scope="module")
def port(brackets, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("served"), brackets) as port:
        yield port


@pytest.fixture(scope="module")
def client(port):
    """A client whose model has made a step."""
    own = Client(port)
    own.create()
    own.train(requests.supervised(4), "cross_entropy")
    own.step()
    return own


def test_supervised_steps_lower_the_loss(client):
    data = requests.supervised(4)
    before, outputs = client.train(data, "cross_entropy")
    assert [len(one) for one in outputs["logprobs"]] == [len(datum.tokens) for datum in data]
    total = -sum(
        (d.inputs["weights"] * o).sum() for d, o in zip(data, outputs["logprobs"], strict=True)
    )
    np.testing.assert_allclose(before["loss:sum"], total, rtol=1e-5)
    assert all((one >= 0).all() and one.any() for one in outputs["entropy"])
    metrics = client.step()
    np.testing.assert_allclose(metrics["loss"], before["loss:sum"], rtol=1e-6)
    after, _ = client.train(data, "cross_entropy", forward_only=True)
    assert after["loss:sum"] < before["loss:sum"] / 1.5


@pytest.mark.thorough
def test_a_published_objective_has_its_metrics_with_the_step(client):
    config = {"fraction": 0.2, "covariance_low": 0.0}
    for part in (requests.sampled(2), requests.sampled(3, seed=1)):
        metrics, _ = client.train(part, "rlvr:clip_cov", config)
        assert metrics.keys() == {"tokens:sum"}  # no loss of a part of the batch
    metrics = client.step(1e-4)
    assert {"loss", "covariance", "entropy", "ratio/max"} <= metrics.keys()
    assert metrics["chosen_fraction"] > 0


@pytest.mark.thorough
def test_a_stored_sampler_does_not_change_while_training_goes_on(client):
    unnamed = client.of_model("save_weights_for_sampler", sampling_session_seq_id=3)
    path = client.of_model("save_weights_for_sampler", path="fixed")["path"]
    body = {"session_id": client.session, "sampling_session_seq_id": 4, "model_path": path}
    named = client.call("create_sampling_session", body)["sampling_session_id"]
    samplers = [unnamed["sampling_session_id"], named]
    first = [client.sample(sampler, 1) for sampler in samplers]
    for _ in range(3):
        client.train(requests.supervised(4), "cross_entropy")
        client.step()
    later = client.of_model("save_weights_for_sampler", sampling_session_seq_id=5)
    second = [client.sample(sampler, 2) for sampler in samplers]
    changed = client.sample(later["sampling_session_id"], 1)
    for one, other in zip([*first[0], *first[1]], [*second[0], *first[0]], strict=True):
        assert one[0] == other[0]
        np.testing.assert_array_equal(one[1], other[1])
    assert [one[0] for one in changed] != [one[0] for one in first[0]]


@pytest.mark.thorough
def test_responses_end_as_they_were_asked_to(client):
    body = {"session_id": client.session, "sampling_session_seq_id": 9, "base_model": "brackets"}
    sampler = client.call("create_sampling_session", body)["sampling_session_id"]
    assert client.call(f"samplers/{sampler}")["base_model"] == "brackets"
    for tokens, logprobs, stopped in client.sample(sampler, 1):
        assert stopped and len(tokens) == len(logprobs) and (logprobs <= 0).all()
        assert tokens[-1] == 107 and 107 not in tokens[:-1]  # the end of sequence
    assert all(not s and len(t) == 2 for t, _, s in client.sample(sampler, 2, max_tokens=2))
    assert all(len(tokens) == 24 for tokens, _, _ in client.sample(sampler, 3, stop=[]))
    for tokens, _, stopped in client.sample(sampler, 4, stop=["="]):
        assert stopped and tokens[-1] in (105, 107)  # "=", or the end
    greedy = client.sample(sampler, 5, temperature=0.0)
    assert greedy[0][0] == greedy[1][0]
    with pytest.raises(Refusal, match="max_tokens must be at most"):
        client.sample(sampler, 6, max_tokens=10**6)
    with pytest.raises(Refusal, match="target_prompt_logprobs must be left out"):
        client.call(
            "asample",
            {"sampling_session_id": sampler, "seq_id": 7, "target_prompt_logprobs": {"a": 1}},
        )


def test_a_request_that_comes_twice_is_one_request(client):
    client.seq += 1
    data = requests.supervised(2)
    body = requests.forward_backward(client.model_id, client.seq, data, "cross_entropy")
    promises = [client.call("forward_backward", body)["request_id"] for _ in range(3)]
    assert len(set(promises)) == 1
    loss = requests.read_outputs(client.retrieve(promises[0]))[0]["loss:sum"]
    assert client.retrieve(promises[0]) == client.retrieve(promises[0])
    other = requests.forward_backward(client.model_id, client.seq, data, "ppo")
    with pytest.raises(Refusal, match="seq_id must be new for another request") as refused:
        client.call("forward_backward", other)
    assert refused.value.status == 400
    np.testing.assert_allclose(client.step()["loss"], loss, rtol=1e-6)  # once, not three times


def test_requests_that_arrive_out_of_order_run_in_order(client):
    data = [requests.supervised(2, seed=seed) for seed in (1, 2)]
    first, second, step = (client.seq + number for number in (1, 2, 3))
    client.seq = step
    body = {"model_id": client.model_id, "seq_id": step, "adam_params": {"learning_rate": 0.0}}
    promise = client.call("optim_step", body)["request_id"]
    for seq, own in ((second, data[1]), (first, data[0])):
        body = requests.forward_backward(client.model_id, seq, own, "cross_entropy")
        client.call("forward_backward", body)
    loss = client.retrieve(promise)["metrics"]["loss"]
    wanted, _ = client.train([*data[0], *data[1]], "cross_entropy", forward_only=True)
    np.testing.assert_allclose(loss, wanted["loss:sum"], rtol=1e-5)


def test_a_refused_part_of_a_batch_refuses_the_step(client):
    client.train(requests.supervised(2), "cross_entropy")
    wrong = requests.supervised(1)
    wrong[0].inputs["weights"] = wrong[0].inputs["weights"][:-1]
    with pytest.raises(Refusal, match=r"data\[0\]: weights must have the shape"):
        client.train(wrong, "cross_entropy")
    with pytest.raises(
        Refusal,
        match=r"request .* failed, so the gradient of this step is incomplete; it is dropped",
    ):
        client.step()
    with pytest.raises(Refusal, match="a forward_backward must come before it"):
        client.step()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"target_tokens": lambda x: x + 1000}, "target_tokens must have token ids below 110"),
        ({"logprobs": lambda x: x * np.nan}, "logprobs must have finite numbers"),
        ({"advantages": None}, "loss_fn_inputs must have advantages, or reward and group"),
        ({"advantage": lambda x: x}, "loss_fn_inputs must be among .*, got advantage"),
        ({"target_tokens": lambda x: x[::-1]}, "must be the input shifted by one where they count"),
    ],
)
def test_other_datums_are_refused(client, changed, message):
    data = requests.sampled(1, seed=2)
    for name, change in changed.items():
        array = data[0].inputs.pop(name, data[0].inputs["target_tokens"].astype(np.float32))
        if change is not None:
            data[0].inputs[name] = change(array)
    with pytest.raises(Refusal, match=message):
        client.train(data, "rlvr:clip_cov", forward_only=True)
    client.train(requests.supervised(1), "cross_entropy")
    client.step()  # a forward pass that failed is no part of it


@pytest.mark.parametrize(
    ("loss", "config", "message"),
    [
        ("rlvr:clip_covv", {}, "rlvr: and a method of python -m rlvr_jax.methods"),
        ("rlvr:os:system", {}, "rlvr: and a method of python -m rlvr_jax.methods"),
        ("rlvr:clip_cov", {"fractions": 0.1}, "must be among .* got 'fractions'"),
        ("rlvr:clip_cov", {"fraction": 2.0}, "fraction must be in"),
        (
            "rlvr:heimdall",
            {},
            "which needs critic.*; use python -m rlvr_jax train --method heimdall",
        ),
        ("gspo", {}, "loss_fn must be one of cross_entropy"),
    ],
)
def test_other_losses_are_refused(client, loss, config, message):
    with pytest.raises(Refusal, match=message):
        client.train(requests.sampled(1), loss, config)
    with pytest.raises(Refusal, match="is incomplete"):
        client.step()


def test_weights_are_stored_once_under_a_name_and_loaded_by_another_model(client):
    path = client.of_model("save_weights", path="one")["path"]
    with pytest.raises(Refusal, match="path must be new, got one, which is stored already"):
        client.of_model("save_weights", path="one")
    assert client.of_model("save_weights", path="one", overwrite=True)["path"] == path
    body = {"session_id": client.session, "model_seq_id": 7, "path": path, "optimizer": True}
    assert client.result("load_weights", body)["model_id"] == f"{client.session}:train:7"
    other = Client(client.port)
    other.session, other.model_id = client.session, f"{client.session}:train:7"
    losses = [
        each.train(requests.supervised(3), "cross_entropy", forward_only=True)[0]["loss:sum"]
        for each in (client, other)
    ]
    assert losses[0] == losses[1]
    client.of_model("save_weights_for_sampler", path="listed")
    listed = client.call(f"training_runs/{client.model_id}/checkpoints")["checkpoints"]
    assert {"weights/one", "sampler_weights/listed"} <= {one["checkpoint_id"] for one in listed}
    info = client.call("weights_info", {"tinker_path": path})
    assert info["base_model"] == "brackets" and info["lora_rank"] == 4


@pytest.mark.parametrize("name", ["../one", "/etc/passwd", "a/b", ".hidden", "a\0b", "", "x" * 101])
def test_no_name_leaves_the_folder_of_its_model(client, name):
    if name:
        with pytest.raises(Refusal, match="path must be a name of up to 100 letters"):
            client.of_model("save_weights", path=name)
    for path in (f"tinker://{client.model_id}/weights/{name}", f"tinker://../weights/{name}", name):
        body = {"session_id": client.session, "model_seq_id": 8, "path": path, "optimizer": False}
        with pytest.raises(Refusal, match=r"path must be|model must be one of yours"):
            client.call("load_weights", body)


@pytest.mark.parametrize("base", ["../brackets", "/etc", "brackets/", "", None, 3, ["brackets"]])
def test_a_model_that_the_server_was_not_given_is_refused(client, base):
    body = {"session_id": client.session, "model_seq_id": 30, "base_model": base}
    with pytest.raises(Refusal, match="base_model must be") as refused:
        client.call("create_model", {**body, "lora_config": {"rank": 4}})
    assert refused.value.status == 400
    body = {"session_id": client.session, "sampling_session_seq_id": 30, "base_model": base}
    with pytest.raises(Refusal, match="base_model must be one of brackets"):
        client.call("create_sampling_session", body)


@pytest.mark.parametrize("token", ["", "tml-wrong", requests.TOKEN[:-1], requests.TOKEN + "a", "é"])
def test_a_wrong_token_reads_nothing(client, token):
    stranger = Client(client.port, token.encode("utf-8", "replace").decode("latin-1"))
    for path in ("create_session", "retrieve_future", "get_info", "client/config", "anything"):
        with pytest.raises(Refusal, match="X-API-Key must be the token of this server") as refused:
            stranger.call(path, {})
        assert refused.value.status == 401
    assert stranger.call("healthz") == {"status": "ok"}


def test_a_client_sees_only_what_it_made(client):
    other = Client(client.port, requests.OTHER_TOKEN)
    other.create(rank=2)
    path = client.of_model("save_weights", path="mine")["path"]
    sampler = client.of_model("save_weights_for_sampler", sampling_session_seq_id=20)
    sampler = sampler["sampling_session_id"]
    model = {"model_id": client.model_id, "seq_id": client.seq + 1}
    asked = {"sampling_session_id": sampler, "seq_id": 50}
    new = {"session_id": other.session, "model_seq_id": 1, "sampling_session_seq_id": 1}
    for request, body in {
        "get_info": model,
        "optim_step": {**model, "adam_params": {}},
        "save_weights": {**model, "path": "x"},
        "load_weights": {**new, "path": path, "optimizer": False},
        "create_sampling_session": {**new, "model_path": path},
        "asample": asked,
        "retrieve_future": {"request_id": f"{client.model_id}:1"},
        "session_heartbeat": {"session_id": client.session},
        "weights_info": {"tinker_path": path},
    }.items():
        with pytest.raises(Refusal, match="must be") as refused:
            other.call(request, body)
        assert refused.value.status in (404, 410), request
    with pytest.raises(Refusal, match="model must be one of yours"):
        other.call(f"training_runs/{client.model_id}/checkpoints")
    client.train(requests.supervised(1), "cross_entropy", forward_only=True)  # not disturbed


@pytest.mark.thorough
def test_two_clients_at_once_train_as_each_alone(port):
    data = {
        token: requests.sampled(4, seed=n)
        for n, token in enumerate((requests.TOKEN, requests.OTHER_TOKEN))
    }

    def losses(client):
        found = []
        for _ in range(4):
            client.train(data[client.token], "ppo")
            found.append(client.step()["loss"])
        return found

    alone, together = {}, {}
    for target in (alone, together):
        clients = [Client(port, token) for token in data]
        for client in clients:
            client.create()
        if target is alone:
            for client in clients:
                alone[client.token] = losses(client)
            continue
        threads = [
            threading.Thread(target=lambda own=own: together.update({own.token: losses(own)}))
            for own in clients
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert alone == together


def test_a_body_that_is_too_large_is_refused_before_it_is_read(client):
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=10)
    connection.putrequest("POST", "/api/v1/forward_backward")
    connection.putheader("X-API-Key", client.token)
    connection.putheader("Content-Length", str(1 << 40))
    connection.endheaders()
    reply = connection.getresponse()
    sentence = json.loads(reply.read())["detail"]
    assert reply.status == 413 and "the body must have at most 1048576 bytes" in sentence
    connection.close()


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("optim_step", b"[1]", {}, 400),
        ("optim_step", b"{", {}, 400),
        ("optim_step", b"[" * 100_000, {}, 400),
        ("forward_backward", b"{}", {}, 400),
        ("forward_backward", b"", {"Content-Encoding": "zstd"}, 415),
        ("optim_step", b"{}", {"Transfer-Encoding": "chunked"}, 411),
        ("save_weights_external", b"{}", {}, 404),
        ("copy_weights", b"{}", {}, 404),
        ("../../etc/passwd", b"{}", {}, 404),
        ("sessions/%2e%2e/finish", b"{}", {}, 410),
        ("retrieve_future", b'{"request_id": "x:1"}', {}, 410),
        ("optim_step", b'{"model_id": "x:train:0", "seq_id": 1}', {}, 410),
        ("optim_step", b'{"model_id": "x:train:0", "seq_id": -1}', {}, 400),
    ],
)
def test_another_request_is_refused_in_one_sentence(client, path, body, headers, status):
    with pytest.raises(Refusal) as refused:
        client.call(path, body, **headers)
    assert refused.value.status == status
    assert "\n" not in str(refused.value) and "Traceback" not in str(refused.value)


@pytest.mark.thorough
def test_a_session_that_ended_takes_its_models_along(port):
    own = Client(port)
    own.create()
    own.train(requests.supervised(1), "cross_entropy")
    path = own.of_model("save_weights_for_sampler", path="end")["path"]
    own.call(f"sessions/{own.session}/finish", {"reason": {"type": "success"}})
    with pytest.raises(Refusal, match="session_id must be of an open session"):
        own.step()
    next_one = Client(port)
    next_one.create()
    body = {"session_id": next_one.session, "sampling_session_seq_id": 0, "model_path": path}
    sampler = next_one.call("create_sampling_session", body)["sampling_session_id"]
    assert next_one.sample(sampler, 1)
    next_one.call(f"sessions/{next_one.session}/finish", {})


@pytest.mark.thorough
def test_more_responses_than_are_sampled_at_a_time_are_those_of_smaller_requests(client):
    body = {"session_id": client.session, "sampling_session_seq_id": 60, "base_model": "brackets"}
    sampler = client.call("create_sampling_session", body)["sampling_session_id"]
    many = client.sample(sampler, 1, samples=70, max_tokens=3)
    few = client.sample(sampler, 2, samples=4, max_tokens=3)
    assert [one[0] for one in many[:4]] == [one[0] for one in few] and len(many) == 70
    with pytest.raises(Refusal, match="num_samples must be at most 4096"):
        client.sample(sampler, 3, samples=5000)


def test_adapters_wider_than_the_model_are_refused(port):
    own = Client(port)
    with pytest.raises(Refusal, match="rank must be at most 64, got 65"):
        own.create(rank=65)


@pytest.mark.thorough
def test_more_models_than_fit_are_refused(brackets, tmp_path):
    with serving(tmp_path, brackets) as port:
        own = Client(port)
        own.create()
        body = {"session_id": own.session, "base_model": "brackets", "lora_config": {"rank": 1}}
        for number in range(1, 8):
            own.result("create_model", {**body, "model_seq_id": number})
        with pytest.raises(Refusal, match="fewer than 8 models in training"):
            own.call("create_model", {**body, "model_seq_id": 8})


@pytest.mark.thorough
def test_old_samplers_without_a_name_are_dropped_and_named_ones_stay(client):
    path = client.of_model("save_weights_for_sampler", path="stays")["path"]
    saved = [
        client.of_model("save_weights_for_sampler", sampling_session_seq_id=number)
        for number in range(100, 109)
    ]
    client.sample(saved[1]["sampling_session_id"], 1, max_tokens=2)
    with pytest.raises(Refusal, match="those of samplers without a name are stored for the last 8"):
        client.sample(saved[0]["sampling_session_id"], 1)
    body = {"session_id": client.session, "sampling_session_seq_id": 110, "model_path": path}
    sampler = client.call("create_sampling_session", body)["sampling_session_id"]
    client.sample(sampler, 1, max_tokens=2)
