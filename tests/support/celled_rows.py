"""Rows of cells."""

import numpy as np
from golden_vectors import array


def cells(batch):
    """The batch in three cells, one of them without a label."""
    labels = np.arange(batch.mask.shape[0]) % 3 - 1
    return batch.replace(cell=array(labels, np.int32)), labels
