"""Advantages: the first part of the chain, signed credit from rewards, values or preferences.

    against the group    `group_normalized`, `group_centered`, `leave_one_out`, `length_centered`,
                         `scaled_centered`, `relative_to`, `rollout_advantage` for one of your own;
                         `plain_reward`, `no_advantage`
    several attempts     `pass_at_k_centered`, `pass_at_k_marginal`, `pass_at_k_weight`,
                         `subset_normalized`, `best_of_n`
    another comparison   `conditional_advantage`, `risk_sensitive`, `pair_normalized`,
                         `score_weighted`, `reweighted_advantage`, `signed_by_outcome`
    another reward       `certainty_normalized`, `decoupled_normalized`, `constrained_advantage`,
                         `hesitation_advantage`, `pseudo_reward`, `self_rewarded`,
                         `solved_group_advantage`
    of answers in parts  `trace_normalized`
    of trees             `between_branch_points`, `last_token_centered`
    by label             `cell_normalized`, `whitened_by_cell`, `advantage_by_cell`;
                         `scale_of_cell` for a KL
    over time            `reward_to_go`, `generalized_advantage`, `macro_advantage`,
                         `extended_advantage`, `pessimistic_advantage`, `aligned_with_partner`
    over turns           `generalized_turn_advantage`
    on the way           `process_to_go`, `generalized_process_advantage`, `rewriter_credit`
    of another advantage `whitened`
    from a teacher       `teacher_log_ratio`

The critics whose estimates some of them read are here, too: `critic_of`, `value_loss`,
`hybrid_critic`, `hybrid_critic_loss`, `huber_value_loss`. Weights, masks and terms that belong to
one advantage stand beside it (`weigh_by_token_ratio`, `weigh_by_trace`, `drop_demonstrated`,
`verdict_loss`, …).
"""

from rlvr_jax.objectives.advantages.critics import *
from rlvr_jax.objectives.advantages.group_relative import *
from rlvr_jax.objectives.advantages.process_credit import *
from rlvr_jax.objectives.advantages.returns import *
from rlvr_jax.objectives.advantages.whitening import *
from rlvr_jax.public import public_names

__all__ = public_names(globals())
