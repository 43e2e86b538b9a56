"""rStar-Math: search for right answers step by step, and imitate the best traces.

"rStar-Math: Small LLMs Can Master Math Reasoning with Self-Evolved Deep Thinking",
https://github.com/microsoft/rStar (branch rStar-math)

    a node is a step; child chosen by Q + c sqrt(ln N_parent / N), 0 where N = 0
    an end is backed up, ±1, by sum and count along its path
    trained: per problem the 2 right traces of highest mean Q,  loss = mean of -log π

A round of searches and fine-tuning is a step here, and the policy goes on from where it is; the
authors have four rounds over all problems, each from the base. Their steps are text and code, and
end with `<end_of_step>` or `<end_of_code>`: with `code` the Python since the last end of code is
run in the sandbox after each step, what it prints is read behind `<end_of_code>` and not imitated,
and a second error in a row ends a path. Without it steps are texts between empty lines: that is the
default here, as a policy that knows none of the marks writes no code.

From the second round on their search is guided by a process preference model, fine-tuned from the
policy on pairs of sibling steps of the last round. Here, with a `guide_rate`, it is a linear head
on the policy's own hidden state behind a step: after each step of the run it takes a step of Adam
on the loss of the pairs (`sibling_pairs`, `pair_loss`), and the next searches begin with its
values.
"""

from rlvr_jax.experience import experience, rejection_sampling, step_tree
from rlvr_jax.objectives import (
    imitate,
    no_advantage,
    no_policy_loss,
    objective,
    own_words,
    token_mean,
)
from rlvr_jax.tools import code_steps
from rlvr_jax.types import Method, Recipe


def rstar_math(
    separator: str | None = None,
    candidates: int = 12,
    iterations: int = 48,
    depth: int = 16,
    exploration: float = 2.0,
    traces: int = 2,
    step_tokens: int | None = None,
    temperature: float = 0.7,
    weight: float = 1.0,
    code: bool = False,
    errors: int = 2,
    reply_tokens: int = 512,
    guide_rate: float = 0.0,
) -> Recipe:
    """Imitation of the best right traces of a search over steps.

    Args:
      separator: text that ends a step; None: an empty line, and with code "<end_of_step>".
      candidates: next steps that are drawn in a node.
      iterations: descents of a tree.
      depth: steps of a response at most.
      exploration: of the choice among children (c).
      traces: that are trained of a problem at most.
      step_tokens: of a step at most; None: what is left of the budget.
      temperature: of the sampler.
      weight: of the imitation.
      code: steps may have Python in them, which is run (`code_steps`).
      errors: of code in a row that end a path.
      reply_tokens: of what code prints at most.
      guide_rate: learning rate of the head that guides the search; 0: none does.
    """
    if separator is None:
        separator = "<end_of_step>" if code else "\n\n"
    search = step_tree(
        separator,
        candidates,
        iterations,
        depth,
        exploration,
        traces,
        step_tokens,
        temperature,
        code_steps(separator, errors=errors) if code else None,
        reply_tokens,
        guide_rate,
    )
    learned = imitate(weight, own_words, ("supervised", "origin")) if code else imitate(weight)
    return Recipe(
        objective=objective(
            advantage=no_advantage(),
            surrogate=no_policy_loss(),
            regularizers=[learned],
            aggregation=token_mean(),
        ),
        experience=experience(draw=search, stages=[rejection_sampling()]),
    )


METHOD = Method(
    rstar_math,
    "rStar-Math: Small LLMs Can Master Math Reasoning with Self-Evolved Deep Thinking",
    "https://github.com/microsoft/rStar",
    changes="sampling, selection, surrogate",
    left_out="a preference model with weights of its own (here: a head on the policy's states), and"
    " its search at test time; rounds that begin with the base",
    reports=(
        "with search, MATH: Qwen2.5-Math-7B 58.8 to 90.0, Phi3-mini 41.4 to 86.4; AIME24 53.3 %"
    ),
    traps=(
        "values rest on few visits: below some ten the choice of traces is noise; a problem that "
        "is never solved trains nothing; the search costs many times a plain draw; steps need the "
        "separator"
    ),
)
