"""The diagnosis of a run or of two policies: `python -m rlvr_jax.diagnosis`.

`policy_pair` samples responses from two policies and scores them under
both, `stored_pair` stores them, and `held_out` loads a policy with a task's held-out prompts. The
numbers and plots are in `rlvr_jax.analysis.diagnosis`.
"""

from rlvr_jax.diagnosis.policy_pair import compare_policies, draw_pair
from rlvr_jax.diagnosis.stored_pair import Pair, load_answers, save_pair

__all__ = ["Pair", "compare_policies", "draw_pair", "load_answers", "save_pair"]
