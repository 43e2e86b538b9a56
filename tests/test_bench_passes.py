"""The command that times teachers, probes and stores."""

import re

import pytest

from experiments import bench_passes


@pytest.mark.slow
def test_it_tells_what_each_costs_beside_its_floor(capsys):
    bench_passes.main(["--size", "quickstart", "--repeats", "1", "--store", "1000"])
    told = capsys.readouterr().out
    for name in ("sampled tokens", "kl over", "js over", "likeliest", "without a cache", "held"):
        (line,) = [line for line in told.splitlines() if name in line]
        assert len(re.findall(r"-?\d+\.\d{2,}", line)) in (3, 4), line
    assert re.search(r"store of 1,000 rows of 24 tokens: .* of a step of [0-9.]+ s", told)
