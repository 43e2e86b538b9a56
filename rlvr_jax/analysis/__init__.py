"""Analyses of run directories: pass@k, the entropy law, reports, comparisons.

    run = load_run("runs/dapo")
    steps, entropy = run.series("entropy")    # nats per response token

Public names:
  numbers: `pass_at_k`, `all_at_k`, `majority_at_k`, `majority_answer`, `best_of_k`,
    `pass_at_k_variance`, `mean_pass_at_k`, `pass_at_k_curve`; `fit_entropy_law`,
    `token_covariance`, `entropy_change`; `mass_balance`;
  commands: `python -m rlvr_jax.analysis.report` writes one HTML page for runs (`write_report`);
    `python -m rlvr_jax.analysis.comparison` compares methods and seeds (`compare_runs`);
    `python -m rlvr_jax.analysis.prompt_order` sorts prompts by the variance of their outcomes;
  effects of training: `diagnosis.diagnose_run` of a run, `diagnosis.diagnose_answers` of arrays.

Everything is numpy: no device, no model, no network.
"""

from rlvr_jax.analysis.boundary.pass_at_k import (
    PassAtK,
    all_at_k,
    best_of_k,
    majority_answer,
    majority_at_k,
    mean_pass_at_k,
    pass_at_k,
    pass_at_k_curve,
    pass_at_k_variance,
)
from rlvr_jax.analysis.entropy.entropy_law import (
    EntropyLaw,
    entropy_change,
    fit_entropy_law,
    token_covariance,
)
from rlvr_jax.analysis.run_directory import Run, load_run
from rlvr_jax.analysis.updates.mass_balance import MassBalance, mass_balance

__all__ = [
    "EntropyLaw",
    "MassBalance",
    "PassAtK",
    "Run",
    "all_at_k",
    "best_of_k",
    "entropy_change",
    "fit_entropy_law",
    "load_run",
    "majority_answer",
    "majority_at_k",
    "mass_balance",
    "mean_pass_at_k",
    "pass_at_k",
    "pass_at_k_curve",
    "pass_at_k_variance",
    "token_covariance",
]
