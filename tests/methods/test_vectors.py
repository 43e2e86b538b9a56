"""Every method and primitive agrees with its reference vectors, array by array."""

from pathlib import Path

import golden_vectors as golden
import numpy as np
import pytest
from check_golden import SLUGS, TOLERANCE, compare, difference

from rlvr_jax.methods import names

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


def test_a_method_without_vectors_has_tests_or_cases_of_its_name():
    tests = Path(__file__).parents[1]
    named = {path.stem.removeprefix("test_") for path in tests.rglob("test_*.py")}
    named |= {path.stem for path in (tests / "cases").glob("*.jsonl")}
    assert set(names()) <= set(SLUGS) | named


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
