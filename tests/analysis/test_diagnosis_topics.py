"""Formats, ties, differential information and interference of stored responses, by hand."""

import json

import numpy as np
import pytest
from analysis_runs import write_run

from rlvr_jax.analysis.diagnosis import Answers
from rlvr_jax.analysis.diagnosis.formats import FORMATS, Texts, formats, formats_of_answers
from rlvr_jax.analysis.diagnosis.information import information
from rlvr_jax.analysis.diagnosis.of_run import diagnose_run
from rlvr_jax.analysis.diagnosis.side_by_side import side_by_side
from rlvr_jax.analysis.diagnosis.ties import ties
from rlvr_jax.analysis.diagnosis.winners import winners

NAMES = ("first", "second")
RTOL = 1e-12  # float64


def answers(tokens, outcome, **fields):
    """Responses of one token each, a list for each problem."""
    flat = np.ravel(tokens)[:, None]
    problem = np.repeat(np.arange(len(tokens)), len(tokens[0]))
    arrays = {k: np.ravel(v)[:, None] if k != "words" else v for k, v in fields.items()}
    return Answers(problem, np.ravel(outcome), flat, np.ones(flat.shape, bool), **arrays)


def test_formats_are_counted_by_the_first_rule_that_matches():
    rules = {"sum": r"\+", "product": r"\*"}
    before = Texts("a", ["1 + 2", "1 * 2", "3", "1 + 2 * 3"], [1, 0, 0, 1])
    after = Texts("b", ["1 * 2", "1 * 2", "1 * 2", "1 + 2"], [1, 1, 0, 0])
    topic = formats(before, after, rules=rules)
    found = topic.numbers
    assert found["formats"] == ["sum", "product", "other"]
    assert found["fraction_before"] == [0.5, 0.25, 0.25] and found["fraction_after"] == [
        0.25,
        0.75,
        0,
    ]
    assert found["total_variation"] == 0.5 and found["dominant"] == 1
    assert not found["same_winner"] and not found["best_format_won"]
    # (0.75 - 0.25) of the products at the later rate 2/3; no sum is correct later.
    np.testing.assert_allclose(found["between_formats"], 0.5 * 2 / 3, RTOL)
    assert "“product”. It was not the most used one" in topic.sentences[1]


def test_formats_are_read_from_a_run_and_from_words(tmp_path):
    run = write_run(tmp_path / "run", model="gone")
    for step, response in ((1, "plain"), (60, "\\boxed{3}")):
        line = {"response": response, "outcome": 1.0, "prompt": "p", "tokens": ["x"]}
        (run / "samples" / f"step_{step:06}.jsonl").write_text(json.dumps(line) + "\n")
    (topic,) = (t for t in diagnose_run(run, rules=FORMATS) if t.title == "Formats")
    assert topic.numbers["total_variation"] == 1 and "“boxed”" in topic.sentences[1]
    words = {0: "(", 1: ")"}
    own = [answers([[token, 0]] * 2, [[0, 1]] * 2, words=words) for token in (0, 1)]
    topic = formats_of_answers(*own, None, NAMES, {"left": r"^\("})
    assert topic.numbers["fraction_after"] == [0.5, 0.5]
    assert "--formats" in formats_of_answers(*own, None, NAMES, FORMATS).missing[0]


def test_ties_are_different_correct_responses_of_one_value():
    own = answers([[1, 1, 2, 3], [1, 1, 1, 2], [4, 4, 4, 4]], [[1, 1, 1, 0], [1, 1, 1, 0], [0] * 4])
    found = ties(own, "first").numbers
    assert found["tied"]["value"] == 0.5 and found["tied"]["prompts"] == 2
    assert found["best_responses"] == 2
    distance = found["distance"]
    assert distance["0"] == {"0.001": 2, "0.01": 2, "0.1": 2}
    for weight, own_row in distance.items():
        for delta, value in own_row.items():
            assert weight == "0" or 0 < value <= float(delta) / float(weight)
    assert ties(answers([[1, 2]], [[0, 0]]), "first").missing


def test_differential_information_is_that_of_the_candidates_of_both():
    log = np.log
    before = answers(
        [[1, 2, 2, 2]],
        [[1, 0, 0, 0]],
        logp=log([[0.2, 0.8, 0.8, 0.8]]),
        other_logp=log([[0.6, 0.4, 0.4, 0.4]]),
    )
    after = answers(
        [[1, 1, 1, 1]], [[1, 1, 1, 1]], logp=log([[0.6] * 4]), other_logp=log([[0.2] * 4])
    )
    found = information(before, after, NAMES).numbers
    q = np.array([3, 0.5]) / 3.5
    assert found["candidates"] == 2
    np.testing.assert_allclose(found["set_entropy"]["value"], -np.sum(q * log(q)), RTOL)
    assert found["pairs_won"]["value"] == 1
    np.testing.assert_allclose(found["preferred"]["value"], 1 / (1 + 6**-0.1), RTOL)
    np.testing.assert_allclose(found["log_ratio_of_correct"]["value"], log(3), RTOL)
    rejected = np.array([0.6, 0.4]) ** 0.9 * np.array([0.2, 0.8]) ** 0.1
    expected = rejected[0] / rejected.sum()
    np.testing.assert_allclose(found["correct_mass"]["rejected"]["value"], expected, RTOL)
    assert found["effective_samples"] == pytest.approx(4)
    assert "logp" in information(before, answers([[1] * 4], [[1] * 4]), NAMES).missing[0]


def test_the_likely_take_all_if_the_gain_grows_with_the_first_log_prob():
    old = np.log([[0.1, 0.5], [0.2, 0.5], [0.4, 0.5], [0.4, 0.4]])
    before = answers(
        [[1, 2]] * 4, [[1, 0], [1, 0], [1, 0], [0, 0]], logp=old, other_logp=1.5 * old - np.log(0.1)
    )
    found = winners(before, before, NAMES).numbers
    np.testing.assert_allclose(found["winner_slope"], 0.5, RTOL)
    assert found["watched_problems"] == 3 and found["lowered_problems"] == 0
    assert found["hard_problems"] == [3]
    assert (
        "3 problems"
        in winners(answers([[1]], [[1]], logp=[[0]], other_logp=[[0]]), before, NAMES).missing[0]
    )


def test_texts_of_a_problem_are_compared_pair_by_pair():
    """Two equal texts among three: hand-made values of the three measures."""
    own = Answers(
        np.zeros(3, int), np.ones(3), [[1, 2, 3], [1, 2, 3], [4, 5, 6]], np.ones((3, 3), bool)
    )
    found = side_by_side(own, own, None, NAMES).numbers
    jaccard = found["Jaccard_distance"]["first"]
    vendi = found["Vendi_score"]["first"]
    bleu = found["self-BLEU"]["first"]
    np.testing.assert_allclose([jaccard, bleu], [2 / 3, 2 / 3], RTOL)
    np.testing.assert_allclose(vendi, np.exp(-2 / 3 * np.log(2 / 3) - np.log(1 / 3) / 3), 1e-9)
