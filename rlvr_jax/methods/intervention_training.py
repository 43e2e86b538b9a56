"""InT: the policy finds the step that should have stood where it went wrong, and imitates it.

"InT: Self-Proposed Interventions Enable Credit Assignment in LLM Reasoning", of which the abstract
was read.

    t* = the first step of a wrong answer whose score is below a bound
    ỹ  = one step that the policy proposes behind the steps before t*, shown the worked solution
    kept if one of 32 continuations of (prompt, y_{<t*}, ỹ) is right
    loss = mean of -logp over the tokens of y_{<t*} and ỹ, behind the prompt alone

The beginning is the policy's own text, so what is new is one step; a whole solution would be far
from the policy. This is the first stage; the second is RL from its weights (`grpo` with
`--model`). In the notes the policy finds t* itself; here it is the first step that the task scores
as wrong. A sum over the original answer's step t*, as the notes print it, would imitate the error.
"""

from rlvr_jax.experience import experience, imitate_interventions, score_steps
from rlvr_jax.experience.views import hint
from rlvr_jax.objectives import imitate, no_advantage, no_policy_loss, objective, token_mean
from rlvr_jax.types import Method, Recipe


def intervention_training(
    wrong_below: float = 0.0, continuations: int = 32, hint_fraction: float = 1.0
) -> Recipe:
    """Imitation of the right beginning of wrong answers and of one step that corrects them.

    Args:
      wrong_below: score below which a step is wrong; 0.5 where scores are 0 and 1.
      continuations: drawn to try an intervention, of which one must be right.
      hint_fraction: of the worked solution that the policy is shown when it proposes.
    """
    proposed = imitate_interventions(hint(hint_fraction), wrong_below, continuations)
    return Recipe(
        objective=objective(
            advantage=no_advantage(),
            surrogate=no_policy_loss(),
            regularizers=[imitate(1.0)],
            aggregation=token_mean(),
        ),
        experience=experience(stages=[score_steps(), proposed]),
    )


METHOD = Method(
    intervention_training,
    "InT: Self-Proposed Interventions Enable Credit Assignment in LLM Reasoning",
    "",
    changes="surrogate, sampling, guidance",
    evidence="reconstruction",
    left_out="the policy as finder of the error; several epochs over the kept pairs",
    reports="a 4B instruct model: IMO-AnswerBench 11.68 to 25.62 with RL afterwards",
    traps=(
        "the bound of 0 fits signed scores: with 0 and 1 nothing is ever wrong; each wrong answer "
        "costs 32 continuations, and in the paper a quarter gave a target; where none is kept the "
        "loss is 0"
    ),
)
