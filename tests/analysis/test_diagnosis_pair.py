"""Two policies by arrays of their answers: identities, floors, what is missing."""

from dataclasses import replace

import numpy as np
import pytest

from rlvr_jax.analysis.diagnosis import Answers, as_json, diagnose_answers, write_page
from rlvr_jax.analysis.diagnosis.likelihood import likelihood
from rlvr_jax.analysis.diagnosis.side_by_side import side_by_side

PROBLEMS, SAMPLES, TOKENS = 40, 8, 5
NAMES = ("first", "second")
RTOL = 1e-12  # float64, sums of at most 1600 terms


def answers(seed=0, rate=0.3, vocabulary=4, vocabulary_name=None, **changes):
    """Answers of a policy that draws tokens evenly and is right at a rate."""
    random = np.random.default_rng(seed)
    shape = (PROBLEMS * SAMPLES, TOKENS)
    tokens = random.integers(vocabulary, size=shape)
    entropy = random.uniform(0.1, 1.0, shape)
    logp = np.full(shape, -np.log(vocabulary))
    fields = {
        "problem": np.repeat(np.arange(PROBLEMS), SAMPLES),
        "outcome": (random.uniform(size=shape[0]) < rate).astype(float),
        "tokens": tokens,
        "mask": np.arange(TOKENS) < random.integers(1, TOKENS + 1, shape[0])[:, None],
        "logp": logp,
        "entropy": entropy,
        "other_logp": logp,
        "other_entropy": entropy,
        "answer": [str(token) for token in tokens[:, 0]],
        "vocabulary": vocabulary_name,
    }
    return Answers(**fields | changes)


def numbers(topics):
    return {title: found["numbers"] for title, found in as_json(topics).items()}


def test_a_policy_is_at_no_distance_of_itself():
    own = answers()
    found = numbers(diagnose_answers(own, own))
    for direction in ("last_to_first", "first_to_last"):
        assert found["Same tokens"]["kl"][direction]["value"] == 0
    assert found["Same tokens"]["fork_overlap"] == 1
    assert found["Responses"]["correct"]["difference"]["value"] == 0
    assert found["Responses"]["correct"]["problems_wanted"] is None


def test_distances_are_the_mean_sums_of_log_ratios():
    before, after = answers(0), answers(1)
    gap = np.random.default_rng(2).normal(size=after.mask.shape)
    after = replace(after, other_logp=after.logp - gap)
    found = likelihood(before, after, NAMES).numbers["kl"]
    total = np.where(after.mask, gap, 0).sum()
    np.testing.assert_allclose(found["last_to_first"]["value"], total / len(after.problem), RTOL)
    np.testing.assert_allclose(
        found["last_to_first"]["nats_a_token"], total / after.mask.sum(), RTOL
    )
    assert found["first_to_last"]["value"] == 0


