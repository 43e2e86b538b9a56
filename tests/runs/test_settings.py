"""What settings come to: what a method prescribes, what stands for a rule, what is refused."""

import dataclasses
import inspect
import json
import re
from pathlib import Path

import numpy as np
import pytest
import training_runs

from rlvr_jax import methods
from rlvr_jax.experience import experience, plain
from rlvr_jax.runs import TrainConfig, settings
from rlvr_jax.runs.resolved import resolve
from rlvr_jax.runs.run import check_group_size, make_run
from rlvr_jax.runs.settings import (
    plain as as_text,
    resolved_settings,
    shown_settings,
)
from rlvr_jax.runs.step import collect
from rlvr_jax.tasks import Grade
from rlvr_jax.types import replace

PLAIN = dict(method="grpo", hyperparameters=("kl_coefficient=0",))


def made(model, recipe=None, **changes):
    config = training_runs.settings(model, "unused", **{**PLAIN, **changes})
    recipe = recipe or methods.recipe("grpo", kl_coefficient=0)
    task = training_runs.sums()
    return make_run(resolve(config, task, recipe))


def test_the_docs_name_what_may_differ_in_a_resumed_run():
    page = (Path(__file__).parents[2] / "docs/pods.md").read_text()
    named = re.search(r"These options may\s+differ: ([^.]*)\.", page)[1]
    options = {f"--{name.replace('_', '-')}" for name in settings._FREE - {"preset", "resume"}}
    assert set(re.findall(r"`([^`]+)`", named)) == options


def test_what_a_method_prescribes_is_sampled_with_and_shown(model):
    colder = experience(draw=plain(temperature=0.6))
    recipe = replace(methods.recipe("grpo", kl_coefficient=0), experience=colder)
    run = made(model, recipe, top_p=0.9)
    sampling = run.start.sampler.sampling
    assert (sampling.temperature, sampling.top_p) == (0.6, 0.9)
    assert resolved_settings(run)["temperature"] == 0.6


@pytest.mark.parametrize(
    ("prescribed", "sentence"),
    [
        ({"temprature": 0.6}, r"must prescribe settings among temperature.*got 'temprature'"),
        ({"temperature": 0.6}, "temperature must be 0.6, which method 'grpo' prescribes, got 0.9"),
    ],
)
def test_what_a_method_cannot_prescribe_is_refused(prescribed, sentence):
    with pytest.raises(ValueError, match=sentence):
        TrainConfig.of(method="grpo", temperature=0.9).sampler(prescribed)


def test_a_method_that_weighs_by_the_sampler_refuses_one_that_cuts(model):
    recipe = methods.recipe("rollout_correction")
    changes = dict(method="rollout_correction", hyperparameters=())
    assert made(model, recipe, minibatches=2, **changes).remarks() == []
    with pytest.raises(
        ValueError, match="--top-k, --min-p must be off for method 'rollout_correction'"
    ):
        made(model, recipe, top_k=3, min_p=0.1, **changes)
    (said,) = [each for each in made(model, top_p=0.9).remarks() if each.startswith("--top-p")]
    assert "sampler_ratio" in said


@pytest.mark.parametrize(("method", "refused"), [("grpo", True), ("ppo", False)])
def test_groups_of_one_are_refused_where_a_method_compares_within_them(method, refused):
    config, recipe = TrainConfig.of(method=method, samples_per_prompt=1), methods.recipe(method)
    if refused:
        with pytest.raises(ValueError, match="samples-per-prompt must be at least 2 for method"):
            check_group_size(config, recipe)
    else:
        check_group_size(config, recipe)
    check_group_size(config.replace(samples_per_prompt=2), recipe)


@pytest.mark.thorough
def test_the_shown_settings_say_what_zeros_came_to(model, tmp_path):
    config = training_runs.settings(model, tmp_path / "run", evaluate_every=0, steps=1, **PLAIN)
    training_runs.quietly(config)
    card = json.loads((config.run_dir / "config.json").read_text())
    shown = shown_settings(card)
    wanted = {"response_tokens": training_runs.BUDGET, "evaluate_every": 1, "sampling_batches": 1}
    assert {name: shown[name] for name in wanted} == wanted
    assert shown["micro_batches"] >= 1 and shown["prompt_tokens"] >= 4
    # What was asked for is what a resumed run is compared with.
    assert card["settings"]["response_tokens"] == 0


def test_responses_that_are_cut_teach_nothing_if_asked(model):
    runs = [made(model, mask_truncated=masked) for masked in (False, True)]
    kept, masked = (collect(run, run.initial_state(), 0).batch for run in runs)
    cut = kept.rollouts.truncated
    assert cut.any() and not cut.all()
    wanted = kept.rollouts.mask & ~cut[:, None]
    np.testing.assert_array_equal(masked.rollouts.mask, wanted)
    np.testing.assert_array_equal(masked.rollouts.reward, kept.rollouts.reward)


def test_dynamic_sampling_is_one_setting(model):
    config = training_runs.settings(model, "unused", dynamic_sampling=2, **PLAIN)
    found = resolve(config)
    assert found.card()["loss_terms"][-1] == "experience: refill(when=uniform, rounds=2)"
    # No group is mixed, so all batches are drawn.
    equal = dataclasses.replace(found.task, verify=lambda asked, _: [Grade(0.0) for _ in asked])
    run = make_run(dataclasses.replace(found, task=equal))
    assert collect(run, run.initial_state(), 0).metrics["experience/refill/rounds"] == 2
    dapo = config.replace(method="dapo", hyperparameters=())
    with pytest.raises(ValueError, match=r"dynamic-sampling must be 0 for method 'dapo'.*got 2"):
        resolve(dapo)
    terms = resolve(dapo.replace(dynamic_sampling=0)).card()["loss_terms"]
    shaping = "overlong_shaping(max_length=6, cache_length=1, base=signed_outcome)"
    assert terms[-1] == f"experience: shape(reward={shaping})"
    assert terms[-2].startswith("experience: refill(when=uniform")


@pytest.mark.parametrize("name", methods.names())
def test_what_is_stored_of_a_method_is_the_same_in_every_process(name):
    """A function among the defaults has no place in memory: the run goes on in another process."""
    parameters = inspect.signature(methods.method(name).recipe).parameters.values()
    assert not [each for each in parameters if re.search("0x[0-9a-f]", str(as_text(each.default)))]
