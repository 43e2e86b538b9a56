"""The benchmark prints every program's row, and refuses what it does not know."""

import json

import pytest

from rlvr_jax.kernels import bench


def test_rows_cover_programs_and_shares(capsys):
    bench.main(["--shapes", "24x8x40", "--dtypes", "float32", "--repeats", "1", "--json"])
    found = json.loads(capsys.readouterr().out)
    measured = {(row["program"], row["pass"]) for row in found["programs"]}
    for program in ("naive", "optax", "xla", "xla full"):
        assert {(program, "forward"), (program, "forward + backward")} <= measured
    assert ("product", "forward") in measured
    assert {row["selected"] for row in found["selection"]} == set(bench.SHARES)
    naive = next(row for row in found["programs"] if row["program"] == "naive")
    assert naive["to_naive"] == 1 and naive["seconds"] > 0


@pytest.mark.parametrize(
    "arguments, words",
    [(["--shapes", "24x8"], "--shapes: must be"), (["--programs", "xl"], "--programs: must be of")],
)
def test_unknown_arguments_are_refused(arguments, words, capsys):
    with pytest.raises(SystemExit):
        bench.main(arguments)
    assert words in capsys.readouterr().err
