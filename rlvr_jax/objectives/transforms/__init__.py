"""Token transforms: changes of a signal between the advantage and the surrogate.

    weight  `keep_top_entropy`, `drop_high_covariance`, `scale_weight`, `truncate_importance`
    mask    `drop_off_policy`

A transform of one paper is in that paper's file. `is_chosen` marks tokens that a part has changed.
"""

from rlvr_jax.objectives.transforms.corrections import *
from rlvr_jax.objectives.transforms.weights import *
from rlvr_jax.public import public_names

__all__ = public_names(globals())
