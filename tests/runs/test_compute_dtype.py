"""The dtype of the products: what `auto` stands for, and bfloat16 on a CPU."""

import pytest
import training_runs

from rlvr_jax.runs.resolved import resolve


def test_a_run_keeps_the_dtype_that_auto_stands_for(model, monkeypatch):
    monkeypatch.setattr("rlvr_jax.runs.resolved.faster_dtype", lambda: "bfloat16")
    config = training_runs.settings(model, "unused", compute_dtype="auto")
    resolved = resolve(config, training_runs.sums())
    assert resolved.card()["settings"]["compute_dtype"] == "bfloat16"
    assert resolved.config.policy.compute_dtype == "bfloat16"


@pytest.mark.parametrize("faster", ["float32", "bfloat16"])
def test_a_run_in_the_slower_dtype_says_so(model, monkeypatch, faster):
    monkeypatch.setattr("rlvr_jax.runs.run.faster_dtype", lambda: faster)
    config = training_runs.settings(model, "unused", compute_dtype="bfloat16")
    remarks = " ".join(training_runs.prepared(config).remarks())
    assert ("multiplies in float32 faster" in remarks) == (faster == "float32")
