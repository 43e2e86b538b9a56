"""SDPO: the policy is its own teacher after it has read a correct response.

"Reinforcement Learning via Self-Distillation", https://github.com/lasgroup/SDPO

    teacher: an average of the weights, decay 0.95, after the prompt with a correct response of the
             same group, never the row's own; rows without one are masked
    s, t  = policy and teacher over the policy's k likeliest tokens and one class of all others
    D     = (1 - α) KL(s ‖ m) + α KL(t ‖ m),  m = (1 - α) s + α t
    loss  = Σ min(ρ, 2) D / Σ n_i over the rows with a teacher, ρ without gradient

Neither advantage nor reward enters the loss; outcomes only select rows. The forward KL(t ‖ s) has α
= 0, the reverse KL(s ‖ t) has α = 1. The number k (`top_k`) is 100 in the authors' experiments, and
20 with feedback in words; here it is 64, the largest possible. This recipe does not remove a think
block from the shown response. The authors' code also has the whole vocabulary and the sampled
token.

Left out: feedback in words, as verifiers return grades; the teacher between reference and policy,
as it requires passes of two models.
Reports: science, tool use and LiveCodeBench v6: better than GRPO, with fewer samples (no numbers).
Traps: Groups without a correct response have no gradient, nor has the only correct row. Other
correct rows are also distilled. The defaults of the authors' class (α 0, threshold 1, no cap) are
not those of their experiments, and a rate of 0.01 in a script is not read. If updates are large, an
average over 20 of them follows the policy, which then unlearns (brackets). Use a slower average, or
"start".
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.experience import experience, part, show_sibling
from rlvr_jax.objectives import Distance, Transform, distilled, no_advantage, objective, token_mean
from rlvr_jax.objectives.statistics.groups import has_correct_sibling
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import Method, Recipe, Shown, replace
from rlvr_jax.types.hyperparameters import Bound, Count, Finite, Unit


@part(writes={"mask"})
def drop_untaught(success: Finite = 0.5) -> Transform:
    """Masks rows without a correct row among the others of their group.

    Metrics: taught_fraction (of the tokens).
    """

    def apply(signals, context, state):
        taught = has_correct_sibling(context.rollouts, success)[:, None]
        everywhere = jnp.broadcast_to(taught, signals.mask.shape)
        metrics = {"taught_fraction": masked_mean(everywhere, signals.mask)}
        return replace(signals, mask=signals.mask & taught), state, metrics

    return apply


@part
def over_likeliest(top_k: Count, alpha: Unit) -> Distance:
    """A divergence over the policy's k likeliest tokens and one class of all others.

    With s and t the policy and the teacher over these k + 1 classes and m = (1 - α) s + α t:
    KL(t ‖ s) for α = 0, KL(s ‖ t) for α = 1, else (1 - α) KL(s ‖ m) + α KL(t ‖ m). The choice of
    tokens has no gradient; s has, also within m.
    """

    def relative(one, two):
        return jnp.sum(jnp.exp(one) * (one - two), axis=-1)

    def values(context):
        own = with_tail(context.stats.records["topk_logp"])
        teacher = with_tail(jax.lax.stop_gradient(context.stats.records["teacher_topk_logp"]))
        if alpha == 0:
            return relative(teacher, own)
        if alpha == 1:
            return relative(own, teacher)
        mixture = jnp.logaddexp(own + jnp.log1p(-alpha), teacher + jnp.log(alpha))
        return (1 - alpha) * relative(own, mixture) + alpha * relative(teacher, mixture)

    reads = frozenset({"topk_logp", "topk_ids", "teacher_topk_logp"})
    return Distance(values, reads, (("top_k", top_k),))


LEAST_TAIL = 1e-7
"""Least mass of all other tokens, so that logarithms are finite."""


def with_tail(topk_logp: Float[Array, "... k"]) -> Float[Array, "... k+1"]:
    """Log-probs of k tokens followed by that of all others together, at least `LEAST_TAIL`."""
    mass = jax.nn.logsumexp(topk_logp, axis=-1, keepdims=True)
    rest = jnp.log(-jnp.expm1(jnp.minimum(mass, -LEAST_TAIL)))
    return jnp.concatenate([topk_logp, rest], axis=-1)


def sdpo(
    alpha: Unit = 0.5,
    top_k: Count = 64,
    ratio_cap: Bound = 2.0,
    success: Finite = 0.5,
    teacher: str = "average:0.95",
) -> Recipe:
    """Distills from the averaged policy after a prompt with a correct response of the group.

    Args:
      alpha: between the forward divergence, 0, and the reverse one, 1.
      top_k: number of likeliest tokens of the policy that are compared one by one (k).
      ratio_cap: largest importance weight of old rollouts.
      success: smallest outcome of a response that is shown.
      teacher: weights of the teacher; see `Recipe`.
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
    changes="mask, surrogate, guidance",
    small={"top_k": 3},
    # With the published average, the policy unlearns brackets (Traps).
    shown=Shown(
        "hinted_brackets:train=512",
        "taught_fraction",
        hyperparameters={"teacher": "start"},
    ),
)
