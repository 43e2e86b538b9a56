"""Methods for agents: each trains by its name on answers that are written in turns."""

import shutil

import numpy as np
import pytest
import training_runs

from rlvr_jax.runs.step import collect


def run_of(tmp_path, method, *hyperparameters, steps=3, **changes):
    """Metrics of a short run on sums with an environment, from a random policy."""
    policy = training_runs.write_policy(tmp_path / "policy")
    config = training_runs.settings(
        policy,
        tmp_path / "run",
        **{
            "task": "small_environments:answering_sums",
            "method": method,
            "response_tokens": 10,
            "hyperparameters": hyperparameters,
            "steps": steps,
            **changes,
        },
    )
    training_runs.quietly(config)
    return training_runs.metrics(tmp_path / "run")


def assert_turns_were_learned_from(steps, as_drawn=True):
    """Checks a run of one update a step.

    Args:
      as_drawn: rows are trained in the context in which they were drawn, by the weights that drew
        them.
    """
    assert max(training_runs.values(steps, "experience/tool_tokens")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
    assert np.isfinite(training_runs.values(steps, "loss")).all()
    for bound in ("max", "min"):
        assert (set(training_runs.values(steps, f"ratio/{bound}")) == {1.0}) == as_drawn


@pytest.mark.slow
def test_empg_credits_turns_by_their_entropy(tmp_path):
    assert_turns_were_learned_from(run_of(tmp_path, "empg"))


@pytest.mark.slow
def test_retroagent_learns_from_episodes_and_pays_what_they_claim(tmp_path):
    steps = run_of(tmp_path, "retroagent", "tools=None", "column=1", prompts_per_step=15)
    assert_turns_were_learned_from(steps)
    assert max(training_runs.values(steps, "experience/reward/progress")) > 0


@pytest.mark.slow
def test_agent_rlvr_tries_again_in_turns_with_guidance(tmp_path, monkeypatch):
    monkeypatch.setattr(training_runs, "WORDS", [*training_runs.WORDS, "What", "may", "help:"])
    task = "small_environments:hinted_sums"
    often = {"prompts_per_step": 12, "samples_per_prompt": 2}
    steps = run_of(tmp_path, "agent_rlvr", "max_turns=2", task=task, steps=2, **often)
    # Guided attempts are learned from without the guidance.
    assert_turns_were_learned_from(steps, as_drawn=False)
    assert max(training_runs.values(steps, "experience/redrawn_fraction")) > 0
    assert max(training_runs.values(steps, "paired_groups")) > 0


@pytest.mark.slow
def test_safe_fits_its_critics_to_answers_of_turns(tmp_path):
    world = "small_environments:in_turns"
    steps = run_of(tmp_path, "safe", experience=world, task="training_runs:sums")
    assert_turns_were_learned_from(steps)


@pytest.mark.slow
def test_aepo_learns_from_answers_of_the_tasks_environment(tmp_path):
    steps = run_of(tmp_path, "aepo_agentic", "tools=None", "top=5", "window=2")
    assert_turns_were_learned_from(steps)
    assert sum(training_runs.values(steps, "experience/forked_rows")) > 0


@pytest.mark.slow
def test_epo_learns_from_each_step_of_an_episode(tmp_path):
    steps = run_of(tmp_path, "epo", "max_steps=3")
    assert_turns_were_learned_from(steps)
    # A turn is a row, so there are more rows than answers.
    answers, turns = (training_runs.values(steps, f"experience/{n}") for n in ("answers", "turns"))
    assert sum(turns) > sum(answers)


@pytest.mark.slow
def test_sweet_rl_fits_a_critic_that_is_shown_the_answer(tmp_path):
    steps = run_of(tmp_path, "sweet_rl", steps=8, learning_rate=3e-3)
    # What is fitted is a critic that reads the answer, to which the policy's ratio is nothing.
    assert_turns_were_learned_from(steps, as_drawn=False)
    # Critic and reference are the same at first, and no pair is ordered.
    shares = training_runs.values(steps, "preferred_fraction")
    assert shares[0] == 0 and max(shares[1:]) > 0


def test_the_critic_reads_the_answer_and_the_policy_that_draws_does_not(tmp_path):
    policy = training_runs.write_policy(tmp_path / "policy")
    task = "small_environments:answering_sums"
    config = training_runs.settings(
        policy, "unused", task=task, method="sweet_rl", response_tokens=10
    )
    run = training_runs.prepared(config)
    batch = collect(run, run.initial_state(), 0).batch
    rollouts, words = batch.rollouts, batch.tokenizer
    for row, prompt in enumerate(batch.prompts):
        read = rollouts.prompt_tokens[row, : rollouts.prompt_length[row]]
        shown = rollouts.shown_tokens[row, : rollouts.shown_length[row]]
        assert words.decode(shown) == prompt.text
        assert words.decode(read) == f"{prompt.gold} {prompt.text}"


@pytest.mark.slow
def test_sweet_rls_policy_learns_from_turns_that_its_critic_prefers(tmp_path):
    run_of(tmp_path / "critic", "sweet_rl", steps=4, learning_rate=3e-3)
    critic = tmp_path / "critic" / "run" / "policy"
    given = (f"critic={critic}", "candidates=4", "pairs=2")
    steps = run_of(tmp_path, "sweet_rl_policy", *given)
    assert max(training_runs.values(steps, "gradient_norm")) > 0
    assert min(training_runs.values(steps, "experience/turn_gap")) > 0
    assert max(training_runs.values(steps, "imitated_tokens")) > 0


@pytest.mark.slow  # ten seconds
def test_pairs_are_two_ways_to_take_one_turn(tmp_path):
    critic = training_runs.write_policy(tmp_path / "critic", seed=5)
    policy = training_runs.write_policy(tmp_path / "policy")
    config = training_runs.settings(
        policy,
        "unused",
        task="small_environments:answering_sums",
        method="sweet_rl_policy",
        response_tokens=10,
        hyperparameters=(f"critic={critic}", "candidates=6", "pairs=2"),
    )
    run = training_runs.prepared(config)
    later = 0
    for step in range(3):
        batch = collect(run, run.initial_state(), step).batch
        rollouts = batch.rollouts
        assert len(batch) == 4 * config.prompts_per_step
        for one, two in batch.groups:
            assert rollouts.reward[[one, two]].tolist() == [1, 0]
            begins = [int(np.argmax(rollouts.mask[row])) for row in (one, two)]
            assert begins[0] == begins[1]
            before = rollouts.tokens[[one, two], : begins[0]]
            np.testing.assert_array_equal(before[0], before[1])
            later += begins[0] > 0
            assert not rollouts.mask[one, rollouts.length[one] :].any()
    assert later > 0


@pytest.mark.slow
def test_ma_rlhf_learns_from_answers_of_turns_by_another_methods_experience(tmp_path):
    world = "small_environments:in_turns"
    steps = run_of(tmp_path, "ma_rlhf", experience=world, task="training_runs:sums")
    assert_turns_were_learned_from(steps)
    assert max(training_runs.values(steps, "critic/gradient_norm")) > 0


@pytest.mark.slow
def test_social_rl_plays_a_game_with_itself(tmp_path):
    steps = run_of(tmp_path, "social_rl", task="small_environments:played_sums", response_tokens=16)
    assert_turns_were_learned_from(steps)
    assert max(training_runs.values(steps, "critic/gradient_norm")) > 0
    moves = sum(training_runs.values(steps, "experience/moves"))
    chosen = [training_runs.values(steps, f"experience/chose_{move}") for move in "12"]
    assert sum(map(sum, chosen)) == moves > 0


def test_players_that_are_no_pairs_are_refused(tmp_path):
    with pytest.raises(ValueError, match="must be a multiple of the 2 players of repeated_game"):
        run_of(tmp_path, "social_rl", task="small_environments:played_sums", samples_per_prompt=3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "given", "changes"),
    [
        ("epo", ("max_steps=3",), {}),
        ("aepo_agentic", ("tools=None", "top=5", "window=2"), {}),
        ("social_rl", (), {"task": "small_environments:played_sums", "response_tokens": 16}),
        (
            "bfs_prover_v2",
            ("expansions=4", "separator= =", "low=0", "high=1"),
            {"task": "small_environments:counted_sums", "response_tokens": 3},
        ),
    ],
)
def test_a_run_that_is_cut_goes_on_in_the_same_bytes(tmp_path, method, given, changes):
    changes = {**changes, "checkpoint_every": 2}
    run_of(tmp_path, method, *given, steps=4, **changes)
    run, whole = tmp_path / "run", tmp_path / "whole"
    shutil.copytree(run, whole)
    shutil.rmtree(run / "checkpoints" / "4")
    (run / "summary.json").unlink()
    run_of(tmp_path, method, *given, steps=4, resume=True, **changes)
    assert training_runs.contents(run) == training_runs.contents(whole)
