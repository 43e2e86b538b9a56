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

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.experience import experience, show_sibling
from rlvr_jax.objectives import distilled, no_advantage, objective, token_mean
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.objectives.surrogates.distillation import Distance
from rlvr_jax.objectives.transforms.teachers import has_right_sibling
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import Count, Finite, Unit
from rlvr_jax.types.parts import part

LEAST_TAIL = 1e-7
"""The mass of all other tokens is taken to be this at least, so that logarithms stay finite."""


def with_tail(topk_logp: Float[Array, "... k"]) -> Float[Array, "... k+1"]:
    """Log-probs of k tokens and, behind them, of all others together, `LEAST_TAIL` at least."""
    mass = jax.nn.logsumexp(topk_logp, axis=-1, keepdims=True)
    rest = jnp.log(-jnp.expm1(jnp.minimum(mass, -LEAST_TAIL)))
    return jnp.concatenate([topk_logp, rest], axis=-1)


@part
def over_likeliest(top_k: Count, alpha: Unit) -> Distance:
    """A divergence over the policy's k likeliest tokens and one class of all others.

    With s and t the policy and the teacher over these k + 1 classes and m = (1 - α) s + α t:
    KL(t ‖ s) for α = 0, KL(s ‖ t) for α = 1, else (1 - α) KL(s ‖ m) + α KL(t ‖ m). Which tokens
    are likeliest carries no gradient, s does, within m, too.

    Args:
      top_k: k.
      alpha: α, in [0, 1].
    """

    def relative(one, two):
        return jnp.sum(jnp.exp(one) * (one - two), axis=-1)

    def values(context):
        own = with_tail(context.stats.topk_logp)
        teacher = with_tail(jax.lax.stop_gradient(context.stats.teacher_topk_logp))
        if alpha == 0:
            return relative(teacher, own)
        if alpha == 1:
            return relative(own, teacher)
        mixture = jnp.logaddexp(own + jnp.log1p(-alpha), teacher + jnp.log(alpha))
        return (1 - alpha) * relative(own, mixture) + alpha * relative(teacher, mixture)

    reads = frozenset({"topk_logp", "topk_ids", "teacher_topk_logp"})
    return Distance(values, reads, (("top_k", top_k),))


@part(reads={"logp"})
def at_sampled_token() -> Distance:
    """sg(log π - log π_T) · log π: the gradient of KL(policy ‖ teacher), from one token of it."""

    def values(context):
        logp = context.stats.logp
        gap = jax.lax.stop_gradient(logp - context.rollouts.teacher_logp)
        return gap * logp

    return Distance(values, frozenset({"logp", "teacher_logp"}), (), "at_sampled_token()")


@part(writes={"mask"})
def drop_untaught(success: Finite = 0.5) -> Transform:
    """Takes rows out of the loss and its denominators that no other row of their group could teach.

    Args:
      success: outcome from which on a row is right.
    Metrics: taught_share (of the tokens).
    """

    def apply(signals, context, state):
        taught = has_right_sibling(context.rollouts, success)[:, None]
        everywhere = jnp.broadcast_to(taught, signals.mask.shape)
        told = {"taught_share": masked_mean(everywhere, signals.mask)}
        return replace(signals, mask=signals.mask & taught), state, told

    return apply


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
    small={"top_k": 3},
    left_out="feedback in words; a teacher between reference and policy",
    reports="science, tool use and LiveCodeBench v6: better than GRPO's kind, with fewer samples",
    traps=(
        "groups without a right answer teach nothing, nor does the only right row; right rows are "
        "distilled, too; the code's class defaults (α 0, threshold 1, no cap) are not its "
        "experiments'; a rate of 0.01 in a script is not read; where updates are large, an average "
        "of 20 of them follows the policy and it unlearns (brackets): a slower one, or start"
    ),
)
