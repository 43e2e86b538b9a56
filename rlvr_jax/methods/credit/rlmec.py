"""RLMEC: rewards tokens by the probability under a model that rewrites responses.

"Improving Large Language Models via Fine-grained Reinforcement Learning with Minimum Editing
Constraint", https://github.com/RUCAIBox/RLMEC

    p_t  = probability of the token under the rewriting model
    r_t  = clip(p - ½, 0, ½) in correct responses, clip(p - ½, -0.1, 0) in incorrect ones
    c_t  = min(ρ r, clip(ρ, 1 ± 0.3) r) without gradient, ρ = π / π_ref
    loss = -Σ c_t logp_t / number of tokens with r ≠ 0

The rewriting model is the recipe's teacher: the folder of a model that was fine-tuned to find and
correct the first incorrect step. The authors add the cross entropy of rewrites, with weight 1 on
edited tokens (`edited_places`) and ½ on others. They train on stored samples.

Left out: the rewriting model and the imitation of its rewrites.
Reports: above RL on whole answers in maths and question answering (no numbers).
Traps: The default teacher is the initial policy, so rewards only measure agreement with it. Clipped
tokens still train. Tokens of reward 0 are not in the denominator. Incorrect responses weigh a
fifth.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.objectives import Surrogate, Transform, masked_mean, objective, part, token_mean
from rlvr_jax.objectives.statistics.ratios import token_ratio
from rlvr_jax.types import Method, Recipe, is_correct, replace
from rlvr_jax.types.hyperparameters import NonNegative


@part(reads={"teacher_logp"}, writes={"advantage", "mask"})
def rewriter_credit(high: NonNegative = 0.5, low: NonNegative = 0.1) -> Transform:
    """A_t = p - ½, clipped to [0, high] in correct responses and to [-low, 0] in incorrect ones.

    p is the teacher's probability. Tokens of reward 0 leave the mask: averages are over key tokens.

    Metrics: key_tokens_fraction (fraction of the tokens with a reward other than 0).
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        above = jnp.exp(rollouts.records["teacher_logp"]) - 0.5
        correct = is_correct(rollouts.outcome)[:, None]
        reward = jnp.where(correct, jnp.clip(above, 0, high), jnp.clip(above, -low, 0))
        key = signals.mask & (reward != 0)
        metrics = {"key_tokens_fraction": masked_mean(key, signals.mask)}
        signals = replace(signals, advantage=jnp.where(key, reward, 0), mask=key)
        return signals, state, metrics

    return apply


@part
def reference_weighted(clip: NonNegative = 0.3) -> Surrogate:
    """-c logp with c = sg(min(ρ A, clip(ρ, 1 ± ε) A)) and ρ = π / π_ref.

    c has no gradient, so clipped tokens still train.
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
        bounded = jnp.clip(signals.ratio, 1 - clip, 1 + clip) * signals.advantage
        weight = jnp.minimum(signals.ratio * signals.advantage, bounded)
        return -jax.lax.stop_gradient(weight) * context.stats.logp

    return Surrogate(prepare, loss, reads=frozenset({"reference_logp"}))


def edited_places(original: Sequence[Any], rewrite: Sequence[Any]) -> list[int]:
    """Positions of the rewrite that count as edited.

    The path of fewest edits (Levenshtein) is followed backwards until one text is used up,
    preferring a match, then a deletion, an insertion, a replacement. At every (i, j) of the path
    with different tokens the rewrite's token j is marked, at deletions as well. So tokens that are
    inserted at the very beginning are not marked.
    """
    table = np.zeros((len(original) + 1, len(rewrite) + 1), int)
    table[:, 0], table[0] = np.arange(len(original) + 1), np.arange(len(rewrite) + 1)
    for i, old in enumerate(original, 1):
        for j, new in enumerate(rewrite, 1):
            replaced = table[i - 1, j - 1] + (old != new)
            table[i, j] = min(replaced, table[i - 1, j] + 1, table[i, j - 1] + 1)
    marked = set()
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


def rlmec(
    clip: NonNegative = 0.3, high: NonNegative = 0.5, low: NonNegative = 0.1, teacher: str = "start"
) -> Recipe:
    """Applies the policy gradient to key tokens, weighted against the reference.

    Args:
      clip: half-width of the trust region around the reference.
      high: largest reward of a token in a correct response.
      low: largest penalty of a token in an incorrect response.
      teacher: folder of the rewriting model; "start": the initial policy.
    """
    advantage = rewriter_credit(high, low)
    surrogate = reference_weighted(clip)
    return Recipe(
        objective=objective(advantage=advantage, surrogate=surrogate, aggregation=token_mean()),
        teacher=teacher,
    )


METHOD = Method(
    rlmec,
    changes="reward, advantage, surrogate",
    baseline="other",
    gradient="stopped",
    ratio="other",
)
