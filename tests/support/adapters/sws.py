"""SwS's vectors: a row is a prompt with a history, and a concept with an embedding."""

import golden_vectors as golden
import numpy as np
from adapters.common import by_group

from rlvr_jax.experience import outside
from rlvr_jax.tasks.synthesis.concepts import (
    budgets,
    concept_chances,
    concept_scores,
    failed,
    slopes,
)

KINDS = 4
CHOSEN = (0, 3)
ROUNDING = 1e-6


def outputs(case, hyper):
    data = golden.inputs(case)
    accuracy = 0.55 * np.clip(data["values"], 0, 1)
    kind = np.arange(len(accuracy)) % KINDS
    fail = failed(accuracy, hyper["threshold"], hyper["max_slope"])
    fractions = np.bincount(kind, weights=fail) / np.bincount(kind)

    mask, tokens = data["mask"], data["tokens"]
    count = np.maximum(mask.sum(axis=1), 1)[:, None]
    embeddings = np.where(mask[..., None], data["hidden"], 0).sum(axis=1) / count
    same = (tokens[:, None] == tokens[None]) & mask[:, None] & mask[None]
    together = same.sum(axis=2) * (1 - np.eye(len(tokens), dtype=int))
    size = int(data["group_size"])
    left = ~outside(hyper["acc_low"] - ROUNDING, hyper["acc_high"] + ROUNDING)(
        by_group(data["rewards"], case)
    )
    return {
        "max_acc": accuracy.max(axis=1),
        "slope": slopes(accuracy),
        "fail": fail,
        "fail_rate": fractions,
        "budgets": budgets(fail, kind, KINDS, hyper["budget"]),
        "concept_score": concept_scores(CHOSEN, together, embeddings),
        "concept_prob": concept_chances(CHOSEN, together, embeddings, hyper["temperature"]),
        "keep_by_difficulty": np.repeat(left, size),
    }
