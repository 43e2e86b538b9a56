"""CFT: supervised learning of critiques of many solutions to one problem.

"Unleashing the Reasoning Potential of Pre-trained LLMs by Critique Fine-Tuning on One Problem",
https://github.com/TIGER-AI-Lab/One-Shot-CFT

    prompt   the problem, a candidate solution, the request to criticise it
    target   a critique that ends with "Conclusion: right [END]" or "wrong", as the verifier says
    loss     = mean of -logp over the tokens of the critiques

No RL and no reward. The task is the data: its train prompts are made of (problem, candidate,
critique) by `rlvr_jax.tasks.critiques.critique_prompts`, which leaves out critiques that disagree
with the verifier or are cut off; its test prompts are problems to be solved. Choose the step by
held-out accuracy, never by the loss. Run it with one sample per prompt: what is drawn is only
counted.
"""

from rlvr_jax.experience import experience, imitate_solutions
from rlvr_jax.objectives import imitate, no_advantage, no_policy_loss, objective, token_mean
from rlvr_jax.types import Method, Recipe


def critique_ft(weight: float = 1.0) -> Recipe:
    """Imitation of the worked solutions of the prompts, which are critiques.

    Args:
      weight: of the imitation.
    """
    return Recipe(
        objective=objective(
            advantage=no_advantage(),
            surrogate=no_policy_loss(),
            regularizers=[imitate(weight)],
            aggregation=token_mean(),
        ),
        experience=experience(stages=[imitate_solutions()]),
    )


METHOD = Method(
    critique_ft,
    "Unleashing the Reasoning Potential of Pre-trained LLMs by Critique Fine-Tuning on One Problem",
    "https://github.com/TIGER-AI-Lab/One-Shot-CFT",
    changes="surrogate, guidance",
    left_out="sampling the candidates and their critiques from other models",
    reports=(
        "Qwen2.5-Math-7B: 15 points on the mean of six maths sets and 16 on three of logic, in 5 "
        "GPU hours"
    ),
    traps=(
        "it reads no reward: on a task whose worked solutions are no critiques it is plain "
        "imitation; at 50 epochs over 600 examples the choice of the step decides, by held-out "
        "accuracy"
    ),
)
