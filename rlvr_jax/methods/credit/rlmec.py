"""RLMEC: a model that would rewrite a response says which of its tokens are worth keeping.

"Improving Large Language Models via Fine-grained Reinforcement Learning with Minimum Editing
Constraint", https://github.com/RUCAIBox/RLMEC

    p_t  = probability of the token under the rewriting model
    r_t  = clip(p - ½, 0, ½) in right responses, clip(p - ½, -0.1, 0) in wrong ones
    c_t  = min(ρ r, clip(ρ, 1 ± 0.3) r) without gradient, ρ = π / π_ref
    loss = -Σ c_t logp_t / number of tokens with r ≠ 0

The rewriting model is the recipe's teacher: the folder of a model fine-tuned to find and mend the
first wrong step; with the weights of the start the rewards say what the start would have written.
The authors add the cross entropy of rewrites, 1 on edited tokens and ½ on kept ones
(`edited_places`, `imitate` with a factor): that needs rewrites, and is left out. Theirs is training
on stored samples.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives import objective, token_mean
from rlvr_jax.objectives.algebra.parts import Surrogate, Transform
from rlvr_jax.objectives.regularizers.preferences import outcome_is_right
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.objectives.statistics.ratios import token_ratio
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import NonNegative
from rlvr_jax.types.parts import part


@part(reads={"teacher_logp"}, writes={"advantage", "mask"})
def rewriter_credit(high: NonNegative = 0.5, low: NonNegative = 0.1) -> Transform:
    """A_t = `rewriter_reward` of the teacher's probability; tokens of reward 0 leave the mask.

    So an average is over key tokens only.

    Args:
      high, low: the largest reward of a right response's token, and price of a wrong one's.
    Metrics: key_tokens_share.
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        probability = jnp.exp(rollouts.teacher_logp)
        reward = rewriter_reward(probability, outcome_is_right(rollouts.outcome), high, low)
        key = signals.mask & (reward != 0)
        metrics = {"key_tokens_share": masked_mean(key, signals.mask)}
        signals = replace(signals, advantage=jnp.where(key, reward, 0), mask=key)
        return signals, state, metrics

    return apply


def rewriter_reward(
    probability: Float[Array, "B T"], right: Bool[Array, "B"], high: float, low: float
) -> Float[Array, "B T"]:
    """p - ½, within [0, h] in right responses and [-l, 0] in wrong ones.

    Tokens that the rewriter would keep earn in a right response, those that it would change cost in
    a wrong one; the others are nothing.

    Args:
      probability: p of the rewriting model, of the original tokens.
      right: whether the response is.
      high, low: h and l.
    """
    above = probability - 0.5
    return jnp.where(right[:, None], jnp.clip(above, 0, high), jnp.clip(above, -low, 0))


def edit_distance_table(original: Sequence[Any], rewrite: Sequence[Any]) -> np.ndarray:
    """Levenshtein distances of all beginnings, [n + 1, m + 1]; each edit costs 1."""
    table = np.zeros((len(original) + 1, len(rewrite) + 1), int)
    table[:, 0], table[0] = np.arange(len(original) + 1), np.arange(len(rewrite) + 1)
    for i, old in enumerate(original, 1):
        for j, new in enumerate(rewrite, 1):
            kept = table[i - 1, j - 1] + (old != new)
            table[i, j] = min(kept, table[i - 1, j] + 1, table[i, j - 1] + 1)
    return table


def edited_places(original: Sequence[Any], rewrite: Sequence[Any]) -> list[int]:
    """Places of the rewrite that are marked as edited, from 0.

    The way of fewest edits is walked back from both ends until one text is used up, preferring a
    match, then a deletion, an insertion, a replacement; at every place (i, j) of it with another
    token in the two texts the rewrite's token is marked, at a deletion as well. So tokens inserted
    at the very beginning are not.
    """
    table, marked = edit_distance_table(original, rewrite), set()
    i, j = len(original), len(rewrite)
    while i and j:
        if original[i - 1] == rewrite[j - 1]:
            i, j = i - 1, j - 1
            continue
        marked.add(j - 1)
        if table[i, j] == table[i - 1, j] + 1:
            i -= 1
        elif table[i, j] == table[i, j - 1] + 1:
            j -= 1
        else:
            i, j = i - 1, j - 1
    return sorted(marked)


@part
def reference_weighted(clip: NonNegative = 0.3) -> Surrogate:
    """-c logp, c = sg(min(ρ A, clip(ρ, 1 ± ε) A)), ρ = π / π_ref.

    c is detached as a whole: clipped tokens still have a gradient.

    Args:
      clip: ε, at least 0.
    """

    def prepare(signals, context):
        reference = context.rollouts.reference_logp
        return replace(
            signals,
            ratio=token_ratio(context.stats.logp, reference, signals.mask),
            clip_low=jnp.full_like(signals.clip_low, clip),
            clip_high=jnp.full_like(signals.clip_high, clip),
        )

    def loss(signals, context):
        return -_weight(signals, clip) * context.stats.logp

    return Surrogate(prepare, loss, reads=frozenset({"reference_logp"}))


def _weight(signals, clip):
    bounded = jnp.clip(signals.ratio, 1 - clip, 1 + clip) * signals.advantage
    return jax.lax.stop_gradient(jnp.minimum(signals.ratio * signals.advantage, bounded))


def rlmec(clip: float = 0.3, high: float = 0.5, low: float = 0.1, teacher: str = "start") -> Recipe:
    """The policy gradient on key tokens, weighted against the reference.

    Args:
      clip: half-width of the trust region around the reference.
      high, low: the largest reward of a right response's token, and price of a wrong one's.
      teacher: the rewriting model, a folder.
    """
    return Recipe(
        objective=objective(
            advantage=rewriter_credit(high, low),
            surrogate=reference_weighted(clip),
            aggregation=token_mean(),
        ),
        teacher=teacher,
    )


METHOD = Method(
    rlmec,
    "Improving Large Language Models via Fine-grained Reinforcement Learning with Minimum Editing"
    " Constraint",
    "https://github.com/RUCAIBox/RLMEC",
    changes="reward, advantage, surrogate",
    baseline="other",
    gradient="stopped",
    ratio="other",
    left_out="the rewriting model and the imitation of its rewrites",
    reports="above RL on whole answers in maths and question answering (no number)",
    traps=(
        "with the default teacher, the start itself, it says only what the start would have "
        "written; clipped tokens still learn; tokens of reward 0 are not in the denominator; "
        "wrong ones weigh a fifth"
    ),
)
