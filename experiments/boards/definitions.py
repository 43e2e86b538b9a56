"""What the leaderboard compares: for each board a task, a budget and methods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Board:
    """Methods that are given the same prompts and may draw the same number of tokens.

    Fields:
      title: subject of the comparison.
      task: of all runs; its presets apply.
      model: initial policy: "smollm2", found by `shipped_weights`; "": the task's base model.
      entries: settings by name, as `entry_config` reads them; all are compared with the first.
      seeds: how many.
      first_seed: the lowest.
      sampled_tokens: budget of each run; it ends, evaluated, at the first step that reaches it, or
        at its last step; 0: equal steps.
      steps: of each run at most; 0: the preset's.
      evaluate_every: steps between evaluations, each of which costs some six steps.
      main: the number by which entries are ranked and compared with the first.
      notes: remarks for readers of an entry's line, by entry.
      chooses: whether its entries are values of settings, of which the page names the best of each
        method.
      every_run: whether its page has a row for every run, with when entropy and pass@1 fell.
    """

    title: str
    task: str
    entries: Mapping[str, str]
    model: Literal["", "smollm2"] = ""
    seeds: int = 3
    first_seed: int = 0
    sampled_tokens: int = 1_500_000
    steps: int = 0
    evaluate_every: int = 40
    main: str = "pass@32"
    notes: Mapping[str, str] = field(default_factory=dict)
    chooses: bool = False
    every_run: bool = False


def _named(names: str, **others: str) -> dict[str, str]:
    """Methods by their names with the settings of their presets, and others."""
    return {**{name: name for name in names.split()}, **others}


def _values(settings: Mapping[str, Sequence[float | str]]) -> dict[str, str]:
    """A method with each of the values of one of its settings, by `method:setting`."""
    return {
        f"{setting.replace(':', '_')}={value}": f"{setting}={value}"
        for setting, values in settings.items()
        for value in values
    }


def _at_the_edge(which: str, names: str) -> dict[str, str]:
    """Notes on methods whose best value has none beyond it."""
    return dict.fromkeys(names.split(), f"its value is the {which} of the three that were tried")


_TWELVE = """
    grpo dapo gspo clip_cov kl_cov forking_tokens entropy_bonus siren simko passk_advantage nsr
    lp_reg
