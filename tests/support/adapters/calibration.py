"""Calibration of two confidences: token probabilities of the old policy, and vote shares."""

import golden_vectors as golden
import numpy as np
from adapters.common import logp_of

from rlvr_jax.analysis.texts.calibration import calibration, token_confidence, votes


def outputs(case, hyper):
    data = golden.inputs(case)
    bins, epsilon = hyper["bins"], hyper["eps"]
    tokens = token_confidence(logp_of(case, "old_logits"), data["mask"])
    cast = votes(data["answers"], np.arange(len(tokens)) // int(data["group_size"]))
    by_tokens = calibration(tokens, data["rewards"], bins, epsilon=epsilon)
    by_votes = calibration(cast.confidence, data["rewards"], bins, cast.bins(bins), epsilon)
    return {
        "token_confidence": tokens,
        "vote_confidence": cast.confidence,
        **{f"token_{name}": value for name, value in by_tokens._asdict().items()},
        **{f"vote_{name}": value for name, value in by_votes._asdict().items()},
    }
