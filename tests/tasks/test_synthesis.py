"""Making data: the worked examples of deepmath, synthrl and rstar_coder, and their commands."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest

from rlvr_jax.tasks.synthesis import deepmath, rstar_coder, synthrl
from rlvr_jax.tasks.synthesis.coverage import most_new_ngrams
from rlvr_jax.tasks.synthesis.deepmath import (
    agreement,
    contaminated_fraction,
    decontaminate,
    difficulty,
    hashed_ngrams,
    names_answer,
    same_words,
)
from rlvr_jax.tasks.synthesis.lines import read_lines, write_lines
from rlvr_jax.tasks.synthesis.rstar_coder import mutual_verify
from rlvr_jax.tasks.synthesis.synthrl import evolve

# DeepMath


@pytest.mark.parametrize(
    ("answers", "source", "keep", "answer"),
    [
        (["1/2", "0.5", "\\frac{1}{2}"], None, True, "1/2"),
        (["1/2", "0.5", "0.51"], None, False, None),
        (["1/2", "0.5", "\\frac{1}{2}"], "2/4", True, "2/4"),
        (["1/2", "0.5", "\\frac{1}{2}"], "0.3", False, None),
        (["1/2", None, "0.5"], None, False, None),
    ],
)
def test_answers_agree_by_value(answers, source, keep, answer):
    assert agreement(answers, source) == (keep, answer)


def test_difficulty_is_the_mean_of_ratings():
    assert difficulty([4, 5, 5, 6, 5, 5]) == (5, True)
    mean, keep = difficulty([4, 5, 5, 5, 5, 5])
    assert mean == pytest.approx(29 / 6) and not keep
    with pytest.raises(ValueError, match="ratings must be at least one number, got none"):
        difficulty([])


POOL = ["What is 3 + 4?", "What is 30 + 40?", "Add three and four.", "Who wrote it?", "Why so?"]
TESTS = ["What is 3 + 4?", "Name the largest prime below 100."]


def test_a_judge_sees_the_nearest_test_questions_alone_and_one_yes_is_enough():
    shown = []

    def judge(one, two):
        shown.append((one, two))
        # In one order only, and of the first three only.
        return two in POOL[:3] and one == TESTS[0]

    def embed(texts):
        return np.array([[1.0, 0] if "4" in t or "four" in t else [0, 1.0] for t in texts])

    found = decontaminate(POOL, TESTS, embed, judge, k=1)
    assert found.keep.tolist() == [False] * 3 + [True] * 2
    assert found.hits == [[0], [0], [0], [], []]
    assert contaminated_fraction(found, len(TESTS)) == 0.5
    assert not any({*pair} == {POOL[0], TESTS[1]} for pair in shown)
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        decontaminate(POOL, TESTS, embed, judge, k=0)


def test_every_benchmark_has_neighbours_of_its_own():
    seen = []
    tests = [f"What is {n} + 4?" for n in range(6)] + ["A lonely question"]
    names = ["large"] * 6 + ["small"]
    for benchmarks in (None, names):
        seen.clear()
        decontaminate(
            ["What is 3 + 4?"],
            tests,
            judge=lambda a, b: seen.append(a) or False,
            k=2,
            benchmarks=benchmarks,
        )
        assert ("A lonely question" in seen) == (benchmarks is not None)


def test_our_embedding_and_judge_know_a_question_with_other_numbers():
    assert same_words("What is 3 + 4, added up?", "What is 31 + 47, added up?")
    assert not same_words("What is 3 + 4, added up?", "Name the largest prime below 100.")
    near = hashed_ngrams(POOL[:2]) @ hashed_ngrams(TESTS).T
    assert (near[:, 0] > near[:, 1]).all() and near[0, 0] == pytest.approx(1)


def test_a_question_that_states_its_answer_is_flagged():
    assert names_answer("Show that the sum is  12 .", "12")
    assert not names_answer("Show that the sum is 120.", "12")


def test_the_command_keeps_what_passes_every_gate(tmp_path, capsys):
    rows = [
        {"question": "What is 3 + 4?", "answers": ["7", "7", "7"]},
        {"question": "Which is it?", "answers": ["7", "7", "8"]},
        {"question": "How easy?", "answers": ["1", "1", "1"], "ratings": [4, 4]},
        {"question": "How hard?", "answers": ["1/2", "0.5", "0.5"], "ratings": [6, 7]},
    ]
    raw, tests, out = (tmp_path / name for name in ("raw.jsonl", "tests.jsonl", "kept.jsonl"))
    raw.write_text("\n".join(map(json.dumps, rows)))
    tests.write_text(json.dumps({"question": "What is 31 + 44?", "benchmark": "sums"}))
    deepmath.main([str(raw), str(out), "--tests", str(tests)])
    (kept,) = read_lines(out)
    assert kept["question"] == "How hard?" and kept["answer"] == "1/2" and kept["difficulty"] == 6.5
    told = capsys.readouterr().out
    for gate in ("contamination", "difficulty", "agreement"):
        assert f"1 dropped by {gate}" in told
    assert "100.0% of the test questions" in told


def test_a_command_refuses_a_row_in_a_sentence(tmp_path):
    (tmp_path / "raw.jsonl").write_text('{"text": "no question"}')
    command = [sys.executable, "-m", "rlvr_jax.tasks.synthesis.deepmath"]
    done = subprocess.run(
        [*command, str(tmp_path / "raw.jsonl"), str(tmp_path / "out.jsonl")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "must have the field 'question', got ['text']" in done.stderr


def test_ratings_below_the_scale_say_nothing_and_numbers_are_answers(tmp_path):
    row = {"question": "How?", "answers": [7, "7", "7.0"], "answer": 7}
    (keep, low), (drop, _) = (
        deepmath.passed(row | {"ratings": ratings}, 0, tmp_path, 5.0)
        for ratings in ([0.4, 6], [4, 5])
    )
    assert keep == "" and (low["answer"], low["difficulty"]) == ("7", 6)
    assert drop == "difficulty"
    assert deepmath.passed(row | {"ratings": [0.4]}, 0, tmp_path, 5.0)[1]["difficulty"] is None


def test_texts_of_a_file_may_hold_other_ends_of_lines(tmp_path):
    rows = [{"text": "a\u2028b\u0085c\nd"}, {"text": "e"}]
    write_lines(tmp_path / "rows.jsonl", rows)
    assert read_lines(tmp_path / "rows.jsonl") == rows


DEEP = {"question": "q", "answers": ["1"]}
HARDER = {"question": "q", "answer": 1, "seed_count": 15, "attempts": []}
CODE = {"programs": ["print(1)"], "inputs": ["1"]}


@pytest.mark.parametrize(
    ("command", "row", "message"),
    [
        (deepmath, DEEP | {"question": 3}, "'question' must be a text, got 3"),
        (deepmath, DEEP | {"answers": "1"}, "'answers' must be a list, got '1'"),
        (deepmath, DEEP | {"ratings": ["6"]}, "'ratings' must be a whole number or a number"),
        (synthrl, HARDER | {"seed_count": "15"}, "'seed_count' must be a whole number, got '15'"),
        (synthrl, HARDER | {"attempts": ["no"]}, "must have the field 'count', got 'no'"),
        (rstar_coder, CODE | {"programs": "print(1)"}, "'programs' must be a list"),
        (rstar_coder, CODE | {"inputs": [1]}, "'inputs' must be a text, got 1"),
        (rstar_coder, CODE | {"examples": [["1"]]}, "'examples' must be pairs of texts"),
    ],
)
def test_a_field_of_another_kind_is_refused_in_a_sentence(command, row, message, tmp_path):
    path = tmp_path / "rows.jsonl"
    write_lines(path, [row])
    with pytest.raises(ValueError, match=f"row 1 of {path}.*{message}"):
        command.main([str(path), str(tmp_path / "out.jsonl")])


# SynthRL


def test_rewrites_are_accepted_against_the_seed_and_begin_from_the_last_accepted():
    counts, scores = [14, 12, 3, 9, 13, 9, 5, 9], [9, 9, 9, 9, 9, 9, 7, 8]
    found = evolve(counts, scores, 15)
    assert found.parent == [0, 0, 2, 2, 4, 5, 6, 6]
    assert found.accepted == [2, 4, 5, 6, 8] and found.best == 4
    assert evolve([], [], 15).best == 0


def test_the_command_writes_seeds_and_their_hardest_rewrites(tmp_path, capsys):
    tries = [
        {"question": "harder", "count": 9, "score": 9},
        {"question": "no", "count": 2, "score": 9},
    ]
    rows = [
        {"question": "a", "answer": 1, "seed_count": 15, "attempts": tries},
        {"question": "b", "answer": 2, "seed_count": 3, "attempts": tries},
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, rows)))
    synthrl.main([str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl")])
    seed, made = read_lines(tmp_path / "out.jsonl")
    assert seed["question"] == "a" and made == {
        "question": "harder",
        "answer": 1,
        "count": 9,
        "of": "a",
    }
    assert "1 of 2 seeds and 1 rewrites stored in" in capsys.readouterr().out


# rStar-Coder

INPUTS = [-3, -1, 0, 2, 5]


def outputs(programs, inputs):
    return [[program(value) for value in inputs] for program in programs]


def identity(value):
    return value


def negate(value):
    return -value


MIX = [abs] * 10 + [identity] * 4 + [negate] * 2


def test_the_largest_class_labels_the_inputs():
    found = mutual_verify(outputs(MIX, INPUTS), 0.6)
    assert found.accepted and found.fraction == 0.625
    assert found.labels == [3, 1, 0, 2, 5] and found.members == list(range(10))
    fewer = outputs([*MIX[1:10], identity, *MIX[10:]], INPUTS)
    assert mutual_verify(fewer, 0.6).fraction == 0.5625
    assert not mutual_verify(fewer, 0.6).accepted and mutual_verify(fewer, 0.4).accepted


def test_weak_inputs_merge_classes():
    found = mutual_verify(outputs(MIX, [0, 2, 5]), 0.6)
    assert found.accepted and found.fraction == 0.875 and len(found.members) == 14


def test_errors_ties_constants_and_contradicted_examples_are_no_labels():
    failing = outputs(MIX, INPUTS)
    failing[0][-1] = None
    found = mutual_verify(failing, 0.6)
    assert not found.accepted and found.fraction == 9 / 16 and found.reason == "fraction"
    tie = outputs([abs] * 8 + [identity] * 8, INPUTS)
    assert mutual_verify(tie, 0.4).reason == "tie"
    zeros = [[0] * 5] * 16
    assert mutual_verify(zeros, 0.6).reason == "constant"
    assert mutual_verify(zeros, 0.6, constant_examples=True).accepted
    assert mutual_verify(outputs(MIX, INPUTS), 0.6, examples={0: -3}).reason == "examples"
    assert mutual_verify([[None]] * 3, 0.6).fraction == 0
    with pytest.raises(ValueError, match="outputs must be rows of one length"):
        mutual_verify([[1], [1, 2]], 0.6)


def test_simulated_programs_are_accepted_wrongly_as_often():
    draws, error = 4000, 0.3
    generator = np.random.default_rng(0)
    wrong = generator.uniform(size=(draws, 16)) < error
    accepted = 0
    for row in wrong:
        table = [[1, 2] if bad else [3, 4] for bad in row]
        found = mutual_verify(table, 0.6)
        accepted += found.accepted and found.labels == [1, 2]
    # P[Bin(16, e) ≥ ⌈0.6 · 16⌉]
    expected = sum(math.comb(16, k) * error**k * (1 - error) ** (16 - k) for k in range(10, 17))
    spread = (expected * (1 - expected) / draws) ** 0.5
    assert abs(accepted / draws - expected) < 3 * spread


def test_the_command_runs_programs_and_labels_inputs(tmp_path, capsys):
    good = "print(abs(int(input())))"
    rows = [
        {"programs": [good, good, "print(int(input()))"], "inputs": ["-3", "2"]},
        {"programs": [good, "raise ValueError", "print(1)"], "inputs": ["-3", "2"]},
        {"programs": [good] * 3, "inputs": ["-3", "2"], "examples": [["-1", "-1"]]},
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, rows)))
    rstar_coder.main([str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl")])
    (kept,) = read_lines(tmp_path / "out.jsonl")
    assert kept["labels"] == ["3", "2"] and kept["solutions"] == [good, good]
    assert kept["fraction"] == pytest.approx(2 / 3) and kept["theta"] == 0.6
    told = capsys.readouterr().out
    assert "1 of 3 problems labelled" in told and "1 dropped: examples" in told


def test_a_problem_with_sixteen_words_of_a_test_question_is_dropped(tmp_path, capsys):
    words = [f"w{place}" for place in range(20)]
    questions = [" ".join(words[:17]).upper(), " ".join(words[:15])]
    code = {"programs": ["print(input())"] * 2, "inputs": ["1", "2"]}
    paths = [tmp_path / name for name in ("in.jsonl", "out.jsonl", "tests.jsonl")]
    write_lines(paths[0], [code | {"question": question} for question in questions])
    write_lines(paths[2], [{"question": " ".join(["so", *words])}])
    files = [*map(str, paths[:2])]
    for tests, stored in ([], questions), (["--tests", str(paths[2])], questions[1:]):
        rstar_coder.main([*files, *tests])
        assert [row["question"] for row in read_lines(paths[1])] == stored
    assert "1 dropped: contamination" in capsys.readouterr().out
    write_lines(paths[0], [code])
    with pytest.raises(ValueError, match="must have the field 'question'"):
        rstar_coder.main([*files, "--tests", str(paths[2])])


# Dr.SCI


def test_responses_of_most_new_ngrams_come_first():
    texts = ["a b c d", "a b c d e f g", "x y z w", "a b c d"]
    assert most_new_ngrams(texts, 4) == [1, 2]
    assert most_new_ngrams(texts, 1) == [1] and most_new_ngrams([], 3) == []
