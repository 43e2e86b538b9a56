"""Reads run directories and says what happened: pass@k, the entropy law, reports, comparisons.

Hands out
  numbers: `pass_at_k`, `all_at_k`, `majority_at_k`, `best_of_k`, `pass_at_k_variance`,
    `mean_pass_at_k`, `pass_at_k_curve`; `fit_entropy_law`, `token_covariance`, `entropy_change`;
  run directories: `load_run` and the `Run` it returns;
  programs: `python -m rlvr_jax.analysis.report` (`report.write_report`, one HTML page for one run
    or several laid over each other) and `python -m rlvr_jax.analysis.comparison`
    (`comparison.compare_runs`, methods × seeds with intervals).

Everything is numpy: no device, no model, no network.
"""

from rlvr_jax.analysis.entropy_law import (
    EntropyLaw,
    entropy_change,
    fit_entropy_law,
    token_covariance,
)
from rlvr_jax.analysis.pass_at_k import (
    PassAtK,
    all_at_k,
    best_of_k,
    majority_at_k,
    mean_pass_at_k,
    pass_at_k,
    pass_at_k_curve,
    pass_at_k_variance,
)
from rlvr_jax.analysis.run_directory import Run, load_run

__all__ = [
    "EntropyLaw",
    "PassAtK",
    "Run",
    "all_at_k",
    "best_of_k",
    "entropy_change",
    "fit_entropy_law",
    "load_run",
    "majority_at_k",
    "mean_pass_at_k",
    "pass_at_k",
    "pass_at_k_curve",
    "pass_at_k_variance",
    "token_covariance",
]
