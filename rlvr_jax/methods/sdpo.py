"""SDPO: the policy is its own teacher, once it has seen an answer that was right.

"Reinforcement Learning via Self-Distillation", https://github.com/lasgroup/SDPO

    teacher: an average of the weights, decay 0.95, behind the prompt with a right answer of the
             same group, never the row's own; rows without one are not learned from
    s, t  = policy and teacher over the policy's k likeliest tokens and one class of all others
    D     = (1 - α) KL(s ‖ m) + α KL(t ‖ m),  m = (1 - α) s + α t
    loss  = Σ min(ρ, 2) D / Σ n_i over the rows that are taught, ρ without gradient

No advantage and no reward enter the loss, outcomes only choose. α = 0 is the forward KL(t ‖ s), 1
the reverse KL(s ‖ t). Rows that are right are distilled as well, if another one is. The whole
vocabulary is `distilled(over_vocabulary("js"), cap)`, the sampled token
`distilled(at_sampled_token(), cap)`. k is 100 in their experiments and 20 with feedback in words;
here at most 64. Feedback in words, a think block that is left out of the shown answer, and a
teacher between reference and policy are not here.
"""

from rlvr_jax.experience import experience, show_sibling
from rlvr_jax.objectives import (
    distilled,
    drop_untaught,
    no_advantage,
    objective,
    over_likeliest,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def sdpo(
    alpha: float = 0.5,
    top_k: int = 20,
    ratio_cap: float = 2.0,
    success: float = 0.5,
    teacher: str = "average:0.95",
) -> Recipe:
    """Distillation from the averaged policy that was shown a right answer of the group.

    Args:
      alpha: between the forward divergence, 0, and the reverse one, 1.
      top_k: likeliest tokens of the policy that are compared one by one (k).
      ratio_cap: of the importance weight of old rollouts.
      success: outcome from which on a row can be shown.
      teacher: whose weights the teacher has.
    """
    return Recipe(
        objective=objective(
            advantage=no_advantage(),
            transforms=[drop_untaught(success)],
            surrogate=distilled(over_likeliest(top_k, alpha), ratio_cap),
            aggregation=token_mean(),
        ),
        experience=experience(stages=[show_sibling(success)]),
        teacher=teacher,
    )


METHOD = Method(
    sdpo,
    "Reinforcement Learning via Self-Distillation",
    "https://github.com/lasgroup/SDPO",
    changes="mask, surrogate, guidance",
    left_out="feedback in words; a teacher between reference and policy",
    reports="science, tool use and LiveCodeBench v6: better than GRPO's kind, with fewer samples",
    traps=(
        "groups without a right answer teach nothing, nor does the only right row; right rows are "
        "distilled, too; the code's class defaults (α 0, threshold 1, no cap) are not its "
        "experiments'; a rate of 0.01 in a script is not read; where updates are large, an average "
        "of 20 of them follows the policy and it unlearns (brackets): a slower one, or start"
    ),
)
