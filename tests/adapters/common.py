"""What adapters share."""

import functools

import golden_vectors as golden
import numpy as np


def both(function):
    """Makes outputs(case, hyper) of outputs(case, hyper, soft): once plain, once named `_soft`."""

    @functools.wraps(function)
    def outputs(case, hyper):
        hard = function(case, hyper, False)
        return {**hard, **golden.named(function(case, hyper, True), True)}

    return outputs


def on_mask(values, batch):
    """The values with 0 off the mask of the batch."""
    return np.where(batch.mask, values, 0)
