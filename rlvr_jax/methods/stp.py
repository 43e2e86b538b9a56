"""STP: the policy conjectures from what it has proved, and imitates its own proofs by weight.

"STP: Self-play LLM Theorem Provers with Iterative Conjecturing and Proving",
https://github.com/kfdong/STP

    statements  unsolved ones, those with success below θ + 0.1, and 1 in 20 of the others
    conjecture  from each proved statement with success above θ + 0.1 and one of its proofs
    proofs      of success ≤ ½:  w = exp(-0.001 characters - 0.01 seconds) / right proofs
    conjectures of 0 < success < θ: w by matching; each unproved statement gives n / m to the
                example that is most like it and whose weight is below k
    loss        = mean of -w log π over their tokens; no policy gradient

Any task is a world of statements, such as `lean` where it is installed or brackets, whose verifier
checks arithmetic (see `gar`). Here a round is a step, success is the best of the visits, and the
weights begin from where they are; the authors retrain the first policy on the last three rounds.
Likeness is that of mean hidden states. Seconds are those that a task tells (`Grade.info`), which
ours do not: they would not be the same in a run that resumes. Lemmas that a proof must invoke are
not told apart.
"""

from rlvr_jax.experience import experience, imitate_proofs, prove_hard_ones
from rlvr_jax.objectives import (
    by_reward,
    imitate,
    no_advantage,
    no_policy_loss,
    objective,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def stp(
    hard: float = 0.25,
    margin: float = 0.1,
    redo: float = 0.05,
    most: float = 0.5,
    length_cost: float = 0.001,
    time_cost: float = 0.01,
    cap: float = 4.0,
    weight: float = 1.0,
) -> Recipe:
    """Weighted imitation of the policy's own proofs and of conjectures that are hard to prove.

    Args:
      hard: success below which a conjecture is imitated (θ).
      margin: beyond θ, from where on a statement is easy.
      redo: chance that an easy statement is proved again.
      most: success up to which proofs are imitated.
      length_cost, time_cost: of a character and of a second of checking.
      cap: of a conjecture's weight (k).
      weight: of the imitation.
    """
    return Recipe(
        objective=objective(
            advantage=no_advantage(),
            surrogate=no_policy_loss(),
            regularizers=[imitate(weight, factor=by_reward)],
            aggregation=token_mean(),
        ),
        experience=experience(
            prove_hard_ones(hard + margin, redo),
            stages=[imitate_proofs(hard, margin, most, length_cost, time_cost, cap)],
        ),
    )


METHOD = Method(
    stp,
    "STP: Self-play LLM Theorem Provers with Iterative Conjecturing and Proving",
    "https://github.com/kfdong/STP",
    changes="surrogate, curriculum, sampling",
    left_out="lemmas, the drop of short proofs, and rounds that begin with the first weights",
    reports=(
        "DeepSeek-Prover-V1.5-SFT: 26.3 % of LeanWorkbook (expert iteration 13.2 %), miniF2F 65.0 "
        "%, ProofNet 23.9 %, PutnamBench 8 of 644"
    ),
    traps=(
        "success never falls, so one lucky round calls a statement easy; characters and seconds "
        "set weights, which move the learning rate; with few unproved statements n / m passes the "
        "cap at once"
    ),
)
