"""The command that measures judging."""

import pytest

from experiments import bench_judges


@pytest.mark.thorough
def test_it_says_how_long_judging_takes_beside_its_floor(capsys):
    bench_judges.main(
        ["--rows", "6", "--calls", "2", "--at-once", "3", "--milliseconds", "10", "--repeats", "1"]
    )
    told = capsys.readouterr().out
    assert "6 rows x 2 calls, 3 at once, 10 ms each" in told and "floor 0.04 s" in told
