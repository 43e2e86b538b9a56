"""The command that times verifiers."""

import pytest

from experiments import bench_verifiers


def test_it_prints_a_row_for_each_task(capsys):
    bench_verifiers.main(["--tasks", "brackets", "maths", "--rows", "8"])
    said = capsys.readouterr().out
    assert "brackets" in said and "maths" in said and "grades / s" in said


@pytest.mark.parametrize("arguments", [["--rows", "0"], ["--tasks", "nothing"]])
def test_bad_arguments_are_named(arguments):
    with pytest.raises(ValueError, match=r"rows must be at least 1|name must be one of"):
        bench_verifiers.main(arguments)
