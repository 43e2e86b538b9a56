"""Draws that write in pieces: a piece that is drawn greedily is what a fresh pass would give.

`test_turns`, `test_branch_turns`, `test_summarized_turns` and `test_tree_draws` have their draws;
here are the others.
"""

from dataclasses import replace

import numpy as np
import pytest
import training_runs
from everyday import everyday
from numpy.testing import assert_array_equal

from rlvr_jax.runs.step import collect

GREEDY = 1e-6
WORLDS = "small_environments:"

# Hyperparameters, settings, and the step that is looked at: what goes on from an earlier step needs
# one before it.
METHODS = {
    "supo": (("instruction==", "context=3", "summary=1"), {}, 0),
    "rollart": (("staleness=1", "window=0.2", "redundancy=4"), {}, 1),
    "delethink": (("head=1", "carry=4", f"temperature={GREEDY}"), {}, 0),
    "t_ppo": (("window=0.4", "trunk=policy"), {}, 1),
    "reasoning_palette": (("latent=3", "prefix=2", "until=1"), {}, 0),
    "fission_grpo": (
        ("tools=None",),
        {"task": f"{WORLDS}answering_sums", "response_tokens": 10},
        1,
    ),
    "arbitrary_entropy": (("fraction=0.5", f"high={GREEDY}", f"low={GREEDY}"), {}, 0),
    "epo": (("max_steps=3",), {"task": f"{WORLDS}answering_sums", "response_tokens": 10}, 0),
    "social_rl": ((), {"task": f"{WORLDS}played_sums", "response_tokens": 16}, 0),
    "rstar_math": (
        ("separator=+", "candidates=2", "iterations=3", "depth=3", f"temperature={GREEDY}"),
        {},
        0,
    ),
    "bfs_prover_v2": (
        ("expansions=4", "separator= =", "low=0", "high=1", f"temperature={GREEDY}"),
        {"task": f"{WORLDS}counted_sums", "response_tokens": 3},
        0,
    ),
    "spec_rl": ((), {"prompts_per_step": 15}, 1),
    "cure": (("top_k=3",), {}, 0),
}
# In several pieces wherever the policy writes on; the others end by themselves now and then.
PIECES = {"supo", "rollart", "delethink", "t_ppo", "epo", "social_rl"}
FAST = {"rollart"}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "method",
    everyday(METHODS, *FAST),
)
def test_a_piece_that_is_drawn_greedily_is_what_a_fresh_pass_would_give(method, tmp_path):
    given, changes, step = METHODS[method]
    policy = training_runs.write_policy(tmp_path, max_positions=64)
    changes = {"temperature": GREEDY, **changes}
    run = training_runs.prepared(
        training_runs.settings(policy, "unused", method=method, hyperparameters=given, **changes)
    )
    state = run.initial_state()
    for number in range(step + 1):
        collected = collect(run, state, number)
        state = replace(state, host=replace(state.host, data=collected.state))
    rollouts = collected.batch.rollouts
    places = np.arange(rollouts.tokens.shape[1])[None]
    own = places < rollouts.length[:, None]
    if "origin" in rollouts.records:
        own &= rollouts.records["origin"] == 0
        assert method not in PIECES - {"rollart"} or np.any(rollouts.records["origin"] != 0)
    assert own.sum() > 10
    # What is imitated, or of a group that teaches nothing, is on no mask, and would not be scored.
    scored = rollouts.replace(mask=own)
    likeliest = run.scorer(state.device)(scored, ["max_id"], "current")["max_id"]
    assert_array_equal(rollouts.tokens[own], likeliest[own])
