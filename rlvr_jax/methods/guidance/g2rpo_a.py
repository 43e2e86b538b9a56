"""G²RPO-A: two rows of a group begin with part of a solution, less of it as the policy improves.

"G²RPO-A: Guided Group Relative Policy Optimization with Adaptive Guidance",
https://github.com/T-Lab-CUHKSZ/G2RPO-A

    the first rows of a group begin with the first ⌊ℓ min(1, n / ℓ_max)⌋ of the n tokens of the
    worked solution, and at least one
    ℓ' = ℓ ā / a every third step, a its accuracy and ā the mean of the two steps before
    A_i  = (R_i - mean) / (std + 1e-4) over all rows, std with n - 1
    loss = mean_i (1/n_i) Σ_t [-A π / sg(π) + β k3(π ‖ π_ref)]

Given tokens count as the row's own and have its advantage. With a mask on them, this is PrefixRL's
loss. ℓ is in 1 … ℓ_max (`longest`). A solution of at least ℓ_max tokens shows its first ℓ, as in
the release. A shorter one shows the fraction ℓ / ℓ_max; in the release it is shown completely until
ℓ is below its length. The release has 2 guided rows in every 12, independent of the group's size;
here they are the first rows of every group. The weight β is that of their trainer's base class.
Given tokens end before the last token of the budget.

Left out: a linear decay of the length, the authors' other script.
Reports: small models in maths and code: far above GRPO. Guidance of a fixed length gains little
(abstract, no numbers).
Traps: A guided row that fails lowers the solution's probability. While no response of a step is
correct, ℓ does not change, although more help is required. The first three steps show the answer of
every solution of at most ℓ_max tokens.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience import Stage, experience, part, plain
from rlvr_jax.experience.stages.donors.traces import fewer_rows
from rlvr_jax.objectives import (
    group_normalized,
    importance_weighted,
    kl_penalty,
    objective,
    on_policy_ratio,
    rollout_mean_token_mean,
)
from rlvr_jax.objectives.surrogates.by_origin import GIVEN
from rlvr_jax.types import Method, Recipe, Shown
from rlvr_jax.types.hyperparameters import Count, Epsilon, KLCoefficient, Temperature

WINDOW = 2
"""Number of accuracies that the next one is compared with."""


@part(reads={"solution"}, writes={"origin"}, by_row=True)
def guide_first_rows(rows: Count, longest: Count) -> Stage:
    """Begins the first rows of every group with the first tokens of the worked solution.

    The given tokens are trained on like sampled ones, with the advantage of the row. Their number
    follows from ℓ (`given_tokens`). ℓ starts at `longest`. It follows the accuracy of the trained
    rows (`guidance_after`).

    Metrics: guidance_length (ℓ, given tokens of a solution of `longest` tokens), guided_tokens
      (mean of a guided row), partly_guided_rows (fraction with a part of the solution).
    Raises:
      ValueError: at the start of a run, groups without an unguided row.
    """

    def init(setting):
        return Guidance(np.int32(longest), np.int32(0), np.zeros(WINDOW))

    def apply(batch, actor, state, turn):
        most, length = turn.setting.response_tokens - 1, int(state.length)
        every = np.ones(len(batch.groups), bool)
        plainly = batch.requests_of(every)
        whole = [actor.encode("".join(request.prompt.solution)) for request in plainly]
        shown = [ids[: min(given_tokens(length, len(ids), longest), most)] for ids in whole]
        requests = [
            replace(request, samples=rows, given=ids)
            for request, ids in zip(plainly, shown, strict=True)
        ]
        guided = actor.grade(actor.draw(requests, turn.key))
        batch = batch.with_groups(every, guided, "prepend")
        rollouts = batch.rollouts
        first = np.concatenate([np.arange(len(group)) < rows for group in batch.groups])
        given = (rollouts.records["origin"] == GIVEN) & first[:, None]
        metrics = {
            "guidance_length": float(state.length),
            "guided_tokens": float(given.sum() / (rows * len(requests))),
            "partly_guided_rows": float(
                np.mean([len(a) < len(b) for a, b in zip(shown, whole, strict=True)])
            ),
        }
        return batch.with_rollouts(mask=rollouts.mask | given), state, metrics

    def observe(state, turn, seen, learned):
        accuracy = learned.rollouts.outcome[learned.decided].astype(float)
        if len(accuracy):
            state = guidance_after(state, float(accuracy.mean()), longest)
        return state, {}

    return Stage(apply, init, observe, size=fewer_rows("guide_first_rows: rows", rows))


def given_tokens(length: int, solution: int, longest: int) -> int:
    """Number of given tokens of a solution: ⌊ℓ min(1, n / ℓ_max)⌋, at least 1.

    Args:
      length: given tokens of a solution of ℓ_max tokens or more (ℓ).
      solution: tokens of the solution (n).
      longest: ℓ_max.
    """
    return max(length * min(solution, longest) // longest, 1)


class Guidance(NamedTuple):
    """The length of the guidance and the accuracies that decide about it.

    Fields:
      length: int32 [], tokens (ℓ).
      steps: int32 [], number of accuracies so far.
      recent: float64 [2], the accuracies that the next one is compared with.
    """

    length: np.ndarray
    steps: np.ndarray
    recent: np.ndarray


def guidance_after(state: Guidance, accuracy: float, longest: int) -> Guidance:
    """The guidance after a step: shorter if it was more accurate than the two before, else longer.

    Every third accuracy a_s is compared with the mean ā of the two before it. If neither is 0:
    ℓ' = ⌊min(ℓ ā / a_s, ℓ_max)⌋ where a_s < ā, max(⌊ℓ ā / a_s⌋, 1) where a_s > ā.
    """
    place = int(state.steps) % (WINDOW + 1)
    recent, length = state.recent.copy(), int(state.length)
    if place < WINDOW:
        recent[place] = accuracy
    else:
        mean = recent.mean()
        if mean > 0 and accuracy > 0 and mean != accuracy:
            wanted = length * mean / accuracy
            length = max(int(wanted), 1) if accuracy > mean else int(min(wanted, longest))
    return Guidance(np.int32(length), np.int32(state.steps + 1), recent)


def g2rpo_a(
    guided: Count = 2,
    longest: Count = 3072,
    kl_coefficient: KLCoefficient = 0.04,
    temperature: Temperature = 0.7,
    epsilon: Epsilon = 1e-4,
) -> Recipe:
    """Applies GRPO without a clip to groups whose first rows begin with part of a solution.

    Args:
      guided: guided rows of each group.
      longest: initial and largest number of given tokens (ℓ_max); shorter solutions are given in
        proportion.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=importance_weighted(on_policy_ratio),
            regularizers=[kl_penalty(kl_coefficient)] if kl_coefficient else [],
            aggregation=rollout_mean_token_mean(),
        ),
        experience=experience(
            draw=plain(temperature=temperature), stages=[guide_first_rows(guided, longest)]
        ),
    )


METHOD = Method(
    g2rpo_a,
    changes="advantage, surrogate, guidance, sampling",
    gradient="stopped",
    shown=Shown("hinted_brackets", "experience/partly_guided_rows", steps=300, within=7),
)
