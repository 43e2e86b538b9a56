"""SE-Bench: sampled with the documentation, trained without it."""

import numpy as np
import pytest
import training_runs

from rlvr_jax import tasks
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe
from rlvr_jax.methods.guidance.se_bench import documentation


def collected(closed):
    chain = recipe("se_bench", closed=closed).experience
    ((found, _, _),) = numpy_actor.walk(
        chain, numpy_actor.NumpyActor(), steps=1, own=numpy_actor.setting(chain, prompts=4)
    )
    return found.batch, found.metrics


def test_only_the_prompt_of_the_loss_differs_between_closed_and_open():
    (closed, metrics), (opened, others) = (collected(kind) for kind in (True, False))
    assert metrics["spliced_fraction"] == 1 and others["spliced_fraction"] == 0
    assert (closed.rollouts.prompt_tokens != opened.rollouts.prompt_tokens).any(axis=1).all()
    for name in ("tokens", "mask", "length", "group", "outcome", "reward", "behaviour_logp"):
        np.testing.assert_array_equal(
            getattr(closed.rollouts, name), getattr(opened.rollouts, name)
        )
    assert closed.rollouts.old_logp is None


def test_the_documentation_is_all_hints_in_the_form_of_the_task():
    task = tasks.load("renamed_package")
    prompt = task.train[0]
    assert documentation().show(prompt, task).text == f"{prompt.hints[0]}\n\n{prompt.text}"
    hinted = tasks.load("hinted_brackets")
    prompt = hinted.train[0]
    assert f"? {prompt.hints[0]} >" in documentation().show(prompt, hinted).text


@pytest.mark.thorough
def test_the_first_ratio_is_1_under_the_training_prompt(tmp_path):
    """The sampler's log-probs have the documentation; old and new ones have not."""
    steps = training_runs.on_brackets(
        "se_bench", tmp_path, task="hinted_brackets", minibatches=1, epochs=1
    )
    first = steps[1]
    assert first["experience/spliced_fraction"] == 1
    assert first["ratio/min"] == pytest.approx(1, abs=1e-5)
    assert first["ratio/max"] == pytest.approx(1, abs=1e-5)
