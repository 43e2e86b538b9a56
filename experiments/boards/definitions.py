"""Boards of the leaderboard: a question, a task, a budget and the methods to compare."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Board:
    """Methods with the same prompts and the same budget.

    Fields:
      title: subject of the comparison.
      question: question that the board answers.
      task: task of all runs; its presets apply.
      entries: settings by name, as `entry_config` reads them; the first entry is the baseline.
      model: initial policy: "smollm2", found by `shipped_weights`; "": the task's base model.
      seeds: number of seeds.
      first_seed: lowest seed.
      sampled_tokens: budget of each run; the run ends, evaluated, at the first step that reaches
        the budget, or at its last step; 0: equal steps.
      steps: highest number of steps of a run; 0: the preset's.
      evaluate_every: steps between evaluations; an evaluation takes as long as about six steps.
      main: metric for ranks and differences.
      notes: remarks on rows of the page's table, by entry.
      chooses: whether entries are values of settings; the page then names each method's best one.
      every_run: whether the page has a row for every run.
    """

    title: str
    question: str
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
    """Methods by name with the settings of their presets, and further entries."""
    return {**{name: name for name in names.split()}, **others}


def _values(settings: Mapping[str, Sequence[float | str]]) -> dict[str, str]:
    """Entries of a method with each value of one of its settings, by `method:setting`."""
    return {
        f"{setting.replace(':', '_')}={value}": f"{setting}={value}"
        for setting, values in settings.items()
        for value in values
    }


def _at_the_edge(which: str, names: str) -> dict[str, str]:
    """Notes on methods whose best value is the lowest or highest that was tried."""
    return dict.fromkeys(names.split(), f"its value is the {which} of the three values")


_TWELVE = """
    grpo dapo gspo clip_cov kl_cov forking_tokens entropy_bonus siren simko passk_advantage nsr
    lp_reg
"""


def _of_smollm2(
    title: str,
    question: str,
    task: str,
    entries: Mapping[str, str],
    steps: int = 60,
    sampled_tokens: int = 0,
) -> Board:
    """A board of SmolLM2 with 16 samples per held-out question. A step takes about 20 s on a core;
    GRPO's entropy on hard sums is 0.05 to 0.10 nats by step 40 (docs/results/arithmetic_hard)."""
    return Board(
        title,
        question,
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
        "Objectives: loss functions with GRPO's sampling",
        "Which loss raises pass@1 and preserves pass@32 if all methods sample like GRPO?",
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
            "capo_curvature": "these runs had the published limits, which fit a learning rate of"
            " 1.5e-5. At 3e-4 they leave out half of the uncertain tokens"
            " ([claims](../claims/README.md)). The preset has larger limits since then",
            "prerl": "this is the first stage of a method; its authors end it after 10 to 25"
            " updates. Here it takes the whole budget and learns from incorrect responses only",
            "implicit_prm": "the loss fits a reward model, whose data are here the policy's own"
            " samples. Fitted to samples of the base model, it ranks responses"
            " ([claims](../claims/README.md))",
        },
    ),
    "tuning": Board(
        "Tuning: three values of one setting per method, on development prompts",
        "Which of three values of its main setting is best for each of twelve methods? The"
        " held-out prompts and seeds are not those of other boards.",
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
        "Tuned: each method with the best of its three values",
        "Which methods are above GRPO if each has the best value of the board `tuning`?",
        "brackets",
        # A test compares these with the lines of "tuning".
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
        "Guidance: hints, solutions and teachers",
        "Do hints, solutions or a teacher help on prompts that the policy rarely solves?",
        _HINTED,
        _named(
            "grpo luffy_mixed rl_plus hpt ghpo guide prefix_rl sdpo expert_iteration",
            # The policy/ of a longer run: rlvr_jax train --task hinted_brackets:train=512
            # --method luffy_mixed --steps 600 --seed 100. Without it the board is refused.
            opd="opd:teacher=docs/results/guidance/teacher",
        ),
    ),
    "curricula": Board(
        "Curricula: selection of prompts, and of responses to train on",
        "Does it help to select the prompts to sample, or the responses to train on?",
        _HINTED,
        _named("grpo dynamic_sampling mmr1_vas rlve reverse_curriculum drive recap grpo_roc svs"),
        notes={
            "mmr1_vas": "its sampling weights did not follow training. With `refresh=351` they are"
            " computed at the first step only; a run has 161 to 164 steps",
            "grpo_roc": "its choice of the cleanest correct responses did not act: a correct"
            " response of this task misses no other reward, so all penalties tie. The larger groups"
            " and the filter of groups without mixed outcomes acted",
        },
    ),
    "rollouts": Board(
        "Rollouts: branches, tree search and pruning",
        "Do branches, tree search or pruning beat independent responses at equal tokens?",
        _HINTED,
        _named(
            # Without rounds of ARPO that are shorter than the budget no response branches.
            "grpo cure arpo:round_tokens=4 rose arrol",
            # Six levels of a budget of 24 tokens, and its last quarter, as in the paper. A node of
            # 256 tokens would be the whole response, and a tree of one response has no contrast.
            deepsearch="deepsearch:node_tokens=4,overlong=6,tries=0",
        ),
    ),
    "rewards": Board(
        "Rewards: verifier, rewards without a verifier, and controls",
        "How far do rewards without a verifier carry, and what do random rewards do?",
        # Its base model reads an answer in the prompt, so that it can judge its own answers.
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
        "SmolLM2-135M on hard sums: objectives",
        "Do twelve objectives differ on sums that a small language model rarely solves?",
        "arithmetic:hard",
        _named(_TWELVE),
        # The tokens of GRPO in 60 steps. DAPO samples up to three batches per step.
        steps=100,
        sampled_tokens=48_000,
    ),
    "sums_rewards": _of_smollm2(
        "SmolLM2-135M on easy sums and products: rewards without a verifier",
        "Do rewards without a verifier improve a small language model on easy questions?",
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
        "SmolLM2-135M on hard sums: teachers",
        "Does a teacher help a small language model on sums that it rarely solves?",
        "arithmetic:hard",
        _named(
            "grpo sdpo",
            # The policy/ of a run of GRPO: rlvr_jax smollm2 --questions hard --seed 100.
            opd="opd:teacher=runs/smollm2_hard/policy",
            # The name in its lines.
            **{"sdpo:teacher=start": "sdpo:teacher=start"},
        ),
    ),
}
