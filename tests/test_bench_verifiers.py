"""The command that times verifiers."""

import pytest

from experiments import bench_verifiers
from rlvr_jax.verifiers import examine


def test_it_prints_a_row_for_each_task(capsys):
    bench_verifiers.main(["--tasks", "brackets", "maths", "dilemma", "tp_judge", "--rows", "8"])
    said = capsys.readouterr().out
    assert "brackets" in said and "maths" in said and "grades / s" in said
    assert "tp_judge" in said and "dilemma, of no answer" in said


@pytest.mark.parametrize("arguments", [["--rows", "0"], ["--tasks", "nothing"]])
def test_bad_arguments_are_named(arguments):
    with pytest.raises(ValueError, match=r"--rows must be at least 1|--tasks must be a task"):
        bench_verifiers.main(arguments)


@pytest.mark.parametrize("name", bench_verifiers.RULES)
def test_each_check_finds_one_gold_right_and_the_other_not(name):
    check, golds, answer, _ = bench_verifiers.RULES[name]
    right, wrong = (examine(check, answer, gold).outcome for gold in golds)
    assert right == 1
    assert wrong < 1 or golds[0] == golds[1]


def test_the_speed_of_the_maths_verifier_is_printed_by_type(monkeypatch, capsys):
    monkeypatch.setattr(bench_verifiers, "ROUNDS", 3)
    bench_verifiers.main(["--types"])
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("integer") and line.endswith("exact") for line in lines)
    assert any(line.startswith("radical") and line.endswith("digits") for line in lines)
