"""BFS-Prover-V2: search proofs best first, and imitate the tactics that lie on them.

"Scaling up Multi-Turn Off-Policy RL and Multi-Agent Tree Search for LLM Step-Provers",
https://github.com/zeyu-zheng/BFS-Prover-V2

    next state: smallest -S / d^α, S the sum over its path of the tactics' mean log-probs
    proved goes up along any edge, failed where all tactics of a state have
    trained: steps of the shortest proofs with Q_0.1 ≤ -mean log π ≤ Q_0.9,  loss = mean of -log π

Search and its constants are the release's; training is a reconstruction, for its code is not
released: the quantiles are ours, a round is a step, and a statement gives at most as many rows as a
group has. The task's environment is the checker: its replies are the states (`prove_statements`).
"""

from collections.abc import Sequence

from rlvr_jax.experience import experience, prove_statements
from rlvr_jax.objectives import imitate, no_advantage, no_policy_loss, objective, token_mean
from rlvr_jax.types import Method, Recipe


def bfs_prover_v2(
    tactics: int = 4,
    alpha: float = 2.0,
    expansions: int = 64,
    low: float = 0.1,
    high: float = 0.9,
    separator: str = ":::",
    banned: Sequence[str] = ("sorry", "admit", "native_decide"),
    temperature: float = 1.3,
    weight: float = 1.0,
) -> Recipe:
    """Imitation of single tactics of proofs that the policy's search has found.

    Args:
      tactics: that are drawn in a state (n).
      alpha: how much the search prefers depth (α).
      expansions: states of a statement that are expanded at most; the authors have 600 seconds.
      low, high: quantiles between which a step is trained.
      separator: what a state ends with where the policy reads it.
      banned: words that no tactic may have.
      temperature: of the sampler.
      weight: of the imitation.
    """
    search = prove_statements(
        None, tactics, alpha, expansions, low, high, separator, banned, temperature
    )
    return Recipe(
        objective=objective(
            advantage=no_advantage(),
            surrogate=no_policy_loss(),
            regularizers=[imitate(weight)],
            aggregation=token_mean(),
        ),
        experience=experience(draw=search),
    )


METHOD = Method(
    bfs_prover_v2,
    "Scaling up Multi-Turn Off-Policy RL and Multi-Agent Tree Search for LLM Step-Provers",
    "https://github.com/zeyu-zheng/BFS-Prover-V2",
    changes="sampling, selection, surrogate",
    evidence="reconstruction",
    left_out="a planner's subgoals (`SubgoalCache` keeps them), proofs that are found anew by the"
    " best policy, and the base trained on them from scratch",
    reports=(
        "miniF2F test: 82.4 % at 7B, 86.1 % at 32B, 95.08 % with a planner; ProofNet test 41.4 %; "
        "no ablation of filter or planner"
    ),
    traps=(
        "a state counts as failed when its few drawn tactics did; α of 1 and more dives along sure "
        "tactics that only reshuffle a state; a long sure tactic beats two short ones"
    ),
)
