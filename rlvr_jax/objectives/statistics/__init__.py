"""Statistics: functions that measure a batch and do not decide.

    of tokens            `masked_mean` … (masked), `masked_top_k` … (choices), `quantile` …
                         (order_statistics), `scoped_mean` … (scopes), `step_mean` … (steps)
    of groups            `group_mean` … (groups), `group_rank` … (group_order), `trace_ids` …
                         (traces), `semantic_entropy`
    of the policy        `token_ratio` … (ratios), `token_covariance`
    against another one  `k3` … (divergences)

Sums over tokens and rollouts go through the `masked_*` and `group_*` functions, which handle
padding, empty rollouts and groups of different sizes.
"""

from rlvr_jax.objectives.statistics.choices import *
from rlvr_jax.objectives.statistics.covariance import *
from rlvr_jax.objectives.statistics.divergences import *
from rlvr_jax.objectives.statistics.group_order import *
from rlvr_jax.objectives.statistics.groups import *
from rlvr_jax.objectives.statistics.masked import *
from rlvr_jax.objectives.statistics.order_statistics import *
from rlvr_jax.objectives.statistics.ratios import *
from rlvr_jax.objectives.statistics.scopes import *
from rlvr_jax.objectives.statistics.semantic_entropy import *
from rlvr_jax.objectives.statistics.steps import *
from rlvr_jax.objectives.statistics.traces import *
from rlvr_jax.public import public_names

__all__ = public_names(globals())