"""


def _of_smollm2(
    title: str, task: str, entries: Mapping[str, str], steps: int = 60, sampled_tokens: int = 0
) -> Board:
    """A board of SmolLM2, whose held-out questions have 16 samples each. A step takes a core some
    20 s; GRPO's entropy on hard sums is at .05 to .10 nats by step 40
    (docs/results/arithmetic_hard)."""
    return Board(
        title,
        task,
        entries,
        model="smollm2",
        seeds=2,
        sampled_tokens=sampled_tokens,
        steps=steps,
        evaluate_every=20,
        main="pass@8",
        every_run=True,
    )


_HINTED = "hinted_brackets:train=512"

BOARDS: Mapping[str, Board] = {
    "objectives": Board(
        "Objectives: what is done with rewards and tokens that are drawn as by GRPO",
        "brackets",
        _named(
            _TWELVE
            + """
            ace apo archer bapo canon capo_curvature cispo copg d3s dcpo dph_rl dpo_q
            dr_grpo earl entropy_dynamics etr f_dpg gdpo gdro gmpo gpg gtpo hapo hybrid_npg
            implicit_prm lite_ppo ma_rlhf mdpo ngrpo noisy_reward_correction oblr_po opo pacs papo
            ppl_position_shaping ppo prerl progrpo rapid reinforce reinforce_plus_plus riskpo rl_zvp
            rloo rollout_correction rover rpg safe sapo seed_grpo steer ucas verl_effective_rank vpo
            """
        ),
        seeds=5,
        notes={
            "prerl": "the first stage of a method, which its authors end after 10 to 25 updates;"
            " here it takes the whole budget, and a wrong answer is all that it learns from",
            "implicit_prm": "fits a model of rewards: its loss tells right answers from wrong ones"
            " by the policy's own log-ratios, and nothing makes the policy write right ones",
        },
    ),
    "tuning": Board(
        "Tuning: three values of one setting each, on prompts that no other board reports",
        "brackets:held_out=dev",
        # The first value is that of the preset.
        _values(
            {
                "grpo:learning_rate": (3e-4, 1.5e-4, 6e-4),
                "dapo:clip_high": (0.28, 0.4, 0.6),
                "gspo:clip_high": (0.0065, 0.013, 0.026),
                "clip_cov:fraction": (0.0075, 0.00375, 0.015),
                "kl_cov:fraction": (0.02, 0.01, 0.04),
                "forking_tokens:fraction": (0.2, 0.1, 0.4),
                "entropy_bonus:entropy_coefficient": (0.05, 0.025, 0.1),
                "siren:coefficient": (0.005, 0.05, 0.5),
                "simko:fraction": (0.01, 0.05, 0.2),
                "passk_advantage:advantage": tuple(f"subset_normalized({k})" for k in (4, 2, 6)),
                "nsr:correct": (0.1, 0.0, 0.3),
                "lp_reg:fraction": (0.01, 0.05, 0.2),
            }
        ),
        seeds=2,
        # Other boards begin with 0 and have ten at most.
        first_seed=100,
        chooses=True,
    ),
    "tuned": Board(
        "Tuned: each method with the best of the three values that were tried, on other prompts",
        "brackets",
        # What the lines of "tuning" choose, by a test.
        dict(
            grpo="grpo:learning_rate=0.00015",
            dapo="dapo:clip_high=0.28",
            gspo="gspo:clip_high=0.013",
            clip_cov="clip_cov:fraction=0.015",
            kl_cov="kl_cov:fraction=0.04",
            forking_tokens="forking_tokens:fraction=0.1",
            entropy_bonus="entropy_bonus:entropy_coefficient=0.1",
            siren="siren:coefficient=0.05",
            simko="simko:fraction=0.2",
            passk_advantage="passk_advantage:advantage=subset_normalized(6)",
            nsr="nsr:correct=0.1",
            lp_reg="lp_reg:fraction=0.2",
        ),
        seeds=5,
        notes={
            **_at_the_edge("lowest", "grpo dapo forking_tokens"),
            **_at_the_edge("highest", "clip_cov kl_cov entropy_bonus simko passk_advantage lp_reg"),
        },
    ),
    "guidance": Board(
        "Guidance: hints, solutions and teachers beside what the policy draws",
        _HINTED,
        _named(
            "grpo luffy_mixed rl_plus hpt ghpo guide prefix_rl sdpo expert_iteration",
            # The policy/ of a longer run: experiments.train --task hinted_brackets:train=512
            # --method luffy_mixed --steps 600 --seed 100. Until it is there the board is refused.
            opd="opd:teacher=docs/results/guidance/teacher",
        ),
    ),
    "curricula": Board(
        "Curricula: which prompts are asked, and which answers are learned from",
        _HINTED,
        _named("grpo dynamic_sampling mmr1_vas rlve reverse_curriculum drive recap grpo_roc svs"),
    ),
    "rollouts": Board(
        "Rollouts: branches, searches and pruning",
        _HINTED,
        _named(
            # Rounds of ARPO that are shorter than the budget, or nothing branches.
            "grpo cure arpo:round_tokens=4 rose arrol",
            # Of a budget of 24 tokens: six levels, and its last quarter, as in the paper. A node of
            # 256 would be the whole answer, and a tree of one answer teaches nothing.
            deepsearch="deepsearch:node_tokens=4,overlong=6",
        ),
    ),
    "rewards": Board(
        "Rewards: with a verifier, without one, and beside the point",
        # Its base reads an answer that it is shown, so that it can judge its own.
        _HINTED,
        _named(
            "grpo empo length_rewards",
            majority_vote="intrinsic_rewards:signal=majority_vote",
            self_certainty="intrinsic_rewards",
            entropy_minimisation="intrinsic_rewards:signal=certainty_of_entropy",
            rlpr="rlpr:splice=rlvr_jax.methods.rewards.rlpr:at_last_word,form_fraction=0",
            random="spurious_rewards",
            random_unclipped="spurious_rewards:clipped=false",
            format="spurious_rewards:control=column(1)",
            format_unclipped="spurious_rewards:control=column(1),clipped=false",
            rubric_judged_by_itself="rubric_rewards:weights=1,judge=policy,judge_prompt=again",
            rubric_of_a_perfect_judge="rubric_rewards:weights=2,1,"
            "judge=rlvr_jax.tasks.brackets_judge:points,"
            "judge_rubric=docs/results/rewards/rubric.json",
        ),
        sampled_tokens=0,
        steps=1000,
        evaluate_every=100,
        every_run=True,
    ),
    "sums": _of_smollm2(
        "A language model: SmolLM2-135M on sums that it finds hard",
        "arithmetic:hard",
        _named(_TWELVE),
        # The tokens of GRPO in 60 steps. DAPO samples up to three batches for one.
        steps=100,
        sampled_tokens=48_000,
    ),
    "sums_rewards": _of_smollm2(
        "A language model and rewards without a verifier: SmolLM2-135M on easy sums and products",
        "arithmetic",
        _named(
            "grpo empo",
            majority_vote="intrinsic_rewards:signal=majority_vote",
            self_certainty="intrinsic_rewards",
            random="spurious_rewards",
        ),
        steps=100,
    ),
    "sums_guidance": _of_smollm2(
        "A language model and its teachers: SmolLM2-135M on sums that it finds hard",
        "arithmetic:hard",
        _named(
            "grpo sdpo",
            # The policy/ of a run of GRPO: experiments.smollm2 --questions hard --seed 100.
            opd="opd:teacher=runs/smollm2_hard/policy",
            # Under the name that its lines have.
            **{"sdpo:teacher=start": "sdpo:teacher=start"},
        ),
    ),
}
