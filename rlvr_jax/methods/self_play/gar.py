"""GAR: rewards the writer of statements for hard provable ones, and the prover for proofs.

"GAR: Generative Adversarial Reinforcement Learning for Formal Theorem Proving" (only the text was
read)

    1. a statement from each pair of statements;  2. n proofs of it; a fraction p is correct, a
       fraction m altered it
    3. r of a statement = (1 - p) (1 - m) 1[p ≠ 0], normalized over all statements of the step
    4. r of a proof = correct · (1 - ½ altered), normalized among the proofs of its statement, only
       for statements with 0 < p ≤ ½
    loss = mean_t [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + β k3(π ‖ π_ref)]

Any task can provide the statements: `lean` where it is installed, or brackets. In brackets a
statement is three numbers and a target, a proof is an expression, and the verifier checks
arithmetic. The task defines how a text is read as a statement (`Task.read_problem`). It reports in
`Grade.info["altered"]` whether a proof is of another statement. `lean` and plain brackets grade
such proofs as incorrect. With `hinted_brackets:any_statement=true` they are correct and altered. A
reconstruction: the standard deviation with n - 1 and its ε are ours. One policy writes and proves.

Left out: a second model that writes, and one that translates statements into Lean.
Reports: pass@32 in %. miniF2F test: Goedel-Prover-V2-8B 77.87 to 80.33, DeepSeek-Prover-V2-7B 70.49
to 74.18. ProofNet: 22.58 to 25.81.
Traps: Provers weaken the statement: 74 % of proofs did without the penalty, 34 % with it. A task
that does not report `altered` has no penalty. A statement that is never proved earns nothing, the
hardest provable one most.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience import Stage, View, concatenate, experience
from rlvr_jax.experience.rewards.outcomes import Rate
from rlvr_jax.experience.stages.problems.written import (
    SOLVE,
    WRITE,
    WRITTEN,
    accepted_groups,
    earned,
    pass_rates,
    read_problems,
    requests_of_problems,
    with_request,
)
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe, Shown, part
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, KLCoefficient, Unit
from rlvr_jax.types.passing import arguments_of

ALTERED = "altered"
"""Key of `Grade.info`: 1 if a proof is of another statement than the given one."""

REQUEST = (
    "Write one harder problem that takes something from both of these, between ```text and ```."
)


@part
def with_itself() -> View:
    """A view as long as that of the longest pair: the longest prompt with itself."""
    return View(lambda prompt, task: with_request(REQUEST, prompt.text).show(prompt, task))


@part(
    writes=frozenset({"cell"}),
    by_row=True,
    most=2.0,
    size=lambda samples: 1,
    views=(with_itself(), WRITTEN),
)
def fuse_statements(penalty: Unit, most: Unit) -> Stage:
    """The policy writes a statement from two prompts and proves it.

    The partner of a prompt is the next one of the step. The statement that is read from a text has
    its first prompt's answer. It gets as many proofs as a group has rows. Its writer earns (1 - p)
    (1 - m), with p the fraction of correct proofs and m of those that altered it. The reward is 0
    if no proof is correct or no statement could be read. All texts of a step are one group. A proof
    earns its outcome, reduced by a penalty if it altered the statement; proofs of statements with p
    in (0, most] train. Cells: 0 prove, 1 write. The prompts themselves are answered once each;
    these responses are not trained.

    Args:
      penalty: fraction of a proof's reward that is lost if it altered the statement.
      most: pass rate up to which the proofs of a statement train.
    Reads: Grade.info["altered"] if present. Writes: reward, cell.
    Metrics: fused (statements read), fused_rate (their pass rate), fuser_reward (mean reward of
      writers), altered_fraction (of the proofs), prover_groups (trained groups of proofs).
    """

    def apply(batch, actor, state, turn):
        task, samples = turn.setting.task, turn.setting.samples
        plain = batch.requests_of(np.ones(len(batch.groups), bool))
        partners = [*plain[1:], plain[0]]
        requests = [
            replace(request, view=with_request(REQUEST, other.prompt.text), samples=1)
            for request, other in zip(plain, partners, strict=True)
        ]
        written = actor.draw(requests, turn.key)
        found = read_problems(written, actor.encode, turn)
        there = [place for place, problem in enumerate(found) if problem is not None]
        reward = np.zeros(len(written))
        metrics = {"fused": float(len(there))}
        parts = []
        if there:
            problems = [found[place] for place in there]
            asked = requests_of_problems(problems, [SOLVE] * len(there), samples, task)
            proofs = actor.grade(actor.draw(asked, jax.random.fold_in(turn.key, 1)))
            altered = np.array([grade.info.get(ALTERED, 0.0) for grade in proofs.grades])
            altered = np.nan_to_num(altered)
            rates = pass_rates(proofs.outcomes())
            fraction = proofs.by_group(altered, 0.0).mean(axis=1)
            reward[there] = np.asarray(adversarial(rates, fraction))
            own = prover_rewards(proofs.rollouts.outcome, altered, penalty)
            proofs = proofs.rewarded(own)
            good = trains_prover(rates, most)
            parts.append(accepted_groups(proofs, good))
            metrics |= {
                "fused_rate": float(rates.mean()),
                "altered_fraction": float(altered.mean()),
                "prover_groups": float(good.sum()),
            }
        metrics["fuser_reward"] = float(reward.mean())
        written = earned(written, reward, WRITE)
        # One sample of each: they are compared across prompts.
        written = written.with_rollouts(group=np.zeros(len(written), np.int32)).renumbered()
        parts = [written, *(part for part in parts if part is not None)]
        return concatenate(parts).renumbered(), state, metrics

    return apply


def adversarial(rate: Rate, altered: Rate) -> Rate:
    """(1 - p) (1 - m), 0 where no proof is correct; m is the fraction of altered statements."""
    return jnp.where(rate > 0, (1 - rate) * (1 - altered), 0)


def prover_rewards(outcome: np.ndarray, altered: np.ndarray, penalty: float) -> np.ndarray:
    """outcome · (1 - penalty · altered), of each proof."""
    return outcome * (1 - penalty * altered)


def trains_prover(rates: np.ndarray, most: float) -> np.ndarray:
    """Statements whose proofs train: pass rate in (0, most]; bool [G]."""
    return (rates > 0) & (rates <= most)


@arguments_of(fuse_statements, penalty=0.5, most=0.5)
def gar(
    kl_coefficient: KLCoefficient = 0.01,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
    **rewards: Any,
) -> Recipe:
    """Applies GRPO to proofs and to the statements that are written for them."""
    return Recipe(
        objective=clipped_objective(
            clip_low, clip_high, epsilon=epsilon, kl_coefficient=kl_coefficient
        ),
        experience=experience(stages=[fuse_statements(**rewards)]),
    )


METHOD = Method(
    gar,
    changes="sampling, selection, reward",
    evidence="reconstruction",
    shown=Shown("hinted_brackets:train=512,any_statement=true", "experience/altered_fraction"),
)
