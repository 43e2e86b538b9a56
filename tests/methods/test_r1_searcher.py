"""R1-Searcher: learning to search, first to make queries, then to use the documents."""

import json

import numpy as np
import pytest
import training_runs

from rlvr_jax.methods import recipe


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
        samples_stored=500,
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
