"""Diversity: texts are the tokens on the mask, embeddings means of hidden states."""

import golden_vectors as golden
import numpy as np
from adapters.common import by_group

from rlvr_jax.analysis.texts.diversity_metrics import (
    answer_diversity,
    bigrams,
    cosine_similarity,
    different_beginnings,
    distinct,
    jaccard_distance,
    mean_distance,
    self_bleu,
    vendi,
)


def outputs(case, hyper):
    data = golden.inputs(case)
    mask = data["mask"]
    embeddings = (data["hidden"] * mask[..., None]).sum(axis=1) / mask.sum(axis=1)[:, None]
    texts = [row[kept].tolist() for row, kept in zip(data["tokens"], mask, strict=True)]
    size = int(data["group_size"])
    groups = [texts[start : start + size] for start in range(0, len(texts), size)]
    correct = by_group(data["rewards"] > 0.5, case)
    solutions = [
        [text for text, good in zip(*pair, strict=True) if good]
        for pair in zip(groups, correct, strict=True)
    ]
    similar = [cosine_similarity(rows) for rows in by_group(embeddings, case)]
    answers = [
        answer_diversity(row.tolist(), hyper["unparsed"]) for row in by_group(data["answers"], case)
    ]
    orders = range(1, hyper["max_n"] + 1)
    return {
        "distinct": [[distinct(group, n) for n in orders] for group in groups],
        "self_bleu": [self_bleu(group, hyper["max_n"]) for group in groups],
        "vendi": [vendi(each) for each in similar],
        "vendi_q": [vendi(each, hyper["q"]) for each in similar],
        "cosine_distance": [mean_distance(each) for each in similar],
        "jaccard_distance": [jaccard_distance([*map(bigrams, group)]) for group in groups],
        "answer_clusters": [each.number for each in answers],
        "answer_entropy": np.array([each.entropy for each in answers]),
        "simpson": [each.simpson for each in answers],
        "correct_clusters": [different_beginnings(each) for each in solutions],
    }
