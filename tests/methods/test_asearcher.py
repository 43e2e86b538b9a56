"""ASearcher leaves groups out in which nothing was right."""

import numpy as np
import pytest
import training_runs

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe


@pytest.mark.slow
def test_groups_without_a_right_answer_teach_nothing_and_others_do():
    chain, seen = recipe("asearcher", staleness=0).experience, set()
    for found, _, _ in numpy_actor.walk(chain, steps=6):
        batch = found.batch
        assert len(batch.groups) == 4
        for rows, outcome in zip(batch.groups, batch.outcomes(), strict=True):
            correct = bool(outcome.max() > 0)
            assert batch.rollouts.mask[rows].any() == correct
            seen.add((correct, bool(outcome.min() == outcome.max())))
    # Among those that teach are groups in which all were right: only their advantages are 0.
    assert {(False, True), (True, False)} <= seen


def run_of(tmp_path, *hyperparameters, **changes):
    config = training_runs.settings(
        training_runs.write_policy(tmp_path / "policy"),
        tmp_path / "run",
        method="asearcher",
        hyperparameters=hyperparameters,
        **changes,
    )
    training_runs.quietly(config)
    steps = training_runs.metrics(tmp_path / "run")
    assert np.isfinite(training_runs.values(steps, "loss")).all()
    assert max(training_runs.values(steps, "gradient_norm")) > 0
    return steps


@pytest.mark.slow
def test_it_trains_on_answers_that_search(tmp_path):
    task = "small_environments:answering_sums"
    steps = run_of(tmp_path, task=task, response_tokens=10)
    assert max(training_runs.values(steps, "experience/tool_tokens")) > 0
    assert sum(training_runs.values(steps, "experience/stale_tokens")) > 0


@pytest.mark.slow
def test_it_trains_on_answers_that_went_on_under_newer_weights(tmp_path):
    steps = run_of(tmp_path, "staleness=2", steps=4, samples_per_prompt=2, response_tokens=20)
    assert sum(training_runs.values(steps, "experience/stale_tokens")) > 0


def test_a_corpus_is_searched_and_what_does_not_go_together_is_refused(tmp_path):
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('"one"\n"two words"\n')
    tools = (f"search:{corpus}",)
    draw = recipe("asearcher", tools=tools, style="tags").experience.draw[1]
    box = draw.environment
    said = box.reply(box.start(None)[0], "<search>words</search>").text
    assert said == "\n<output>(1) two words</output>\n"
    assert "staleness=4" in draw.label and "turn_tokens=1024" in draw.label
    with pytest.raises(ValueError, match="asearcher: staleness must be at least 0, got -1"):
        recipe("asearcher", staleness=-1)
