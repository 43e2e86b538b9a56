"""SIRL: optimisation models graded by a solver, with a KL on the code only.

"Solver-Informed RL: Grounding Large Language Models for Authentic Optimization Modeling",
https://github.com/Cardinal-Operations/SIRL

    R     = answer + ½ format + executes (stage 1), or answer + executes + answer · h (stage 2)
    c_t   = 1 from the beginning of the code to the end of the response, before it 0
    r_t   = -β c_t (old_logp_t - reference_logp_t), plus R on the last token
    A_t   = (Σ_{s ≥ t} r_s - mean) / sqrt(var + 1e-8), over all tokens, var with n - 1
    loss  = Σ max(-A ρ, -A clip(ρ, 1 - 0.2, 1 + 0.3)) / Σ n_i

The reasoning is free of the KL, so that it explores; the code stays near the reference. Rewards R
are the second and third reward of the task `optimisation` (`stage_1`, `stage_2`), whose solver is
HiGHS. `code` begins the code: a fence with a linear program, in the paper a tag before Python. The
last one in the response counts. A response without it is all code. β is that of the authors'
script. The script samples 16 responses to a prompt and trains two epochs.

Left out: Python as the code; a schedule from stage 1 to stage 2 (set `stage` in a second run). The
released code changes the response mask in place: the tokens before the code then leave returns,
whitening and loss. Here only the KL is restricted, as in the text.
Reports: state of the art on public benchmarks of optimisation models (no numbers).
Traps: Variables of an optimum may have ties, so h can be below 1 for a correct model.
"""

from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from rlvr_jax.experience import Stage, column, experience, shape
from rlvr_jax.experience.stages.rewards.score_steps import tokens_up_to
from rlvr_jax.objectives import Transform, clipped_objective, masked_mean, part, whitened
from rlvr_jax.objectives.advantages.returns import discounted_returns, token_rewards
from rlvr_jax.objectives.statistics.divergences import Divergence, k1
from rlvr_jax.types import Mask, Method, Recipe, Rollouts, Shown, arguments_of, declare, replace
from rlvr_jax.types.hyperparameters import NonNegative

declare("code_start", Int[Array, "B"], "first token of the code; 0 without code")


@part(by_row=True, writes={"code_start"})
def mark_code(opening: str) -> Stage:
    """Records at which token of a response its code begins.

    Args:
      opening: text that begins the code; the last one in a response counts.
    Metrics: code_fraction (fraction of the responses with code).
    Raises:
      ValueError: the opening is empty.
    """
    if not opening:
        raise ValueError("mark_code: opening must be a text that begins the code, got ''")

    def apply(batch, actor, state, turn):
        rollouts = batch.rollouts
        places = [response.text.rfind(opening) for response in batch.responses]
        start = np.zeros(len(batch), np.int32)
        for row, place in enumerate(places):
            if place > 0:
                ids = rollouts.tokens[row, : rollouts.length[row]].tolist()
                # The token that completes the first character of the opening is the first one.
                (count,) = tokens_up_to(batch.tokenizer, ids, [place + 1])
                start[row] = count - 1
        metrics = {"code_fraction": float(np.mean([place >= 0 for place in places]))}
        return batch.with_rollouts(code_start=start), state, metrics

    return apply


def code_tokens(rollouts: Rollouts, mask: Mask) -> Mask:
    """Tokens from the beginning of the code on, c; bool [B, T]."""
    column = jnp.arange(mask.shape[1], dtype=jnp.int32)[None]
    return mask & (column >= rollouts.records["code_start"][:, None])


@part(writes={"advantage"}, once=True)
def partial_kl_return(kl_coefficient: NonNegative, divergence: Divergence = k1) -> Transform:
    """A_t = Σ_{s ≥ t} r_s of the reward at the last token and of -β times a divergence in the code.

    Args:
      kl_coefficient: weight of the divergence (β).
      divergence: of the policy that sampled from the reference, per token.
    Metrics: free_fraction (fraction of the tokens, before the code, that the KL leaves free),
      code_kl (mean divergence of the tokens of the code, nats).
    """

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        code = code_tokens(rollouts, mask)
        own = divergence(context.old_logp, rollouts.reference_logp, context.old_logp)
        rewards = token_rewards(rollouts.reward, mask, jnp.where(code, own, 0), kl_coefficient)
        metrics = {
            "free_fraction": masked_mean((~code).astype(own.dtype), mask),
            "code_kl": masked_mean(own, code),
        }
        return replace(signals, advantage=discounted_returns(rewards, mask)), state, metrics

    return Transform(apply, reads={"logp", "reference_logp", "code_start"})


@arguments_of(clipped_objective, "clip_low", clip_high=0.3)
def sirl_solver(
    stage: Literal[1, 2] = 1,
    code: str = "```lp",
    kl_coefficient: NonNegative = 0.0005,
    **clip: Any,
) -> Recipe:
    """Applies REINFORCE++ to a solver's rewards, with a KL on the code only.

    Args:
      stage: number of the reward, after the outcome: 1 for the form of the model, 2 for the values
        of its variables.
      code: text that begins the code.
      kl_coefficient: weight of the KL on the code (β).
    """
    estimator = whitened(partial_kl_return(kl_coefficient), ddof=1, epsilon=1e-8, floor=0.0)
    return Recipe(
        clipped_objective(advantage=estimator, **clip),
        experience(stages=[shape(column(stage)), mark_code(code)]),
    )


METHOD = Method(
    sirl_solver,
    changes="reward, advantage, regularizer",
    baseline="other",
    # The second attempt of a response to brackets is its code, the second reward is "legal".
    shown=Shown(
        "brackets", "free_fraction", without={"code": "```lp"}, hyperparameters={"code": ";"}
    ),
)
