"""SWEET-RL: a language model that sees the solution learns which turns are good.

"SWEET-RL: Training Multi-Turn LLM Agents on Collaborative Reasoning Tasks",
https://github.com/facebookresearch/sweet_rl

    A_n  = mean over the tokens of turn n of logp - reference_logp
    loss = mean over pairs of -log σ(β (S_best - S_other)), S = mean over all tokens of a trajectory

This is the first of two steps: the fit of the critic, which is the policy of this recipe. The
second step is `sweet_rl_policy`. In every group the trajectory of highest reward is paired with
each of lower reward. The current weights sample trajectories from the prompt; the authors collect
them once. Critic and reference read a trajectory after the prompt and its correct answer. S is that
of the authors' code. In the paper it is the sum of A_n over the turns (`score=turn_sum_score`). β
is the authors' value.

Left out: the training of the policy, which is `sweet_rl_policy`.
Reports: ColBench: 6 % more successes and wins than other multi-turn RL. Llama-3.1-8B equals GPT-4o.
Traps: The trained model is a critic that sees the answer, not a policy to use. Groups of equal
rewards have no pair. With the code's mean, long turns weigh more, and its sum mode has an indexing
error.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rlvr_jax.experience import Stage, View, experience
from rlvr_jax.experience.stages.rounds.another_view import under_another_view
from rlvr_jax.experience.views import with_reference
from rlvr_jax.methods._tools import Tools
from rlvr_jax.objectives import Score, best_against_rest, objective_of_terms, token_mean_score
from rlvr_jax.objectives.statistics.steps import find_steps, step_mean
from rlvr_jax.types import Method, Recipe, Rollouts, Shown, arguments_of, part
from rlvr_jax.types.hyperparameters import Positive


def turn_sum_score(log_ratio: Float[Array, "B T"], rollouts: Rollouts) -> Float[Array, "B"]:
    """The sum of A_n over the turns: turns of any length count equally."""
    return jnp.sum(
        step_mean(log_ratio, find_steps(rollouts.records["turn"], rollouts.mask)), axis=1
    )


@part(writes={"off_policy"})
def train_under(view: View) -> Stage:
    """Trains all rows under another view of their prompts, which shows more.

    The rows are marked `off_policy`. Their old log-probs are computed with the prompts of sampling.
    The log-probs of reference and update are computed with the prompts of this view.

    Args:
      view: such as `with_reference()`.
    Writes: prompt_tokens, prompt_length, shown_tokens, shown_length, off_policy.
    Metrics: longer_prompts (rows whose prompt has another length under the view).
    """

    def apply(batch, actor, state, turn):
        shown = under_another_view(batch, actor, view)
        changed = np.sum(shown.rollouts.prompt_length != batch.rollouts.prompt_length)
        return shown, state, {"longer_prompts": float(changed)}

    return Stage(apply, reads=view.reads, views=(view,))


@arguments_of(Tools, into="tools", tools=None)
def sweet_rl(
    coefficient: Positive = 0.1,
    score: Score = token_mean_score,
    *,
    tools: Tools,
) -> Recipe:
    """Fits the critic of turns, which sees the answer, by a preference loss.

    Args:
      coefficient: scale of the scores (β).
      score: of a trajectory, from the log ratios of its tokens: `token_mean_score` or
        `turn_sum_score`.
    """
    return Recipe(
        objective=objective_of_terms([best_against_rest(coefficient, score)]),
        experience=experience(
            draw=tools.draw(),
            stages=[train_under(with_reference())],
        ),
    )


METHOD = Method(
    sweet_rl,
    changes="sampling, guidance, surrogate",
    # The mean score of the best trajectories rises above that of the others, from 0 on.
    shown=Shown("noted_calculations", "preferred_margin", without="verltool", steps=12),
)
