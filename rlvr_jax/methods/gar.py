"""GAR: who writes statements earns by what the prover hardly proves, and the prover by proving it.

"GAR: Generative Adversarial Reinforcement Learning for Formal Theorem Proving", whose text was
read.

    1. a statement from each pair of statements;  2. n proofs of it; p are right, m altered it
    3. r of a statement = (1 - p) (1 - m) 1[p ≠ 0], normalised over all statements of the step
    4. r of a proof = right · (1 - ½ altered), normalised among the proofs of its statement, of
       statements with 0 < p ≤ ½ alone
    loss = mean_t [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + β k3(π ‖ π_ref)]

Any task is a world of statements: `lean` where it is installed, or brackets, where a statement is
three numbers and a target, a proof an expression, and the verifier a checker of arithmetic; a task
says how a text states something (`Task.read_problem`) and, in `Grade.info["altered"]`, whether a
proof is of another statement. The paper has two models and a third that translates statements into
Lean; here one policy writes and proves. The deviation with n - 1 and its ε are ours.
"""

from rlvr_jax.experience import experience, fuse_statements
from rlvr_jax.objectives import (
    group_normalized,
    kl_penalty,
    objective,
    ppo_clip,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def gar(
    penalty: float = 0.5,
    most: float = 0.5,
    kl_coefficient: float = 0.01,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO of proofs and of the statements that are written for them.

    Args:
      penalty: share of a proof's reward that altering the statement costs.
      most: pass rate up to which a statement trains the prover.
      kl_coefficient: weight of the KL (β).
      clip_low, clip_high: half-widths of the trust region (ε).
      epsilon: added to the standard deviation of rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=[kl_penalty(kl_coefficient)] if kl_coefficient else [],
            aggregation=token_mean(),
        ),
        experience=experience(stages=[fuse_statements(penalty, most)]),
    )


METHOD = Method(
    gar,
    "GAR: Generative Adversarial Reinforcement Learning for Formal Theorem Proving",
    "",
    changes="sampling, selection, reward",
    evidence="reconstruction",
    left_out="a second model that writes, and one that translates into Lean",
    reports=(
        "miniF2F test, pass@32: Goedel-Prover-V2-8B 77.87 to 80.33, DeepSeek-Prover-V2-7B 70.49 to "
        "74.18; ProofNet 22.58 to 25.81"
    ),
    traps=(
        "provers weaken the statement: 74 % of proofs did without the penalty, 34 % with it; the "
        "task must say `altered`; a statement nobody proves earns nothing, the hardest provable "
        "one most"
    ),
)
