"""Every method and primitive agrees with its reference vectors, array by array."""

import golden_vectors as golden
import numpy as np
import pytest
from check_golden import SLUGS, TOLERANCE, compare, difference

from rlvr_jax.methods import names

# Have none: procedures over visits and rules about texts. By the test with their examples.
WITHOUT = {
    "agent_rlvr": "test_agent_rlvr.py",
    "adcl_egsr": "test_prompt_order.py",
    "affectgpt_r1": "test_text_rewards.py",
    "arrol": "tests/experience/test_tree_nodes.py",
    "bfs_prover_v2": "test_step_searches.py, test_step_provers.py",
    "br_rm": "tests/cases",
    "cog_drift": "test_prompt_order.py",
    "critique_ft": "test_augmented_prompts.py",
    "critique_rl": "test_text_rewards.py",
    "erpo": "test_erpo.py",
    "fission_grpo": "test_fission_grpo.py",
    "flawed_prefix": "test_prompt_forms.py",
    "instruction_following": "test_text_rewards.py",
    "meta_policy": "tests/cases",
    "multi_domain": "test_prompt_order.py",
    "nurl": "test_augmented_prompts.py",
    "prompt_augmentation": "test_prompt_forms.py",
    "questa": "test_augmented_prompts.py",
    "r1_searcher": "tests/verifiers/texts/test_r1_searcher.py",
    "reasoning_palette": "test_reasoning_palette.py",
    "rewardmap": "test_text_rewards.py",
    "rlad": "test_written_problems.py",
    "rlmt": "test_text_rewards.py",
    "rlsp": "tests/cases",
    "rollart": "tests/experience/test_queued.py",
    "salu": "tests/cases",
    "skill0": "test_prompt_order.py",
    "sweet_rl_policy": "test_agents.py",
    "tp_judge": "test_text_rewards.py",
}

# Compile for four to twenty seconds each, more than half of the time of all.
LONG = {
    "absolute_zero",
    "arbitrary_entropy",
    "archer",
    "ares",
    "arpo",
    "bapo",
    "calibrl",
    "canon",
    "capo_curvature",
    "cgpo",
    "dph_rl",
    "dsdr",
    "ead",
    "earl",
    "empg",
    "entropy_dynamics",
    "epo",
    "gtpo",
    "hapo",
    "intrinsic_rewards",
    "laser",
    "lp_reg",
    "ma_rlhf",
    "noisy_reward_correction",
    "oblr_po",
    "passk_advantage",
    "ppl_position_shaping",
    "prerl",
    "progrpo",
    "riskpo",
    "rlfr",
    "rollout_correction",
    "rose",
    "rpg",
    "sdpo",
    "simko",
    "siren",
    "social_rl",
    "soft_grpo",
    "verl_effective_rank",
    "verltool",
}


def every_vector():
    """Golden cases by method, of which one is enough for every day: compiling takes the time."""
    for slug in SLUGS:
        for number, case in enumerate(golden.CASES):
            slow = number > 0 or slug in LONG
            yield pytest.param(slug, case, marks=pytest.mark.slow if slow else ())


@pytest.mark.parametrize(("slug", "case"), list(every_vector()))
def test_every_array_agrees(slug, case):
    done = compare(slug, golden.Case(golden.FOLDER, case))
    assert done.differences and not done.missing
    assert {name: d for name, d in done.differences.items() if not d <= TOLERANCE} == {}


def test_every_method_has_vectors():
    assert set(names()) - set(WITHOUT) <= set(SLUGS)
    assert set(SLUGS) >= LONG


@pytest.mark.parametrize(
    ("found", "wanted", "result"),
    [
        ([1.0, 2.0], [1.0, 4.0], 0.5),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([0.0, 1e-30], [0.0, 0.0], np.inf),
        ([np.inf, 1.0], [np.inf, 1.0], 0.0),
        ([np.nan, 1.0], [2.0, 1.0], np.inf),
        ([1.0], [1.0, 1.0], np.inf),
    ],
)
def test_differences_are_relative_to_the_largest_magnitude(found, wanted, result):
    assert difference(found, wanted) == result
