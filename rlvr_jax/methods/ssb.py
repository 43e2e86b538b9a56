"""SSB: an explanation that the policy gives once it has seen a right and a wrong answer.

"Semantic Soft Bootstrapping: Long Context Reasoning in LLMs without Reinforcement Learning",
https://github.com/purbeshmitra/semantic-soft-bootstrapping

    groups with a right and a wrong answer; of the wrong ones one with the commonest answer
    reply: the policy's, shown both; kept if it is right
    loss = τ² mean_t KL(softmax(z_T / τ) ‖ softmax(z / τ)) over the replies' tokens

z_T are the logits of the policy that the run began with behind the prompt with both answers, z
those of the policy behind the bare prompt; gradient through z alone. No reward enters the loss. The
authors make replies and logits once, before training, from the same base model; here every step
makes its own with the current weights, and the teacher's are those of the start. Theirs are LoRA
runs: `--lora-rank 32`.
"""

from rlvr_jax.experience import bootstrap_replies, experience
from rlvr_jax.objectives import (
    no_advantage,
    no_policy_loss,
    objective,
    statistic_penalty,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def ssb(temperature: float = 2.0, teacher: str = "start") -> Recipe:
    """Forward KL at a temperature from the policy that was shown a right and a wrong answer.

    Args:
      temperature: of both distributions (τ).
      teacher: whose weights the teacher has.
    """
    return Recipe(
        objective=objective(
            advantage=no_advantage(),
            surrogate=no_policy_loss(),
            regularizers=[statistic_penalty(temperature**2, "reverse_kl")],
            aggregation=token_mean(),
        ),
        experience=experience(stages=[bootstrap_replies(temperature)]),
        teacher=teacher,
    )


METHOD = Method(
    ssb,
    "Semantic Soft Bootstrapping: Long Context Reasoning in LLMs without Reinforcement Learning",
    "https://github.com/purbeshmitra/semantic-soft-bootstrapping",
    changes="surrogate, guidance",
    left_out="replies and logits made once, before training",
    reports="over GRPO, same model and data: 10.6 points on MATH500, 10 on AIME24",
    traps=(
        "only groups with a right and a wrong answer give a reply, and only a right reply is "
        "kept: else a step teaches nothing; theirs is offline, LoRA at rate 2e-4; without τ² the "
        "gradient shrinks"
    ),
)
