"""Formats: before by the largest step of a row, after by its answer."""

import golden_vectors as golden
import numpy as np

from rlvr_jax.analysis.arrays import binned_mean
from rlvr_jax.analysis.texts.echo_chamber import format_fractions, format_shift


def outputs(case, hyper):
    data = golden.inputs(case)
    number = hyper["n_formats"]
    before = np.where(data["mask"], data["step_ids"], 0).max(axis=1) % number
    after = data["answers"] % number
    accuracy = binned_mean(data["rewards"], after, number)
    score = binned_mean(data["soft_rewards"], before, number)
    shift = format_shift(
        format_fractions(before, number), format_fractions(after, number), accuracy, score
    )
    return {name.replace("fraction", "share"): value for name, value in shift._asdict().items()} | {
        "accuracy_by_format": accuracy,
        "score_before_by_format": score,
    }
