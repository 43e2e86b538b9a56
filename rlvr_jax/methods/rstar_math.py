"""rStar-Math: search for right answers step by step, and imitate the best traces.

"rStar-Math: Small LLMs Can Master Math Reasoning with Self-Evolved Deep Thinking",
https://github.com/microsoft/rStar (branch rStar-math)

    a node is a step; child chosen by Q + c sqrt(ln N_parent / N), 0 where N = 0
    an end is backed up, ±1, by sum and count along its path
    trained: per problem the 2 right traces of highest mean Q,  loss = mean of -log π

A round of searches and fine-tuning is a step here, and the policy goes on from where it is; the
authors have four rounds over all problems, each from the base. Their steps are text and code that
is run at once, and end with `<end_of_step>`; ours are texts between empty lines. From the second
round on their search is guided by a process preference model: the pairs of siblings and the loss
that it is fitted with are `sibling_pairs` and `pair_loss`, and `search_steps` takes its values.
"""

from rlvr_jax.experience import experience, rejection_sampling, step_tree
from rlvr_jax.objectives import imitate, no_advantage, no_policy_loss, objective, token_mean
from rlvr_jax.types import Method, Recipe


def rstar_math(
    separator: str = "\n\n",
    candidates: int = 12,
    iterations: int = 48,
    depth: int = 16,
    exploration: float = 2.0,
    traces: int = 2,
    step_tokens: int | None = None,
    temperature: float = 0.7,
    weight: float = 1.0,
) -> Recipe:
    """Imitation of the best right traces of a search over steps.

    Args:
      separator: text that ends a step.
      candidates: next steps that are drawn in a node.
      iterations: descents of a tree.
      depth: steps of a response at most.
      exploration: of the choice among children (c).
      traces: that are trained of a problem at most.
      step_tokens: of a step at most; None: what is left of the budget.
      temperature: of the sampler.
      weight: of the imitation.
    """
    search = step_tree(
        separator, candidates, iterations, depth, exploration, traces, step_tokens, temperature
    )
    return Recipe(
        objective=objective(
            advantage=no_advantage(),
            surrogate=no_policy_loss(),
            regularizers=[imitate(weight)],
            aggregation=token_mean(),
        ),
        experience=experience(draw=search, stages=[rejection_sampling()]),
    )


METHOD = Method(
    rstar_math,
    "rStar-Math: Small LLMs Can Master Math Reasoning with Self-Evolved Deep Thinking",
    "https://github.com/microsoft/rStar",
    changes="sampling, selection, surrogate",
    left_out="code in the steps, the process preference model, and rounds that begin with the base",
    reports=(
        "with search, MATH: Qwen2.5-Math-7B 58.8 to 90.0, Phi3-mini 41.4 to 86.4; AIME24 53.3 %"
    ),
    traps=(
        "values rest on few visits: below some ten the choice of traces is noise; a problem that "
        "is never solved trains nothing; the search costs many times a plain draw; steps need the "
        "separator"
    ),
)
