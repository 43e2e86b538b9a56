"""Runs that cannot learn, or whose policy cannot read its prompts, end before they begin."""

import json

import numpy as np
import pytest
import training_runs

from rlvr_jax import policy
from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.learnable import check_first_step
from rlvr_jax.experience.prompts import check_readable, encode_prompts
from rlvr_jax.tasks import Grade, GradingError, Prompt


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ("never", r"got (\d+) of \1 ungraded: nothing .* the gold answer .* is ungraded"),
        ("gold_never", r"known answers must be graded, got (\d+) of \1 ungraded: nothing"),
        ("gold_alone", r"16 of 16 ungraded in the first step \(raised: 16\): nothing can"),
        ("gold_and_one", r"15 of 16 ungraded in the first step \(raised: 15\)"),
        ("raising", r"known answers must be graded, got (\d+) of \1 ungraded: nothing"),
        ("without_golds", r"16 of 16 ungraded in the first step"),
    ],
)
def test_a_run_that_is_almost_never_graded_ends_with_the_reason(model, tmp_path, task, told):
    config = training_runs.settings(
        model, tmp_path / "run", task=f"learnable_tasks:{task}", failed_grades="no_verdict"
    )
    with pytest.raises(GradingError, match=told):
        training_runs.quietly(config)
    assert not list((tmp_path / "run").glob("checkpoints/*"))


def test_rows_to_imitate_need_no_grade():
    batch = numpy_actor.walk(experience(), steps=1)[0][0].batch
    ungraded = batch.graded([Grade(None)] * len(batch))
    with pytest.raises(GradingError, match="got 16 of 16 ungraded in the first step"):
        check_first_step("numbers", ungraded)
    check_first_step("numbers", ungraded.with_rollouts(supervised=np.ones(len(batch), bool)))


@pytest.mark.thorough
def test_a_run_that_is_graded_now_and_then_goes_on(model, tmp_path):
    config = training_runs.settings(
        model, tmp_path / "run", task="learnable_tasks:three_of_four", steps=1
    )
    training_runs.quietly(config)
    assert training_runs.metrics(config.run_dir)[-1]["verifier_no_verdict"] == 12


@pytest.fixture(scope="module")
def words(model):
    return policy.tokenizer(str(model))


# Prompts, and which words a policy that knows `training_runs.WORDS` would read as unknown.
TEXTS = [
    (["1 + 2 =", "3 * 4 ="], "'\\*'", 1),
    (["one + 2 ="], "'one'", 1),
    (["1 + 2 =", "9 + 1 =", "12 + 3 ="], "'9'", 2),
    (["1 + 2 = ?"], "'\\?'", 1),
    (["1+2="], "'1\\+2='", 1),
    (["how many ? 1"], "'how', 'many', '\\?'", 1),
]


@pytest.mark.parametrize(("texts", "wanted", "number"), TEXTS)
def test_words_that_the_policy_does_not_know_are_an_error(words, texts, wanted, number):
    table = encode_prompts(words, [Prompt(text) for text in texts], 0, "train")
    told = rf"got {wanted} in .*first of {number} such prompts of {len(texts)}\. Use"
    with pytest.raises(ValueError, match=f"train prompts must have words .*{told}"):
        check_readable(table, texts, "train")


@pytest.mark.parametrize("texts", [["1 + 2 ="], ["<unk> + 2 ="], ["8", "<pad> 1 <eos>"]])
def test_words_that_it_knows_are_none_the_token_of_unknown_words_included(words, texts):
    table = encode_prompts(words, [Prompt(text) for text in texts], 0, "train")
    check_readable(table, texts, "train")


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_run_on_prompts_with_unknown_words_does_not_begin(model, tmp_path, split):
    config = training_runs.settings(model, tmp_path / "run", task=f"learnable_tasks:odd_{split}")
    with pytest.raises(ValueError, match=f"{split} prompts must have words .* got 'plus' in"):
        training_runs.quietly(config)
    assert not (tmp_path / "run" / "config.json").exists()


@pytest.mark.thorough
def test_samples_have_the_numbers_of_what_is_not_learned_from(model, tmp_path):
    config = training_runs.settings(
        model, tmp_path / "run", steps=1, mask_truncated=True, samples_stored=4, response_tokens=2
    )
    training_runs.quietly(config)
    lines = (config.run_dir / "samples/step_000001.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    cut = [row for row in rows if row["truncated"]]
    assert cut and len(cut) < len(rows)
    for row in rows:
        assert np.all(np.array(row["entropy"]) > 0.1) and np.all(np.array(row["logp"]) < -0.01)


@pytest.mark.thorough
def test_samples_have_no_numbers_of_tokens_that_a_tool_wrote(model, tmp_path):
    config = training_runs.settings(
        model,
        tmp_path / "run",
        steps=1,
        method="small_environments:in_turns",
        response_tokens=10,
        samples_stored=4,
    )
    training_runs.quietly(config)
    lines = (config.run_dir / "samples/step_000001.jsonl").read_text().splitlines()
    told = 0
    for row in map(json.loads, lines):
        for origin, entropy, logp in zip(row["origin"], row["entropy"], row["logp"], strict=True):
            assert (entropy is None, logp is None) == (origin == 2, origin == 2)
            told += origin == 2
    assert told
