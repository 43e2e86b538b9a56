"""ROSE: rollouts branch where likely tokens have different meanings."""

import numpy as np
from tree_walks import walked

from rlvr_jax.methods.arguments import parse_hyperparameters
from rlvr_jax.methods.trees.rose import branch_at_best, dissimilarity, diversity, similarity


def test_with_similar_embeddings_only_dissimilarity_finds_an_uncertain_token():
    # A certain token, two tokens of nearly one meaning, two tokens of different meanings.
    p = np.array([[[1.0, 1e-9], [0.5, 0.5], [0.5, 0.5]]])
    ids = np.array([[[0, 1], [0, 1], [0, 2]]])
    embeddings = np.array([[1.0, 0.0], [1.0, 0.1], [1.0, 1.0]])
    entropy = -np.sum(p * np.log(p), axis=-1)
    likeness, largest = similarity(np.log(p), ids, embeddings)
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    for token in range(3):
        cosine = unit[ids[0, token, 0]] @ unit[ids[0, token, 1]]
        product = p[0, token].prod()
        np.testing.assert_allclose(likeness[0, token], 2 * product * cosine, rtol=1e-6)
        np.testing.assert_allclose(largest[0, token], 2 * product, rtol=1e-6)
    assert diversity(entropy, likeness, largest).argmax() == 0
    found = dissimilarity(entropy, likeness, largest)
    assert found.argmax() == 2 and found.min() >= 0
    np.testing.assert_allclose(found[0, 2], np.log(2) * (1 - np.sqrt(0.5)))
    chosen = parse_hyperparameters("rose", ("metric=dissimilarity",))
    assert chosen == {"metric": dissimilarity}


def test_branches_of_rose_begin_at_the_largest_metric():
    def late(entropy, likeness, largest):
        del likeness, largest
        return np.broadcast_to(np.arange(entropy.shape[1]), entropy.shape)

    for found in walked(branch_at_best(fresh=0.0, metric=late, top=2)):
        rollouts = found.batch.rollouts
        for rows in found.batch.groups:
            for place, row in enumerate(rows[1:], 1):
                before = rollouts.length[rows[:place]].max() - 1
                wanted = before if before > 0 else -1
                assert rollouts.branch_position[row] == wanted
    for found in walked(branch_at_best(fresh=1.0, top=2)):
        assert found.metrics["branched_rows"] == 0 and np.all(found.batch.rollouts.parent == -1)
