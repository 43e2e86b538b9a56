"""Protocol buffers: what is written is read, and other bytes are refused in one sentence."""

import numpy as np
import pytest
import tinker_requests as requests

from rlvr_jax.server import Refused
from rlvr_jax.server.protobuf import block, integer, text
from rlvr_jax.server.wire import read_address, read_forward_backward, write_forward_backward

BODY = requests.forward_backward("s:train:0", 300, requests.sampled(3), "ppo", {"a": 0.5}, True)


def test_a_request_is_read_as_it_was_sent():
    read = read_forward_backward(BODY)
    assert (read.model_id, read.seq_id, read.loss) == ("s:train:0", 300, "ppo")
    assert read.config == {"a": 0.5} and read.forward_only
    assert read_address(BODY) == ("s:train:0", 300, True)
    for ours, sent in zip(read.data, requests.sampled(3), strict=True):
        np.testing.assert_array_equal(ours.tokens, sent.tokens)
        assert ours.inputs.keys() == sent.inputs.keys()
        for name, array in sent.inputs.items():
            np.testing.assert_array_equal(ours.inputs[name], array)


def test_outputs_are_read_as_they_were_written():
    arrays = {"logprobs": [np.arange(3.0), np.zeros(0), np.ones(2)]}
    metrics, found = requests.read_outputs(write_forward_backward({"loss:sum": -2.5}, arrays))
    assert metrics == {"loss:sum": -2.5}
    for ours, sent in zip(found["logprobs"], arrays["logprobs"], strict=True):
        np.testing.assert_array_equal(ours, sent)


@pytest.mark.parametrize("end", [1, 5, 40, len(BODY) // 2, len(BODY) - 30])
def test_a_body_that_is_cut_off_is_refused(end):
    with pytest.raises(Refused, match="forward_backward: the body must be its protocol buffer"):
        read_forward_backward(BODY[: len(BODY) - end])


@pytest.mark.parametrize("body", [b"\xff" * 12, b"{}", b"\x0b", b"\n\xff\xff\xff\xff\xff\x7f"])
def test_other_bytes_are_refused(body):
    with pytest.raises(Refused, match="forward_backward: "):
        read_forward_backward(body)


def test_every_byte_of_a_body_may_be_another_one():
    """No byte makes another error than a refusal."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        body = bytearray(BODY)
        body[rng.integers(len(body))] = rng.integers(256)
        try:
            read_forward_backward(bytes(body))
            read_address(bytes(body))
        except Refused as refused:
            assert refused.status == 400


@pytest.mark.parametrize(
    ("datum", "message"),
    [
        (block(1, block(2, b"")), "chunks must be text tokens, got an image or audio"),
        (block(2, text(1, "weights") + block(2, block(2, b""))), "weights must be a dense tensor"),
        (block(2, text(1, "weights") + block(2, integer(3, 4))), "float32 or int64, got dtype 4"),
    ],
)
def test_images_sparse_tensors_and_other_numbers_are_refused(datum, message):
    with pytest.raises(Refused, match=message):
        read_forward_backward(block(3, datum))
