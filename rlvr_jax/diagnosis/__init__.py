"""The diagnosis of a run or of two policies: `python -m rlvr_jax.diagnosis`.

`policy_pair` samples responses of two policies and scores them under both. `stored_pair` stores
them. `held_out` loads a policy with the held-out prompts of a task. The numbers and plots are in
`rlvr_jax.analysis.diagnosis`.
"""

from rlvr_jax.diagnosis.policy_pair import compare_policies, draw_pair
from rlvr_jax.diagnosis.stored_pair import Pair, load_answers, save_pair

__all__ = ["Pair", "compare_policies", "draw_pair", "load_answers", "save_pair"]
