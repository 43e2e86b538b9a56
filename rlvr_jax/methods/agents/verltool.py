"""VerlTool: GRPO on responses that call tools, without the tools' replies in the loss.

"VerlTool: Towards Holistic Agentic Reinforcement Learning with Tool Use",
https://github.com/TIGER-AI-Lab/verl-tool

    a response continues after a tool's reply, at most max_turns times; replies have mask 0
    A    = (R - mean) / (std + 1e-6) in the group, std with n - 1
    loss = mean over unmasked tokens of max(-A ρ, -A clip(ρ, 1 - 0.2, 1 + 0.28)), dual clip 3

Two options remove rows from the loss: `mask_overlong` (truncated rows) and `mask_void_rows` (rows
with neither a call nor an answer). Their rewards stay in the mean and std of their groups.

Reports: In six domains (maths, search, SQL, vision, web, SWE), results equal those of systems made
for each. Rollouts are nearly twice as fast.
Traps: A reply that is tokenized by itself may differ from the tokenized whole text. Without calls,
the method is GRPO. The last turn gets no reply.
"""

from typing import Any

import numpy as np

from rlvr_jax.experience import Stage, experience, mask_truncated
from rlvr_jax.methods._tools import Tools
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, part
from rlvr_jax.types.hyperparameters import DualClip


@part(of_task=frozenset({"answers"}))
def mask_void() -> Stage:
    """Takes responses with neither a call nor an answer out of the loss.

    Their rewards stay in their groups.

    Reads: turn, and the answers of the grades (`Task.answers`). Writes: mask. Metrics:
      void_fraction (fraction of such rows).
    Raises:
      ValueError: when a run begins, a task without answers.
    """

    def init(setting):
        if not setting.task.answers:
            raise ValueError(
                f"mask_void: task must have answers (Task.answers), got"
                f" {setting.task.name!r} without them"
            )
        return ()

    def apply(batch, actor, state, turn):
        turns = batch.rollouts.records.get("turn")
        called = np.zeros(len(batch), bool) if turns is None else (turns % 2 == 1).any(axis=1)
        answered = np.array([grade.answer is not None for grade in batch.grades], bool)
        void = ~(called | answered)
        return batch.without(void), state, {"void_fraction": float(void.mean())}

    return Stage(apply, init)


@arguments_of(Tools, into="tools", tools=("python",))
@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon", clip_high=0.28)
def verltool(
    mask_overlong: bool = False,
    mask_void_rows: bool = False,
    dual: DualClip = 3.0,
    *,
    tools: Tools,
    **clip: Any,
) -> Recipe:
    """Applies a clipped ratio with the token mean to the policy's text between tool replies.

    Args:
      reply_tokens: maximum number of tokens of a reply (`max_obs_length`).
      mask_overlong: whether truncated rows are removed from the loss.
      mask_void_rows: whether rows without a call or an answer are (`mask_void_traj`).
    """
    stages = [mask_truncated()] if mask_overlong else []
    stages += [mask_void()] if mask_void_rows else []
    return Recipe(
        objective=clipped_objective(dual_clip=dual, **clip),
        experience=experience(draw=tools.draw(), stages=stages),
    )


METHOD = Method(
    verltool,
    changes="sampling, mask",
    shown=Shown("calculations", "experience/calls"),
)
