"""DPO as Q-learning: preference optimization whose log-ratio is a reward of single tokens.

"From r to Q*: Your Language Model is Secretly a Q-Function"

    r(s, a) = β log π*(a|s) / π_ref(a|s) + V*(s) - V*(s')       V = β log Σ exp z,  Q = β z
    loss    = -mean over pairs of log σ(β Σ log ratio_w - β Σ log ratio_l)

In a pair with one prompt V*(s_0) cancels, so plain DPO is exact inverse Q-learning in the token
MDP. A search by the likelihood of π* is a search by reward. A pair is the k-th correct and the k-th
incorrect rollout of a group. A reconstruction from the abstract and our own derivation. β (`scale`)
has DPO's usual value.

Left out: beam search by likelihood, as the sampler has no beams. `implicit_prm` has the rewards of
tokens.
Reports: Beam search on a policy trained by DPO is better than sampling, on summaries and dialogue.
Traps: Groups of equal outcomes have no pair. Implicit rewards of correct and of incorrect rows fall
during training, as expected. Log-ratios are rewards, not advantages.
"""

from rlvr_jax.objectives import implicit_reward_loss, objective_of_terms
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe
from rlvr_jax.types.hyperparameters import Positive


def dpo_q(scale: Positive = 0.1) -> Recipe:
    """Applies DPO to correct and incorrect rollouts of a group.

    Args:
      scale: KL temperature of the token MDP (β).
    """
    return Recipe(objective=objective_of_terms([implicit_reward_loss(scale)]))


METHOD = Method(dpo_q, changes="surrogate", evidence="reconstruction", shown=LOSS_ON_BRACKETS)