def test_right_responses_with_a_token_that_was_given_up_are_counted():
    before = answers(rate=1.0)
    given_up = np.where(before.problem[:, None] < PROBLEMS // 4, np.log(0.009), before.logp)
    found = likelihood(replace(before, other_logp=given_up), answers(1), NAMES).numbers
    assert found["right_out_of_reach_of_last"]["value"] == 0.25
    assert found["right_out_of_reach_of_first"]["value"] == 0
    kept = np.where(before.mask, before.logp, np.log(0.009))
    found = likelihood(replace(before, other_logp=kept), answers(1), NAMES).numbers
    assert found["right_out_of_reach_of_last"]["value"] == 0  # padding is no token


def test_a_difference_is_set_against_two_draws_of_the_first_policy():
    before, again, after = answers(0), answers(1), answers(2, rate=0.9, vocabulary=2)
    found = side_by_side(before, after, again, NAMES).numbers
    for name in ("correct", "different_responses"):
        difference, floor = found[name]["difference"], found[name]["floor"]
        assert abs(difference["value"]) > max(abs(floor["low"]), abs(floor["high"]))
    assert found["correct"]["floor"]["value"] == pytest.approx(
        again.outcome.mean() - before.outcome.mean()
    )
    reach = numbers(diagnose_answers(before, after, again))["Solved problems"]
    assert reach["support"]["k"] == SAMPLES  # without the second draw it is half of that
    assert (
        numbers(diagnose_answers(before, after))["Solved problems"]["support"]["k"] == SAMPLES // 2
    )


def test_two_draws_of_one_policy_are_not_told_apart_from_chance():
    first, second, third = answers(0), answers(1), answers(2)
    topics = diagnose_answers(first, second, third, NAMES)
    reach, own = topics[0], numbers(topics)["Responses"]
    assert "not distinguishable from" in " ".join(reach.sentences)
    assert "more than" not in " ".join(reach.sentences)
    gap = own["correct"]["difference"]
    assert gap["low"] <= 0 <= gap["high"]
    # the interval would have to shrink by this factor, so many more problems are wanted
    half = (gap["high"] - gap["low"]) / 2
    assert own["correct"]["problems_wanted"] == np.ceil(PROBLEMS * (half / gap["value"]) ** 2)


def test_the_order_of_the_rows_says_nothing():
    before, after = answers(0), answers(1, rate=0.5)
    order = np.random.default_rng(0).permutation(len(after.problem))
    arrays = ("problem", "outcome", "tokens", "mask", "logp", "entropy")
    arrays += ("other_logp", "other_entropy")
    mixed = {name: getattr(after, name)[order] for name in arrays}
    mixed["answer"] = [after.answer[row] for row in order]
    found = [numbers(diagnose_answers(before, each)) for each in (after, Answers(**mixed))]
    for name, told in found[0]["Responses"].items():
        if name != "calibration":
            assert found[1]["Responses"][name]["last"] == pytest.approx(told["last"], rel=RTOL)
    assert found[0]["Solved problems"] == found[1]["Solved problems"]


def test_problems_weigh_as_they_are_told():
    weights = np.where(np.arange(PROBLEMS) == 3, 1.0, 0.0)
    before, after = (answers(seed, weights=weights) for seed in (0, 1))
    found = numbers(diagnose_answers(before, after))["Responses"]["correct"]
    assert found["last"] == after.outcome[after.problem == 3].mean()


def test_what_was_not_scored_or_named_is_missing():
    plain = {"other_logp": None, "other_entropy": None, "answer": None}
    topics = diagnose_answers(answers(0, **plain), answers(1, **plain))
    told = as_json(topics)
    assert "need logp, entropy, other_logp" in told["Same tokens"]["missing"][0]
    assert "different_final_answers" not in told["Responses"]["numbers"]
    assert any("8 more responses" in line for line in told["Responses"]["missing"])


def test_answers_of_another_engine_need_no_log_probs(tmp_path):
    unknown = {"logp": None, "entropy": None, "other_logp": None, "other_entropy": None}
    before, after, again = (answers(seed, **unknown) for seed in range(3))
    topics = diagnose_answers(before, after, again)
    told = as_json(topics)
    assert told["Solved problems"]["sentences"] and "correct" in told["Responses"]["numbers"]
    assert "entropy_per_token" not in told["Responses"]["numbers"]
    for sentence in (
        "Entropy needs",
        "Calibration needs the log-probs of the responses of the first policy.",
    ):
        assert any(line.startswith(sentence) for line in told["Responses"]["missing"])
    # what one draw does not know is not compared
    told = as_json(diagnose_answers(answers(0), answers(1), again))
    assert "entropy_per_token" not in told["Responses"]["numbers"]
    assert write_page(tmp_path / "page.html", topics, "pair").is_file()


def test_other_tokens_are_compared_by_verdicts_and_variety():
    before, again = (answers(seed, vocabulary_name="one") for seed in (0, 1))
    after = answers(2, vocabulary_name="two")
    topics = diagnose_answers(before, after, again, NAMES)
    told = as_json(topics)
    assert told["Responses"]["numbers"].keys() == {
        *(
            "correct",
            "different_responses",
            "different_correct_responses",
            "different_final_answers",
        )
    }
    assert not told["Same tokens"]["numbers"] and "of one and two." in topics[2].missing[0]
    alike = diagnose_answers(before, answers(2, vocabulary_name="one"), again, NAMES)
    assert {"tokens_per_response", "entropy_per_token", "calibration"} <= alike[1].numbers.keys()
    assert alike[2].numbers["kl"]


def test_nobody_right_and_no_verdicts_are_no_error(tmp_path):
    before = answers(0, outcome=np.full(PROBLEMS * SAMPLES, np.nan))
    topics = diagnose_answers(before, answers(1, rate=0.0))
    missing = " ".join(line for topic in topics for line in topic.missing)
    assert "20 graded responses" in missing and "need one of the first policy" in missing
    assert write_page(tmp_path / "page.html", topics, "pair").is_file()


def test_nothing_is_said_of_a_kind_that_does_not_occur():
    correct, incorrect = answers(0, rate=1.0), answers(1, rate=0.0)
    _, own, same, *_ = diagnose_answers(incorrect, correct, names=NAMES)
    assert "Calibration needs correct and incorrect responses of first." in own.missing
    assert "calibration" not in own.numbers and "AUROC" not in " ".join(own.sentences)
    assert same.numbers["entropy_right"][0] is None and same.numbers["entropy_wrong"][1] is None
    assert any("Each on its own responses: none → 0." in sentence for sentence in same.sentences)


def test_the_overlap_of_forks_is_set_against_what_chance_gives():
    sure = np.zeros((PROBLEMS * SAMPLES, TOKENS))  # every token is at the threshold
    own = answers(0, entropy=sure, other_entropy=sure)
    found = likelihood(own, answers(1), NAMES)
    assert found.numbers["fork_overlap"] == found.numbers["fork_overlap_by_chance"] == 1
    assert any("(chance: 100 %)" in sentence for sentence in found.sentences)
    assert likelihood(answers(0), answers(1), NAMES).numbers[
        "fork_overlap_by_chance"
    ] == pytest.approx(0.2, abs=0.01)


def two_tokens(**changes):
    """Six problems, one right answer of two tokens and a wrong one of one token each."""
    fields = {
        "problem": np.repeat(np.arange(6), 2),
        "outcome": [1.0, 0.0] * 6,
        "tokens": [[0, 1], [2, 9]] * 6,
        "mask": [[True, True], [True, False]] * 6,
        "logp": np.log([[0.5, 0.9], [0.2, 0.7]] * 6),
        "entropy": [[0.6, 0.3], [0.9, 7.0]] * 6,
        "other_logp": np.log([[0.8, 0.905], [0.1, 0.001]] * 6),
        "other_entropy": [[0.2, 0.3], [0.4, 7.0]] * 6,
    }
    return Answers(**fields | changes)


def test_what_changed_token_by_token_is_worked_by_hand():
    words = {0: "2", 1: " so", 2: "cat"}
    sizes = {"branching": [[3, 1], [4, 64]] * 6, "other_branching": [[2, 1], [1, 64]] * 6}
    before = two_tokens(words=words, **sizes)
    after = two_tokens(entropy=[[0.1, 0.1], [0.5, 7.0]] * 6)
    topic = likelihood(before, after, NAMES)
    found = topic.numbers
    # probabilities moved by .3, .005 and .1; entropies .6, .3, .9: the last is the fifth
    assert found["hardly_changed"]["value"] == pytest.approx(1 / 3)
    assert found["change_on_forks"] == pytest.approx(0.1 / 0.405)
    # (3 + 1 + 4) / 3 → (2 + 1 + 1) / 3
    branching = found["branching"]
    assert branching["value"] == pytest.approx(-4 / 3)
    assert (branching["largest"], branching["at_largest"]) == (4, 6)
    assert (branching["first"], branching["last"]) == pytest.approx((8 / 3, 4 / 3))
    assert "2.67 → 1.33, mean over the n = 18 tokens of first" in topic.sentences[-1]
    classes = found["classes"]
    assert list(classes) == ["formal", "logical", "semantic"]  # no second thoughts, no row
    assert classes["formal"]["tokens"] == 6 and classes["formal"]["entropy"] == [
        pytest.approx(0.6),
        pytest.approx(0.2),
    ]
    assert classes["semantic"]["fraction_of_change"] == pytest.approx(0.1 / 0.405)
    assert [row[-2] for row in topic.tables[0].rows] == ["33 %"] * 3
    # a third of the tokens is wrong: ⅓ · -.4, ⅔ · -.35
    parts = found["entropy_change_by_outcome"]
    assert parts["incorrect"] == pytest.approx(-0.4 / 3) and parts["fractions"] == 0
    assert parts["correct"] == pytest.approx(-0.35 * 2 / 3)


def test_branching_and_classes_say_what_they_need():
    missing = likelihood(two_tokens(), two_tokens(), NAMES).missing
    assert [line.split(" needs ")[0].split(" need ")[0] for line in missing] == [
        "The number of likely tokens",
        "Classes of tokens",
    ]


def test_policies_without_a_token_say_so():
    empty = two_tokens(mask=np.zeros((12, 2), bool))
    for pair in ((empty, two_tokens()), (two_tokens(), empty)):
        assert "Entropy on the same tokens needs a token of both policies." in (
            likelihood(*pair, NAMES).missing
        )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"problem": np.arange(0)}, "one axis with a row"),
        ({"tokens": None}, "tokens must be given, got None"),
        ({"outcome": np.zeros(3)}, r"outcome must have shape \(320,\)"),
        ({"logp": np.zeros((2, 2))}, r"logp must have shape \(320, 5\)"),
        ({"branching": np.zeros((2, 2))}, r"branching must have shape \(320, 5\)"),
        ({"answer": ["1"]}, "answer must have 320 entries, got 1"),
        ({"problem": np.arange(320) // 7}, "equally often, got 5 to 7 rows"),
        ({"weights": np.ones(2)}, "weights must have shape"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        answers(**changes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"problem": np.repeat(np.arange(PROBLEMS), SAMPLES) + 1}, "must answer the 40 problems"),
        ({"weights": np.arange(PROBLEMS)}, "must weigh the problems as before does"),
    ],
)
def test_answers_to_other_problems_are_refused(changes, sentence):
    with pytest.raises(ValueError, match=f"after {sentence}"):
        diagnose_answers(answers(0), answers(1, **changes))
