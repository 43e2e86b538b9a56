"""LongRLVR: in a long context, also rewards a response for citing the relevant chunks.

"LongRLVR: Long-Context Reinforcement Learning Requires Verifiable Context Rewards",
https://github.com/real-absolute-AI/LongRLVR

    P = |U ∩ Z| / |U|, R = |U ∩ Z| / |Z| of the cited chunks U and the reference Z
    F_β  = (1 + β²) P R / (β² P + R);  r = a + η F + (1 - η) a F, 0 if the format is broken
    A_i  = (r_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

An incorrect response (a = 0) earns at most η (`fraction`), a correct one 1 + F. β = 2 tolerates
extra citations. P, R and the format are rewards of the task (`columns`), as of `cited_chains`.
`rlvr_jax.verifiers.texts.longrlvr` reads the cited chunks of a response. The authors drop groups of
mixed outcomes and equal total rewards. Here all groups stay, as equal rewards have no gradient.

Left out: long documents, as a chunk of `cited_chains` has one fact; the judge of answers; the
filter of groups.
Reports: a 14B model over RL on answers, in %: RULER-QA 73.17 to 88.90, LongBench v2 39.8 to 46.5.
Traps: Rewards go up to 2. Groups of equal outcomes train only on citations. Citing all of 50
chunks, 2 of them relevant, still scores 0.17.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.experience import Shaping, experience, part, shape, shaping
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import NonNegativeInt, Positive, Unit

Rows = Float[Array, "B"]


@part
def grounded(
    precision: NonNegativeInt,
    recall: NonNegativeInt,
    form: NonNegativeInt | None = None,
    beta: Positive = 2.0,
    fraction: Unit = 0.1,
) -> Shaping:
    """a + η F + (1 - η) a F, and 0 where the format is broken.

    Args:
      precision, recall: indices of the task's rewards.
      form: index of the reward that is 1 if the format is correct; None: it always is.
      beta: weight of recall in F (β).
      fraction: fraction of F that an incorrect response earns (η).
    Metrics: reward/precision, reward/recall, reward/f_score, reward/format (means over the rows;
      reward/format with a format), reward/citations (mean of the reward minus the outcome).
    """
    columns = [precision, recall, *([] if form is None else [form])]

    def reward(rollouts):
        cited = [rollouts.records["component_rewards"][:, column] for column in columns]
        score, outcome = f_score(*cited[:2], beta), rollouts.outcome
        names = ("reward/precision", "reward/recall", "reward/format")
        parts = {**dict(zip(names, cited, strict=False)), "reward/f_score": score}
        earned = outcome + fraction * score + (1 - fraction) * outcome * score
        if form is not None:
            earned = jnp.where(cited[2] > 0.5, earned, jnp.where(jnp.isnan(cited[2]), jnp.nan, 0))
        return earned, {**parts, "reward/citations": earned - outcome}

    return shaping(reward, columns=max(columns) + 1)


def f_score(precision: Rows, recall: Rows, beta: float) -> Rows:
    """F_β, 0 if no cited chunk is relevant; NaN where P or R is NaN."""
    weighed = beta**2 * precision + recall
    hit = (1 + beta**2) * precision * recall / jnp.where(weighed > 0, weighed, 1)
    return jnp.where(weighed > 0, hit, jnp.where(jnp.isnan(weighed), jnp.nan, 0))


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon", clip_high=0.28)
def longrlvr(
    beta: Positive = 2.0,
    fraction: Unit = 0.1,
    columns: Sequence[NonNegativeInt] = (0, 1, 2),
    **clip: Any,
) -> Recipe:
    """Applies clip-higher with the token mean to answers and their citations.

    Args:
      beta: weight of recall in the score of citations (β).
      fraction: fraction of that score that an incorrect response earns (η).
      columns: indices of the task's rewards: precision, recall and, if it can fail, the format.
    """
    return Recipe(
        objective=clipped_objective(**clip),
        experience=experience(stages=[shape(grounded(*columns, beta=beta, fraction=fraction))]),
    )


METHOD = Method(
    longrlvr,
    changes="reward",
    shown=Shown("cited_chains", "experience/reward/citations"),
)
