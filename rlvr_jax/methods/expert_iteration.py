"""Expert iteration: imitate the right answers of earlier rounds, from the first weights each round.

Havrilla et al. 2024, "Teaching Large Language Models to Reason with Reinforcement Learning"

    1. sample answers with the current policy, keep the right ones, drop duplicates
    2. D_i = kept ∪ D_{i-1}
    3. fit the weights that the run began with to D_i:  loss = -Σ logp / number of tokens

This is a policy gradient with reward 0 or 1, no baseline, and old data. A round is `round_steps`
steps here: in each of them answers are drawn and kept, and answers of earlier rounds are imitated;
the next round begins with the first weights and a new optimizer. The first round only draws.
Answers are the same where their tokens are, a prompt has `per_prompt` answers at most and the same
chance as another one: without that, easy prompts decide (these three are ours). The paper draws 96
answers to every question at the beginning of a round. Return-conditioned RL is the same loss over
all answers, the prompt told how good they were; it is not built.
"""

from rlvr_jax.experience import experience, imitate_right, restart_every, shuffled_epochs
from rlvr_jax.objectives import imitate, no_advantage, no_policy_loss, objective, token_mean
from rlvr_jax.types import Method, Recipe


def expert_iteration(
    round_steps: int = 50, capacity: int = 4096, per_prompt: int = 4, weight: float = 1.0
) -> Recipe:
    """Imitation of right answers of earlier rounds.

    Args:
      round_steps: steps of a round.
      capacity: answers that are kept, the newest ones.
      per_prompt: answers to a prompt that are kept at most.
      weight: of the imitation.
    """
    return Recipe(
        objective=objective(
            advantage=no_advantage(),
            surrogate=no_policy_loss(),
            regularizers=[imitate(weight)],
            aggregation=token_mean(),
        ),
        experience=experience(
            [shuffled_epochs(), restart_every(round_steps)],
            stages=[imitate_right(capacity, round_steps, per_prompt)],
        ),
    )


METHOD = Method(
    expert_iteration,
    "Teaching Large Language Models to Reason with Reinforcement Learning",
    "",
    changes="surrogate, selection, curriculum",
    evidence="reconstruction",
    left_out="sampling for every question before a round; return-conditioned RL's tags in prompts",
    reports=(
        "Llama-2 7B and 13B on GSM8K: best in most settings, with about as many samples as PPO; "
        "all methods end close to each other"
    ),
    traps=(
        "the first round only draws: a run of `round_steps` or fewer learns nothing; a prompt that "
        "is never solved drops out; epochs of imitation raise maj@1 and lower pass@96"
    ),
)
