"""One run directory: verdicts of the diagnosis, and sentences about missing files."""

import json
import re
import shutil

import numpy as np
import pytest
from analysis_runs import write_run
from counted_runs import PROBLEMS, WEIGHT, counts, write_counted
from safetensors.numpy import save_file

from rlvr_jax.analysis import load_run
from rlvr_jax.analysis.diagnosis.of_run import diagnose_run
from rlvr_jax.analysis.diagnosis.page import write_page
from rlvr_jax.analysis.diagnosis.parameters import parameters
from rlvr_jax.analysis.diagnosis.practice import practice
from rlvr_jax.analysis.diagnosis.reach import reach
from rlvr_jax.analysis.diagnosis.uncertainty import uncertainty
from rlvr_jax.analysis.diagnosis.writing import writing


def names(run):
    return {topic.title: topic for topic in run}


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        (np.full(PROBLEMS, 12), "Solves more"),
        (np.repeat([16, 0], PROBLEMS // 2), "Sharpened at a price"),
        (np.full(PROBLEMS, 4), "No change detected"),
        (np.repeat([4, 0], PROBLEMS // 2), "Solves less"),
    ],
)
def test_the_verdict_says_what_happened_at_one_and_at_many_tries(after, verdict):
    topic = reach(counts(np.full(PROBLEMS, 4)), counts(after), ("the start", "the end"))
    assert topic.sentences[0].startswith(verdict)


def test_what_is_found_and_lost_is_set_against_a_second_draw():
    before, after = np.full(PROBLEMS, 4), np.repeat([16, 0], PROBLEMS // 2)
    found = reach(counts(before), counts(after), ("a", "b")).numbers
    support = found["support"]
    assert support["k"] == 8 and support["lost_above_floor"]["low"] > 0
    assert support["floor"]["expanded"] == support["floor"]["shrunk"] > 0
    assert found["changed_problems"]["better"] == PROBLEMS // 2
    assert found["unsolved"] == {"first": 0, "reached": 0, "last": PROBLEMS // 2}


def test_unsolved_problems_that_are_reached_are_set_against_a_second_draw():
    before, after, again = np.zeros((3, 10), int)
    after[:4], again[2:5] = 1, 3
    before[9], again[9] = 2, 1
    told = reach(counts(before), counts(after), ("a", "b"), counts(again))
    assert told.numbers["unsolved"] == {"first": 9, "reached": 4, "last": 6, "floor": 3}
    place = told.sentences.index(
        "Of these b solves 4 at least once, a second sampling of a 3. Read these solutions: an"
        " error of the verifier looks the same."
    )
    assert told.sentences[place - 1].startswith("Solved by a in none of 16 samples: 9 problems")
    # 4 of b alone, 1 of a alone: 2 · (1 + 5) / 2⁵
    assert told.numbers["solved_at_all"]["p_value"] == pytest.approx(0.375)
    alone = reach(counts(before), counts(after), ("a", "b"))
    assert "floor" not in alone.numbers["unsolved"]
    assert any("needs 16 more samples of each" in line for line in alone.missing)


def test_an_evaluation_that_is_too_small_says_how_large_it_should_be():
    random = np.random.default_rng(0)
    before, after = random.integers(0, 5, (2, 12))
    topic = reach(counts(before, n=4), counts(after, n=4), ("a", "b"))
    more, chance, again = topic.missing
    assert re.fullmatch(r"A difference of 0.01 in pass@2 needs about [\d,]+ problems.", more)
    assert chance == "Chance at k = 4 needs 8 samples per problem; there are 4."
    assert again.endswith("needs 4 more samples of each.")
    # The bound of two samples is 1.5.
    assert not any("are not seen" in sentence for sentence in topic.sentences)
    more = reach(counts(before), counts(after), ("a", "b"))
    assert any("solve rates below 0.37 are not seen" in sentence for sentence in more.sentences)


def test_one_sample_a_problem_is_compared_at_the_first_try():
    topic = reach(counts([0, 1, 1], n=1), counts([1, 1, 1], n=1), ("a", "b"))
    assert list(topic.numbers["gaps"]) == ["pass@1"] and "support" not in topic.numbers


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_samples_carry_no_verdict_about_many_tries(n):
    before, after = np.zeros(PROBLEMS), np.full(PROBLEMS, n)
    topic = reach(counts(before, n=n), counts(after, n=n), ("a", "b"))
    assert topic.sentences[0].startswith("Solves more: pass@1 is higher (+1.00")
    assert topic.missing[0] == f"pass@k with k > 1 needs 4 samples per problem; there are {n}."
    assert set(topic.cards) == {"first try", "change"}


@pytest.mark.parametrize(("problems", "verdict"), [(5, "No change"), (6, "Solves more")])
def test_fewer_problems_than_a_test_could_tell_carry_no_verdict(problems, verdict):
    topic = reach(counts(np.zeros(problems)), counts(np.full(problems, 16)), ("a", "b"))
    assert topic.sentences[0].startswith(verdict)
    few = "The direction of pass@k needs at least 6 problems."
    assert (few in topic.missing) == (problems < 6)


def test_other_problems_are_not_compared():
    with pytest.raises(
        ValueError, match="must have sampled the same prompts 16 times, got 2 prompts 8"
    ):
        reach(counts([1, 2], n=8), counts([1, 2]), ("a", "b"))


def test_entropy_that_was_spent_is_called_so(tmp_path):
    topic = uncertainty(load_run(write_run(tmp_path / "run", every=5)))
    assert topic.sentences[0].startswith("Entropy changed by −")
    assert topic.numbers["law"]["first_points"] == 3
    plain = topic.sentences[-1]
    assert plain.endswith("published for runs without entropy control.")
    own = load_run(write_run(tmp_path / "clip_cov", method="clip_cov", every=5))
    assert "has further loss terms" in uncertainty(own).sentences[-1]
    old = load_run(write_run(tmp_path / "old", every=5, loss_terms=[]))
    assert "does not record whether" in uncertainty(old).sentences[-1]
    assert [chart["title"] for chart in topic.charts] == ["Token entropy", "Reward against entropy"]


def entropies(path, values, **others):
    """A run of one number a step."""
    path.mkdir()
    (path / "config.json").write_text("{}")
    with (path / "metrics.jsonl").open("w") as file:
        for step, value in enumerate(values, start=1):
            own = {name: column[step - 1] for name, column in others.items()}
            file.write(json.dumps({"step": step, "entropy": value} | own) + "\n")
    return uncertainty(load_run(path))


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ([0.0] * 20, "from 0"),
        ([0.0] * 10 + [0.5] * 10, "from 0"),
        ([0.5, 0.49] + [0.495] * 16 + [0.49] * 2, "by −1 %"),
        ([0.5] * 10 + [0.2] * 10, "by −60 %"),
    ],
)
def test_the_share_of_a_drop_is_said_of_a_drop(tmp_path, values, word):
    topic = entropies(tmp_path / "run", values)
    assert topic.sentences[0].startswith(f"Entropy changed {word}: ")
    assert ("first fifth" in " ".join(topic.sentences)) == (word == "by −60 %")
    json.dumps(topic.numbers, allow_nan=False)


def test_the_stages_of_a_run_part_the_change_of_entropy(tmp_path):
    steps = np.arange(1, 41)
    # up to step 20 incorrect responses lose 0.4 nats, and from there on nothing moves but the
    # shares
    incorrect = 0.9 - 0.4 * np.minimum(steps - 1, 19) / 19
    correct = np.full(40, 0.2)
    share = np.where(steps <= 20, 0.75, 0.75 - 0.5 * (steps - 20) / 20)
    columns = {
        "reward": np.minimum(steps, 20) / 40,
        "entropy/incorrect": incorrect,
        "entropy/correct": correct,
    }
    total = share * incorrect + (1 - share) * correct
    topic = entropies(
        tmp_path / "run", total.tolist(), **{n: c.tolist() for n, c in columns.items()}
    )
    found = topic.numbers["stages"]
    assert (found["end"], found["rise"]) == (20, pytest.approx(19 / 40))
    # two steps at either end, so 18 of 19 parts of the fall: .75 · -.4 · 18 / 19
    assert found["rising"]["incorrect"] == pytest.approx(-0.3 * 18 / 19)
    assert (found["rising"]["correct"], found["rising"]["fractions"]) == pytest.approx((0, 0))
    assert (found["plateau"]["incorrect"], found["plateau"]["correct"]) == pytest.approx((0, 0))
    # of steps 20, 21 and 39, 40: shares of .7375 and .2625, entropies .3 apart
    assert found["plateau"]["fractions"] == pytest.approx(-0.475 * 0.3)
    (place,) = (i for i, line in enumerate(topic.sentences) if line.startswith("The training"))
    rise, until, after = topic.sentences[place : place + 3]
    assert rise.startswith("The training reward changed by +0.475 until step 20 of 40, then")
    assert until.startswith("Until then entropy") and after.startswith("After it entropy")


def test_a_run_without_a_rise_or_with_few_steps_has_no_stages(tmp_path):
    flat = entropies(tmp_path / "flat", [0.2] * 20, reward=[0.4] * 20)
    assert flat.numbers["stages"]["end"] is None
    assert any(sentence.startswith("No rise") for sentence in flat.sentences)
    short = entropies(tmp_path / "short", [0.2] * 9, reward=list(range(9)))
    assert "The stages of a run need 10 steps with `reward`; there are 9." in short.missing
    rising = list(range(20))
    alone = entropies(tmp_path / "alone", [0.2] * 20, reward=rising)  # all wrong, or an old run
    assert alone.numbers["stages"]["rising"] is None
    assert any("rising stage needs entropy/correct" in line for line in alone.missing)


def test_the_end_is_the_end_of_the_run(tmp_path):
    correct, incorrect = [0.1] * 10 + [None] * 10, [0.3] * 18 + [0.2] * 2
    columns = {"entropy/correct": correct, "entropy/incorrect": incorrect}
    assert "correct" not in entropies(tmp_path / "none_right", [0.2] * 20, **columns).numbers
    columns["entropy/correct"] = [0.1] * 19 + [None]
    found = entropies(tmp_path / "some_right", [0.2] * 20, **columns).numbers
    assert (found["correct"], found["incorrect"]) == (0.1, 0.2)


def test_groups_and_visits_are_counted(tmp_path):
    run = write_counted(tmp_path / "run", np.full(PROBLEMS, 12))
    topic = practice(load_run(run))
    assert topic.numbers["first"] == {"all_incorrect": 0, "mixed": 1, "all_correct": 0}
    assert topic.numbers["last"] == {"all_incorrect": 0, "mixed": 0.5, "all_correct": 0.5}
    assert "(first and last 2 steps, n = 2 and 2 groups)" in topic.sentences[0]
    assert (
        "1 have a higher mean outcome the last time than the first time, 0 a lower one"
        in (topic.sentences[1])
    )
    assert "back to their mean" not in topic.sentences[1]
    chosen = write_counted(
        tmp_path / "chosen", np.full(PROBLEMS, 12), loss_terms=["ppo_clip", "experience: replay"]
    )
    assert "back to their mean" in practice(load_run(chosen)).sentences[1]
    assert topic.numbers["visits"] == {"prompts": 1, "up": 1, "down": 0, "p_value": 1.0}


def test_kept_responses_are_compared_at_equal_numbers_of_tokens(tmp_path):
    topic = writing(load_run(write_run(tmp_path / "run", method="clip_cov", responses=40)))
    first, last = (topic.numbers[f"step_{step}"] for step in (1, 60))
    assert first["distinct_2_tokens"] == last["distinct_2_tokens"] == last["tokens"]
    assert 0.5 < last["entropy_in_forks"] <= 1 and first["responses"] == 40
    words, classes = topic.tables
    assert words[2]
    # "3 * ( 9 - 4 = 5 ) = 15 ." and numbers, operators and brackets are formal
    assert [row[0] for row in classes[2]] == ["formal", "semantic"]
    assert sum(row[3] for row in classes[2]) == last["tokens"]
    assert last["classes"]["semantic"]["number"] == 40
    assert classes[1] == [
        "class",
        *("tokens, step 1", "mean entropy, step 1", "tokens, step 60", "mean entropy, step 60"),
    ]


def rewritten(run, change):
    """The run with every kept response changed."""
    for path in (run / "samples").iterdir():
        rows = [change(json.loads(line)) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return load_run(run)


def test_what_a_tool_wrote_is_not_taken_for_the_policys(tmp_path):
    def answered(row):
        told = {"tokens": ["out"] * 9, "entropy": [7.0] * 9, "logp": [-9.0] * 9}
        own = len(row["tokens"])
        return row | {n: row[n] + told[n] for n in told} | {"origin": [0] * own + [2] * 9}

    run = write_run(tmp_path / "run", responses=40)
    plain = writing(load_run(run))
    with_tool = writing(rewritten(run, answered))
    assert with_tool.sentences == plain.sentences and with_tool.tables == plain.tables


def test_responses_without_log_probs_say_nothing_of_calibration(tmp_path):
    run = write_run(tmp_path / "run", responses=40)
    topic = writing(rewritten(run, lambda row: {n: row[n] for n in row if n != "logp"}))
    assert "calibration" not in topic.numbers["step_60"] and len(topic.sentences) == 1


@pytest.mark.parametrize(("method", "told"), [("grpo", True), ("clip_cov", False)])
def test_calibration_needs_right_and_wrong_responses(tmp_path, method, told):
    topic = writing(load_run(write_run(tmp_path / "run", method=method, responses=40)))
    # those of clip_cov are all right at the end
    assert ("calibration" in topic.numbers["step_60"]) == told
    assert ("AUROC" in " ".join(topic.sentences)) == told


def test_weights_that_did_not_move_are_said_to_be_equal(tmp_path):
    write_counted(tmp_path / "run", np.full(PROBLEMS, 12))
    model = tmp_path / "run_model"
    assert parameters(model, model).sentences[0].startswith("No matrix")
    moved = parameters(model, tmp_path / "run" / "policy")
    assert moved.sentences[0].startswith("The 2 matrices moved by 2.")  # 0.01 · 8 / √8
    assert moved.charts[0]["series"][0]["label"] == "mlp"


def test_places_are_averaged_over_the_matrices_that_have_changed_entries(tmp_path):
    random = np.random.default_rng(0)
    old = random.normal(size=(3, 8, 8)).astype(np.float32)
    new = old + np.array([0.1, 0.1, 1e-7])[:, None, None] * random.normal(size=old.shape)
    for folder, matrices in (("old", old), ("few", new), ("none", [*old[:2], new[2]])):
        (tmp_path / folder).mkdir()
        tensors = {WEIGHT.format(i): np.float32(matrix) for i, matrix in enumerate(matrices)}
        save_file(tensors, tmp_path / folder / "model.safetensors")
    topic = parameters(tmp_path / "old", tmp_path / "few")
    tensors = topic.numbers["tensors"]
    assert tensors[2]["principal_overlap"] is None and tensors[2]["relative_norm"] > 0
    assert topic.numbers["matrices"]["principal_overlap"] == pytest.approx(
        np.mean([tensor["principal_overlap"] for tensor in tensors[:2]])
    )
    assert "(in 2 matrices)" in topic.sentences[2]
    topic = parameters(tmp_path / "old", tmp_path / "none")
    assert len(topic.sentences) == 2 and "changed in bfloat16" in topic.missing[0]


def test_what_cannot_be_compared_does_not_hide_the_rest(tmp_path):
    run = write_counted(tmp_path / "this", np.full(PROBLEMS, 12))
    other = write_counted(tmp_path / "other", np.full(PROBLEMS, 8))
    save_file({"lm_head.weight": np.eye(2)}, other / "policy" / "model.safetensors")
    (other / "held_out.jsonl").write_text(json.dumps(counts([1, 2], n=8)) + "\n")
    topics = names(diagnose_run(run, other))
    (reached,), (weights,) = topics["Solved problems"].missing, topics["Weights"].missing
    assert "must have sampled the same prompts 16 times, got 2 prompts 8 times" in reached
    assert "after must hold the tensors of" in weights
    assert topics["Entropy"].sentences and topics["Training prompts"].sentences


def test_a_run_without_counts_samples_and_weights_says_what_it_lacks(tmp_path):
    run = write_run(tmp_path / "run", model="gone")
    shutil.rmtree(run / "samples")
    topics = names(diagnose_run(run))
    assert set(topics) == {
        "Solved problems",
        "Entropy",
        "Training prompts",
        "Stored responses",
        "Formats",
        "Weights",
    }
    assert "safetensors in gone and" in topics["Weights"].missing[0]
    for title in ("Solved problems", "Training prompts", "Stored responses", "Weights"):
        assert not topics[title].sentences and topics[title].missing
    assert topics["Entropy"].sentences


def test_a_run_that_has_just_begun_is_no_error(tmp_path):
    run = tmp_path / "young"
    run.mkdir()
    (run / "config.json").write_text("{}")
    topics = diagnose_run(run)
    assert all(topic.missing and not topic.sentences for topic in topics)
    assert write_page(tmp_path / "page.html", topics, "young").is_file()


def test_two_runs_are_compared_at_their_ends(tmp_path):
    run = write_counted(tmp_path / "this", np.full(PROBLEMS, 12))
    other = write_counted(tmp_path / "other", np.full(PROBLEMS, 8))
    topics = names(diagnose_run(run, other))
    assert "this run minus the other run" in topics["Solved problems"].sentences[1]
    assert topics["Solved problems"].numbers["gaps"]["pass@1"]["value"] == pytest.approx(0.25)
    assert topics["Weights"].sentences[0].startswith("No matrix")
    folder = names(diagnose_run(run, tmp_path / "this_model", weights=False))
    assert "Weights" not in folder
