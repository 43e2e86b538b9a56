"""Alpha-RL: sums of the hidden states of rows are the updates, running means the accuracies."""

import golden_vectors as golden
import numpy as np

from rlvr_jax.analysis.weights.alpha_rl import predict_update, rank_one_series
from rlvr_jax.analysis.weights.geometry import decompose, replacement


def outputs(case, hyper):
    data = golden.inputs(case)
    number = hyper["checkpoints"]
    deltas = np.cumsum(data["hidden"][:number], axis=0)
    accuracy = np.cumsum(np.sort(data["soft_rewards"][:number])) / np.arange(1, number + 1)
    series = rank_one_series(deltas)
    found = predict_update(series, accuracy, hyper["y_target"])
    return series._asdict() | {
        "deltas": deltas,
        "accuracy": accuracy,
        "pls_scores": found.scores,
        "pls_weights": found.weights,
        "pls_loadings": found.loadings,
        "r2": found.r_squared,
        "predicted_vector": found.vector,
        "predicted_update": found.update,
        "rank1_scaled": replacement(decompose(deltas[-1]), 1, hyper["alpha"]),
    }
