"""RollArt: groups are trained once they are complete, within a bounded number of steps.

Gao et al. 2025, "RollArt: Scaling Agentic RL Training via Disaggregated Infrastructure",
https://arxiv.org/abs/2512.22560; the queue is ROLL's, https://github.com/alibaba/ROLL

    a step trains the groups that are complete; none waits for longer than a steps
    r    = exp(old_logp - behaviour_logp), behaviour_logp of the weights that sampled the token
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ min(r, C) max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

It has the parts of RollArt for one program on one machine: the queue with its staleness and
redundancy, rows that leave when they end, versions of tokens. Placement on several kinds of
hardware is not included. Truncated importance sampling is one of ROLL's corrections; C is ours.
ROLL's queue opens groups ahead; here each step opens its own.

Left out: disaggregated hardware, environments in threads next to the device
Reports: 1.35 to 2.05 times shorter training than synchronous systems, on more than 3000 GPUs
Traps: the first finished are used first, which favours short answers, redundancy more so;
`staleness=0` is plain synchronous GRPO; ROLL stores one version per trajectory, not per token
"""

from rlvr_jax.experience import experience, queued
from rlvr_jax.objectives import clipped_objective, truncate_importance
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import Bound, ClipHigh, ClipLow, Epsilon, NonNegativeInt, Share


def rollart(
    staleness: NonNegativeInt = 1,
    redundancy: NonNegativeInt = 0,
    window: Share = 0.25,
    cap: Bound = 2.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on groups that are written over several steps, weighed by the weights that wrote them.

    Args:
      staleness: steps that a group may wait (a); 0 is synchronous.
      redundancy: rows that a group begins beyond its size.
      window: fraction of the budget between two checks for rows that have ended.
      cap: largest importance weight of a token (C).
    """
    transforms = [truncate_importance(cap)]
    objective = clipped_objective(clip_low, clip_high, epsilon=epsilon, transforms=transforms)
    return Recipe(objective, experience=experience(draw=queued(staleness, redundancy, window)))


METHOD = Method(
    rollart,
    "RollArt: Scaling Agentic RL Training via Disaggregated Infrastructure",
    "https://arxiv.org/abs/2512.22560",
    changes="sampling, weight",
)
