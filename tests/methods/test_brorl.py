"""BroRL: hundreds of rollouts per prompt."""

import pytest

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.baselines.brorl import count_broadened
from rlvr_jax.runs import parse_config, preset


def broadened(rows, usual):
    """The metric for one group with these outcomes."""
    chain = experience(stages=[count_broadened(usual)])
    own = numpy_actor.setting(chain, prompts=1, samples=len(rows))
    batch = chain.collect(numpy_actor.NumpyActor(), chain.init(own), 0, own).batch
    stage = chain.stages["count_broadened"]
    graded = batch.graded([numpy_actor.Grade(float(outcome)) for outcome in rows])
    same, _, metrics = stage.apply(graded, None, (), None)
    assert same is graded
    return metrics["broadened_fraction"]


@pytest.mark.parametrize(
    ("outcomes", "usual", "counted"),
    [
        ([0, 0, 0, 1], 2, 1),
        ([1, 1, 0, 1], 2, 1),
        ([0, 1, 0, 0], 2, 0),  # mixed among the first two
        ([0, 0, 0, 0], 2, 0),  # never mixed
        ([0, 0, 0, 1], 4, 0),
    ],
)
def test_a_group_counts_if_only_its_later_responses_make_it_mixed(outcomes, usual, counted):
    assert broadened(outcomes, usual) == counted


@pytest.mark.parametrize("task", ["brackets", "hinted_brackets", "arithmetic", "gsm8k"])
def test_its_preset_samples_512_responses_to_few_prompts_in_several_batches(task):
    config = preset(task, "brorl")
    assert config.sampling.samples_per_prompt == 512
    assert config.sampling.prompts_per_step == 4
    assert config.sampling_batch() == (1, 512)
    few = parse_config(["--method", "brorl", "--task", task, "--samples-per-prompt", "16"])
    assert few.sampling.samples_per_prompt == 16
