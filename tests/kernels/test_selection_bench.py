"""The table of `experiments.bench_selection` on a small batch, and what it compares with."""

import json

import numpy as np
import pytest

from experiments import bench_selection as selection_bench
from rlvr_jax.kernels import selection


@pytest.mark.thorough
def test_every_operation_that_runs_here_is_timed_beside_the_plain_one(capsys):
    selection_bench.main(["--rows", "4", "--tokens", "8", "--repeats", "1", "--json"])
    rows = json.loads(capsys.readouterr().out)["programs"]
    timed = {(row["operation"], row["implementation"]) for row in rows}
    assert timed == {(name, form) for name in selection_bench.PLAIN for form in ("plain", "xla")}
    assert all(row["to_plain"] == 1 for row in rows if row["implementation"] == "plain")


@pytest.mark.slow
def test_the_plain_versions_compute_the_same():
    inputs = selection_bench.random_inputs(4, 8)._replace(k=np.int32(3))
    for name in ("covariance", "top_k", "quantile"):
        ours = getattr(selection, name)(*selection_bench.ARGUMENTS[name](inputs))
        plain = selection_bench.PLAIN[name](inputs)
        np.testing.assert_allclose(ours, plain, rtol=1e-5, atol=1e-6)  # float32, 24 values
