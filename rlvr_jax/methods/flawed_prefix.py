"""Mixed-CoT-RL: half of the answers begin with a solution in which one error is planted.

"Can Large Reasoning Models Improve Accuracy on Mathematical Tasks Using Flawed Thinking?", of which
the abstract was read.

    prompts   clean, or begun with a worked solution that has exactly one error: a wrong result
              ("calculation") or a step left out ("reasoning"), cut right behind it
    R         = 1 if the final answer is right, else 0
    loss      = GRPO's clip on the token mean, within the answers to one prefix

The planted words are context and never learned from. Evaluate on clean prompts and on begun ones:
curves tell both. Shares, cut and clip are ours. Tasks bring the prefixes as
`Prompt.meta["flawed"]`, as `partial_sums` does; a prompt without one is asked as it is.
"""

from collections.abc import Sequence

from rlvr_jax.experience import experience, mix_views, shuffled_epochs
from rlvr_jax.experience.views import begin_with_flaw
from rlvr_jax.objectives import group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.types import Method, Recipe


def flawed_prefix(
    kinds: Sequence[str] = ("calculation", "reasoning"),
    shares: Sequence[float] = (0.25, 0.25),
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on clean prompts and on answers that begin with an error.

    Args:
      kinds: of errors, names in `Prompt.meta["flawed"]`.
      shares: of the prompts of a step that begin with each.
      clip_low, clip_high: half-widths of the trust region (ε).
      epsilon: added to the standard deviation of a group's rewards.
    """
    views = [begin_with_flaw(kind) for kind in kinds]
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience([shuffled_epochs(), mix_views(views, shares)]),
    )


METHOD = Method(
    flawed_prefix,
    "Can Large Reasoning Models Improve Accuracy on Mathematical Tasks Using Flawed Thinking?",
    "",
    changes="curriculum, guidance",
    evidence="reconstruction",
    reports=(
        "Qwen3-4B behind flawed beginnings: 24 % (clean RL 19, base 20), clean 41 as by clean RL; "
        "reasoning errors help more"
    ),
    traps=(
        "prompts without flawed beginnings in `Prompt.meta` are asked as they are, so it is GRPO "
        "there; a flaw that does not change the answer is none; report clean and begun accuracy "
        "apart"
    ),
)
