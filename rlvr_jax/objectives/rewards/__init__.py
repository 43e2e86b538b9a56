"""Rewards: what a rollout earns, as pure functions of arrays; a row's, a group's or a batch's.

    what one is      a plain `Reward`, or a `Shaping` with a state, a step and curves (parts)
    made of others   `total`, `product`, `gated`, `bounded`, `over_steps`, `column` (composition,
                     schedules)
    by length        `length_cosine`, `short_of_group`, `length_excess`, `steady_reasoning`
    without labels   `agreement` (consensus), `Certainty` (certainty)
    controls         `random_reward`, `inverted_outcome`
    beside being right `decoupled_exploration`, `confident_abstention`, `grounded`, `useful_calls`,
                     `right_or_readable`, `ended_bonus`, `outcome_and_turns`
    of criteria      `Criterion`, `by_rubric` with `share_of_rubric`, `all_factual_or_share`,
                     `anchored`; `with_evidence`
    against each other schedules (tournaments) and what is made of the results (standings)
    beyond the past  `beyond_best`
    of judges        `verdict_reward`, `rating_rewards`, `preference_reward`
    what is new      `novelty_bonus`
    of problems       `learnability`, `parabola`, `within_band`, `adversarial` (proposals)
    a reference      `answer_likelihoods`, `spread_floor` (reference_answers)
    across data sets `by_start_quartiles`
    on the way       `ProcessReward`: `clip_and_delta`, `thought_rewards`,
                     `deviation_penalty` (process, thoughts, flow); `rewriter_reward` (edits)

A reward is computed of numpy or jax arrays, in the dtype of the outcomes. The stage `shape` gives
it to rollouts. Everything in the `__all__` of the modules below can be imported from here.
"""

from rlvr_jax.objectives.rewards.call_match import *
from rlvr_jax.objectives.rewards.composition import *
from rlvr_jax.objectives.rewards.consensus import *
from rlvr_jax.objectives.rewards.lengths import *
from rlvr_jax.objectives.rewards.parts import *
from rlvr_jax.objectives.rewards.process import *
from rlvr_jax.objectives.rewards.proposals import *
from rlvr_jax.objectives.rewards.rubric_reward import *
from rlvr_jax.objectives.rewards.rubrics import *
from rlvr_jax.objectives.rewards.standings import *
from rlvr_jax.objectives.rewards.tool_calls import *
from rlvr_jax.objectives.rewards.tournaments import *
from rlvr_jax.public import public_names

__all__ = public_names(globals())
