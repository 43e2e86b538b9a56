"""STP: the policy conjectures from its proofs, and imitates its own proofs by weight."""

import numpy as np
import pytest
import training_runs
from walks import of_cell, walked

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.stages.problems.written import WRITE
from rlvr_jax.methods import recipe
from rlvr_jax.methods.self_play.stp import matching_weights


def test_every_target_goes_to_the_example_that_is_most_like_it():
    examples = np.array([[1.0, 0], [0, 1]])
    targets = np.array([[2.0, 0.1], [1, 0], [0, 3], [1, 0.2]])
    # Each gives 2/4, up to a cap of 1 the first example.
    assert matching_weights(examples, targets, cap=1.0).tolist() == [1.0, 1.0]
    assert matching_weights(examples, targets, cap=4.0).tolist() == [1.5, 0.5]
    assert matching_weights(examples[:0], targets, 1.0).tolist() == []


def test_proofs_and_conjectures_are_imitated_by_weight():
    proofs = conjectures = 0
    given = {"hard": 0.3, "margin": 0.0, "most": 0.9, "length_cost": 0.05}
    actor = numpy_actor.NumpyActor(chance=0.4)
    for collected, _, _ in walked("stp", 8, actor, **given):
        batch, rollouts = collected.batch, collected.batch.rollouts
        assert not rollouts.mask.any()
        rows = np.flatnonzero(rollouts.records["supervised"])
        if not len(rows):
            continue
        assert len(rows) == len(batch)
        assert (rollouts.outcome[rows] == 1).all() and (rollouts.reward[rows] > 0).all()
        written = of_cell(batch, WRITE)
        conjectures += len(written)
        proofs += len(batch) - len(written)
        assert collected.metrics["imitated_conjectures"] == len(written)
    assert proofs > 0 and conjectures > 0


def test_what_was_proved_in_an_earlier_step_is_no_target():
    stage = recipe("stp", hard=0.3, margin=0.0).experience.stages["imitate_proofs"]
    chain, scored = experience(stages=[stage]), []

    class Watched(numpy_actor.NumpyActor):
        def score(self, batch, needs, of="current"):
            if list(needs) == ["mean_hidden"]:
                scored.append(len(batch))
            return super().score(batch, needs, of)

    own = numpy_actor.setting(chain)
    for best in (0.0, 0.1):
        state = {"imitate_proofs": np.full(12, best, np.float32)}
        numpy_actor.walk(chain, Watched(chance=0.4), 8, state=state, own=own)
        # Without a target nothing is matched.
        assert bool(scored) == (best == 0)
        scored.clear()


@pytest.mark.slow
def test_training_on_ones_own_proofs(tmp_path):
    given = ("most=1", "hard=0.2", "margin=0")
    steps = training_runs.on_brackets("stp", tmp_path, steps=4, hyperparameters=given)
    assert max(training_runs.values(steps, "experience/conjectures")) > 0
    assert max(training_runs.values(steps, "imitated_tokens")) > 0
    losses = training_runs.values(steps, "imitation_loss")
    assert losses[-1] < losses[0]
