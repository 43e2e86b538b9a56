"""RollArt: groups are trained once they are complete, within a bounded number of steps.

Gao et al. 2025, "RollArt: Scaling Agentic RL Training via Disaggregated Infrastructure",
https://arxiv.org/abs/2512.22560, with the queue of ROLL, https://github.com/alibaba/ROLL

    a step trains the groups that are complete; none waits for longer than a steps
    r    = exp(old_logp - behaviour_logp), behaviour_logp of the weights that sampled the token
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ min(r, C) max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

One program has the queue, whose rows leave when they end, and the versions of tokens. a is
`staleness`. The weight is one of ROLL's corrections; its `cap` C is ours. ROLL's queue opens groups
ahead; here each step opens groups. With `tools`, or the task's environment, responses are written
in turns (`queued_turns`). Replies are then requested in threads while other rows are sampled, and
there are no redundant rows and no windows. `--dynamic-sampling` is ROLL's filter of groups.

Left out: disaggregated hardware; environments in threads next to the device.
Reports: training is 1.35 to 2.05 times shorter than with synchronous systems (over 3000 GPUs).
Traps: Groups that finish first are used first, which favours short responses, and more so with
redundancy. `staleness=0` is synchronous GRPO. ROLL stores one version per trajectory.
"""

from typing import Any

from rlvr_jax.experience import experience, queued, queued_turns
from rlvr_jax.methods._tools import Tools
from rlvr_jax.objectives import clipped_objective, truncate_importance
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import Bound, ClipHigh, ClipLow, Epsilon


@arguments_of(Tools, into="tools")
@arguments_of(queued)
def rollart(
    cap: Bound = 2.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
    *,
    tools: Tools,
    **queue: Any,
) -> Recipe:
    """Applies GRPO to groups that are sampled over several steps, with importance weights.

    Args:
      cap: largest importance weight of a token.
    """
    transforms = [truncate_importance(cap)]
    objective = clipped_objective(clip_low, clip_high, epsilon=epsilon, transforms=transforms)
    draw = queued(**queue)
    if tools:
        draw = tools.draw(queued_turns, staleness=queue["staleness"])
    return Recipe(objective, experience=experience(draw=draw))


METHOD = Method(
    rollart,
    changes="sampling, weight",
    shown=Shown("noted_calculations", "experience/stale_tokens", without={"staleness": 0}),
)
