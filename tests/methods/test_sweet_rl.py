"""SWEET-RL: a language model that sees the solution learns which turns were good ones."""

import jax.numpy as jnp
import numpy as np
import pytest
import training_runs
from golden_vectors import rollouts
from turn_runs import assert_turns_were_learned_from, run_of

from rlvr_jax.methods.agents.sweet_rl import turn_sum_score
from rlvr_jax.objectives.regularizers.turn_preferences import best_against_rest
from rlvr_jax.runs.step import collect

BATCH = rollouts("b")


@pytest.mark.slow
def test_sweet_rl_fits_a_critic_that_is_shown_the_answer(tmp_path):
    steps = run_of(tmp_path, "sweet_rl", steps=8, learning_rate=3e-3)
    # What is fitted is a critic that reads the answer, to which the policy's ratio is nothing.
    assert_turns_were_learned_from(steps, as_sampled=False)
    # Critic and reference are the same at first, and no pair is ordered.
    fractions = training_runs.values(steps, "preferred_fraction")
    assert fractions[0] == 0 and max(fractions[1:]) > 0


@pytest.mark.thorough
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
        shown = rollouts.records["shown_tokens"][row, : rollouts.records["shown_length"][row]]
        assert words.decode(shown) == prompt.text
        assert words.decode(read) == f"{prompt.gold} {prompt.text}"


def test_turns_are_averaged_by_their_ids_over_holes():
    ratio = jnp.asarray([[1.0, 2.0, np.nan, 4.0, 5.0]])
    turn, mask = jnp.asarray([[6, 2, 2, 6, 6]]), jnp.asarray([[True, True, False, True, True]])
    batch = BATCH.replace(turn=turn, mask=mask)
    np.testing.assert_allclose(turn_sum_score(ratio, batch), [10 / 3 + 2.0], rtol=1e-15)


def test_turns_are_asked_for_whatever_the_score_reads():
    """A task without turns has no use for a critic of turns."""
    assert "turn" in best_against_rest(0.1, turn_sum_score).reads
    assert "turn" in best_against_rest(0.1).reads
    with pytest.raises(ValueError, match="coefficient must be positive, got 0"):
        best_against_rest(0.0)
