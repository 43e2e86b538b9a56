"""The benchmark of a step: it measures the training loop's own."""

import json

import pytest

from experiments import bench
from rlvr_jax.training import loop


def test_the_step_is_that_of_the_training_loop():
    assert bench.take_step is loop.take_step


def test_an_unknown_size_is_refused():
    with pytest.raises(ValueError, match="size must be among S, M, L, got 'XL'"):
        bench.main(["--size", "XL"])


@pytest.mark.slow
def test_the_last_line_is_one_object(capsys):
    bench.main(["--size", "S", "--json"])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (found["size"], found["prompts"], found["rollouts"]) == ("S", 16, 8)
    assert (found["prompt_len"], found["new_tokens"]) == (32, 64)
    measured = ("sample_s", "update_s", "step_s", "compile_s", "peak_rss_mb", "floor_s")
    assert all(found[name] > 0 for name in measured)
