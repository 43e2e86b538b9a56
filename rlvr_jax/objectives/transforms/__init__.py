"""Token transforms: what changes a signal between the advantage and the surrogate.

    advantage   `scale_by_entropy`, `scale_by_certainty`, `scale_by_perplexity`,
                `scale_by_semantic_entropy`, `charge_mean_entropy`, `charge_sampled_logit`,
                `credit_unlikely`, `credit_unanimous_groups`, `credit_rank_growth`,
                `credit_potential`, `credit_step_entropy`, `center_over_steps`,
                `standardize_advantage`, `redistribute_credit`, `emphasize_late_tokens`,
                `amplify_confident_errors`, `amplify_informative`, `amplify_long_errors`,
                `hard_bins_first`, `boost_favourites`, `mix_in_tempered_policy`,
                `imitate_controllers`, `average_over_copies`
    weight      `keep_top_entropy`, `drop_high_covariance`, `scale_weight`, `weigh_conflicts`,
                `weigh_unlikely`, `reweight_cells`, `average_by_origin`, `weigh_certain_teacher`,
                `divide_by_conflicts`, `damp_entropy_change`, `damp_entropy_change_exponentially`,
                `truncate_importance`, `band_importance`, `drop_drifted_failures`, `cells_alike`,
                `by_stored`
    mask        `drop_truncated`, `drop_weightless`, `drop_by_ratio`, `drop_by_divergence`,
                `drop_entropy_lowering`, `drop_entropy_lowering_steps`, `drop_neutral_rollouts`,
                `drop_off_policy`, `drop_perfect_groups`, `drop_unstable_steps`, `drop_untaught`,
                `down_sample`
    clip bounds `adapt_clip`, `balance_signs`, `clip_by_entropy`, `elastic_clip`
    ratio       `smooth_ratio`
    penalty     `penalize_high_covariance`, `protect_low_probability`

Advantages and terms that belong to one of these stand beside it: `normalized_by_origin`,
`on_policy_normalized`, `relative_to_own_rows`, `centered_on_own_rows`, `token_normalized`,
`off_policy_divergence`.
"""

from rlvr_jax.objectives.transforms.confidence import *
from rlvr_jax.objectives.transforms.corrections import *
from rlvr_jax.objectives.transforms.entropy_change import *
from rlvr_jax.objectives.transforms.weights import *
from rlvr_jax.public import public_names

__all__ = public_names(globals())
