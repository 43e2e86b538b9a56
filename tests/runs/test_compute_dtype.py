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


KINDS = {
    "dense": {},
    "experts": {"num_experts": 4, "experts_per_token": 2, "qk_norm": True, "qkv_bias": False},
}


# Bounds are three to five times the measured values: ratios of 1 + 2.4e-7 and 1.0032, and entropies
# 1.7e-5 apart.
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("method", "kind"), [("clip_cov", "dense"), ("verl_effective_rank", "experts")]
)
def test_a_step_in_bfloat16_is_that_in_float32_but_for_rounding(tmp_path, method, kind):
    folder = training_runs.write_policy(tmp_path / "policy", **KINDS[kind])
    entropy = {}
    for dtype in ("float32", "bfloat16"):
        training_runs.trained(folder, tmp_path / dtype, method, compute_dtype=dtype, steps=1)
        line = training_runs.metrics(tmp_path / dtype)[-1]
        entropy[dtype] = line["entropy"]
        assert abs(line["sampler_ratio/max"] - 1) < {"float32": 1e-6, "bfloat16": 0.01}[dtype]
    assert entropy["bfloat16"] == pytest.approx(entropy["float32"], abs=1e-4)
    assert entropy["bfloat16"] != entropy["float32"]
