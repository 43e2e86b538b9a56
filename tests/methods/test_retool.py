"""ReTool and VerlTool: responses that call tools, from what is learned of them to whole runs."""

import json

import numpy as np
import pytest
import training_runs

from rlvr_jax.experience import replies_read
from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.retool import tool_use_reward
from rlvr_jax.types import Rollouts


def read(turns, outcome):
    rows = np.array([outcome], float).reshape(-1)
    batch = Rollouts.of_responses(
        np.ones((1, len(turns)), int), np.ones((1, len(turns)), bool), rows, np.zeros(1)
    )
    return batch.replace(turn=np.array([turns]), outcome=rows)


@pytest.mark.parametrize(
    ("turns", "outcome", "calls", "reward"),
    [
        ([0, 0, 0], 0, 0, -1.0),
        ([0, 1, 2], 0, 1, -0.9),
        ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0, 5, -0.6),
        ([0, 1, 2], 1, 1, 1.0),
    ],
)
def test_a_wrong_answer_is_paid_for_calls_up_to_the_ceiling(turns, outcome, calls, reward):
    batch = read(turns, outcome)
    assert float(replies_read(batch)[0]) == calls
    np.testing.assert_allclose(tool_use_reward()(batch), [reward], rtol=1e-6)
    plain = 1.0 if outcome else -1.0
    np.testing.assert_allclose(tool_use_reward(bonus=0)(batch), [plain])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "given", "curves"),
    [
        ("retool", (), ["experience/malformed_calls", "experience/tool_tokens"]),
        ("verltool", ("mask_void_rows=true",), ["experience/tool_tokens"]),
    ],
)
def test_it_trains_on_responses_that_call_tools(tmp_path, monkeypatch, method, given, curves):
    # A random policy writes both tags now and then.
    monkeypatch.setattr(training_runs, "WORDS", [*training_runs.WORDS, "<words>", "</words>"])
    policy = training_runs.write_policy(tmp_path / "policy")
    config = training_runs.settings(
        policy,
        tmp_path / "run",
        method=method,
        response_tokens=16,
        hyperparameters=("tools=small_environments:words", "style=tags", "describe=false", *given),
    )
    training_runs.quietly(config)
    steps = training_runs.metrics(tmp_path / "run")
    for curve in ("experience/turns", *curves):
        assert max(training_runs.values(steps, curve)) > 0
    assert sum(training_runs.values(steps, "experience/calls")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


def test_what_a_method_is_made_of_is_named():
    label = recipe("verltool", style="fenced").experience.draw[1].label
    assert "toolbox(python" in label and "```python" in label
    with pytest.raises(ValueError, match="tools: style must be one of json, tags, fenced"):
        recipe("verltool", style="yaml")
    with pytest.raises(ValueError, match="a tool must be one of calculator, python, search:PATH"):
        recipe("verltool", tools=("hammer",))


def test_r1_searcher_searches_a_corpus_and_is_paid_by_its_rules(tmp_path):
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('"one"\n"two words"\n')
    for stage in (1, 2):
        chain = recipe("r1_searcher", corpus=str(corpus), stage=stage).experience
        box = chain.draw[1].environment
        state, _ = box.start(None)
        said = box.reply(state, "<|begin_of_query|>words<|end_of_query|>").text
        assert said == "\n<|begin_of_documents|>\n(1) two words\n<|end_of_documents|>\n\n"
    with pytest.raises(ValueError, match="stage must be one of 1, 2, got 3"):
        recipe("r1_searcher", stage=3)


@pytest.mark.slow  # ten seconds
def test_r1_searcher_trains_on_a_task_with_an_environment(tmp_path):
    policy = training_runs.write_policy(tmp_path / "policy")
    config = training_runs.settings(
        policy,
        tmp_path / "run",
        task="small_environments:answering_sums",
        method="r1_searcher",
        response_tokens=10,
        hyperparameters=("stage=1", "segment_tokens=4", "top_p=1"),
        samples_kept=500,
    )
    training_runs.quietly(config)
    steps = training_runs.metrics(tmp_path / "run")
    assert max(training_runs.values(steps, "experience/tool_tokens")) > 0
    for bound in ("max", "min"):
        assert set(training_runs.values(steps, f"ratio/{bound}")) == {1.0}
        drawn_at = training_runs.values(steps, f"sampler_ratio/{bound}")
        np.testing.assert_allclose(drawn_at, 1, atol=2e-5)  # log-probs of float32 agree to 1e-5
    written = [
        json.loads(line)
        for path in sorted((tmp_path / "run" / "samples").iterdir())
        for line in path.read_text().splitlines()
    ]
    lengths = [
        row["turn"].count(turn) for row in written for turn in {*row["turn"]} if turn % 2 == 0
    ]
    assert max(lengths) == 4
    assert np.isfinite(training_runs.values(steps, "loss")).all()
