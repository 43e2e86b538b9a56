"""Compiled programs of a slice: how often a step calls them, and what they send."""

import dataclasses

import jax
import pytest

from rlvr_jax import methods
from rlvr_jax.parallel import hlo
from rlvr_jax.parallel.topologies import describe
from rlvr_jax.pods import compiled
from rlvr_jax.pods.abstract import abstract_run
from rlvr_jax.policy import named_config
from rlvr_jax.policy.published import PUBLISHED
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.runs.hyperparameters import method_arguments


def run_on(topology, shape, prompts, samples, prompt, response, **options):
    """A GRPO run on a slice that is not there."""
    lengths = dict(prompt_tokens=prompt, response_tokens=response)
    config = TrainConfig.of(
        prompts_per_step=prompts, samples_per_prompt=samples, **lengths, **options
    )
    return abstract_run(config, shape, methods.recipe("grpo"), describe(topology).devices(), 0)


@pytest.mark.parametrize(
    ("method", "updates", "wanted"),
    [
        ("grpo", {}, {"score": 1, "update": 1}),  # of the reference
        ("grpo", {"minibatches": 4}, {"score": 4 + 3, "update": 4}),
        ("clip_cov", {"minibatches": 4, "epochs": 2}, {"score": 3, "update": 8}),
        ("ppo", {"minibatches": 2, "critic_epochs": 3}, {"update": 2, "critic": 6}),
        ("reinforce_plus_plus", {"minibatches": 2}, {"score": 2 + 2}),  # decided once, by the KL
    ],
)
def test_how_often_a_step_calls_its_programs(method, updates, wanted):
    config = TrainConfig.of(
        method=method, prompts_per_step=8, samples_per_prompt=4, response_tokens=8, **updates
    )
    recipe = methods.recipe(method, **method_arguments(config))
    shape = named_config("tiny", vocab_size=16)
    run = abstract_run(config.replace(prompt_tokens=4), shape, recipe, jax.devices()[:1], 0)
    found = compiled._calls(run)
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.slow
def test_no_device_of_a_slice_gathers_the_cache_of_others():
    """Some versions of libtpu did, if the layout of the whole cache is requested."""
    pytest.importorskip("libtpu")
    shape = named_config("tiny", vocab_size=512)
    shape = dataclasses.replace(shape, compute_dtype="bfloat16", max_positions=8192)
    options = dict(micro_batches=1, mesh="data=4,tensor=2")
    with jax.enable_x64(False):
        run = run_on("v5e-8", shape, 8, 4, 128, 4096, **options)
        text = run.lower_sample(8, 4).compile().as_text()
    gathered = [line for line in text.splitlines() if " all-gather" in line and "4096" in line]
    assert gathered == []


@pytest.mark.slow
def test_layers_gather_their_weights_and_send_no_parts_around():
    """Without constraints the partitioner multiplied part by part, six times as long by the
    compiler's estimate on this slice."""
    pytest.importorskip("libtpu")
    options = dict(compute_dtype="bfloat16", remat="layers")
    shape = dataclasses.replace(PUBLISHED["qwen3-8b"], **options)
    options |= dict(micro_batches=256, mesh="fsdp=32")
    with jax.enable_x64(False):
        run = run_on("v5e-32", shape, 512, 16, 1024, 8192, **options)
        facts = hlo.read(run.lower_score().compile().as_text())
    assert list(facts.collectives) == ["all-gather", "all-to-all"]
    # The stream of a micro-batch's row, in bfloat16.
    assert facts.collectives["all-to-all"] == hlo.Collective(256, 256 * 2 * 9216 * 4096)


@pytest.mark.slow
def test_products_over_tensor_are_not_cut_into_one_for_each_device():
    """Which takes longer by the compiler's estimate, see `products.compiler_options`."""
    pytest.importorskip("libtpu")
    options = dict(compute_dtype="bfloat16", remat="layers")
    shape = dataclasses.replace(PUBLISHED["qwen2.5-32b"], num_layers=6, **options)
    options |= dict(micro_batches=16, mesh="fsdp=32,tensor=8")
    with jax.enable_x64(False):
        run = run_on("v5e-256", shape, 32, 16, 2048, 20480, **options)
        facts = hlo.read(run.lower_score().compile().as_text())
    sent = {name: found.bytes for name, found in facts.collectives.items()}
    assert sent.get("collective-permute", 0) < sent["all-gather"] / 100
