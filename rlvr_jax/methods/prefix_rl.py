"""PrefixRL: hard prompts whose response begins with part of a right answer, beside plain ones.

"Reuse your FLOPs: Scaling RL on Hard Problems by Conditioning on Very Off-Policy Prefixes", of
which the abstract was read.

    a prefix is the first 40 to 80 % of a worked solution, 3 of each prompt
    A_i  = R_i - mean over the completions of one prefix
    loss = Σ -A_i logp / Σ n_i over the tokens behind the prefix

The prefix is context: nothing imitates it and no ratio weighs it, so every gradient is on-policy.
What is learned behind prefixes carries over to plain prompts. Aggregation, no standard deviation
and the share of prefixed asks by their 3k of 4k prompts are our readings. Cuts are between the
tokens of the solution as the policy's tokenizer reads it.
"""

from rlvr_jax.experience import begin_with_prefixes, experience, shuffled_epochs
from rlvr_jax.objectives import group_centered, objective, reinforce, token_mean
from rlvr_jax.types import Method, Recipe


def prefix_rl(low: float = 0.4, high: float = 0.8, cuts: int = 3, share: float = 0.75) -> Recipe:
    """Centered rewards on what the policy writes behind prefixes of solutions.

    Args:
      low, high: of a solution's tokens that a prefix has.
      cuts: prefixes of each prompt.
      share: of the asks that begin with one.
    """
    curriculum = [shuffled_epochs(), begin_with_prefixes(low, high, cuts, share)]
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            surrogate=reinforce(),
            aggregation=token_mean(),
        ),
        experience=experience(curriculum),
    )


METHOD = Method(
    prefix_rl,
    "Reuse your FLOPs: Scaling RL on Hard Problems by Conditioning on Very Off-Policy Prefixes",
    "",
    changes="advantage, curriculum, guidance",
    evidence="reconstruction",
    left_out="drawing the solutions by rejection sampling; hard prompts alone have prefixes",
    reports=(
        "twice as fast in compute as SFT on the traces and then RL, counting their sampling; "
        "AIME25 38.2 to 61.3; traces of another family of models work, too"
    ),
    traps=(
        "needs a solution of every prompt, and right ones; it is for hard prompts: on easy ones, "
        "or cut later, every completion is right and nothing is learned; the budget counts the "
        "prefix"
    ),
)
