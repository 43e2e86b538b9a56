"""What the leaderboard compares: for each board a task, a budget and methods."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BOARDS", "Board"]


@dataclass(frozen=True)
class Board:
    """Methods that are given the same prompts and may draw the same number of tokens.

    Fields:
      title: what is compared.
      task: of all runs; its presets apply.
      drawn_tokens: that each run may draw; it ends, evaluated, at the first step that reaches them,
        or at the preset's last step.
      seeds: 0, 1, …
      evaluate_every: steps between evaluations, each of which costs some six steps.
      entries: as in `experiments.compare`; all are compared with the first.
    """

    title: str
    task: str
    drawn_tokens: int
    seeds: int
    entries: tuple[str, ...]
    evaluate_every: int = 40


_OBJECTIVES = """
    grpo clip_cov kl_cov dapo gspo forking_tokens entropy_bonus siren simko passk_advantage nsr
    lp_reg ace apo archer bapo canon capo_curvature cispo copg d3s dcpo dph_rl dpo_q dr_grpo earl
    entropy_dynamics etr f_dpg gdpo gdro gmpo gpg gtpo hapo hybrid_npg implicit_prm lite_ppo ma_rlhf
    mdpo ngrpo noisy_reward_correction oblr_po opo pacs papo ppl_position_shaping ppo prerl progrpo
    rapid reinforce reinforce_plus_plus riskpo rl_zvp rloo rollout_correction rover rpg safe sapo
    seed_grpo steer ucas verl_effective_rank vpo
"""

BOARDS = {
    "objectives": Board(
        "Objectives: what is done with rewards and tokens that are drawn as by GRPO",
        task="brackets",
        drawn_tokens=1_500_000,
        seeds=5,
        entries=tuple(_OBJECTIVES.split()),
    ),
}
