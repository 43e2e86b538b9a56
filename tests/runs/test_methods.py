"""Every method that training can feed takes a whole step, several updates and epochs included."""

import jax
import numpy as np
import training_runs

from rlvr_jax.runs.step import collect
from rlvr_jax.training.learning import learn

# A vocabulary of 14 has no 50 likeliest, rollouts of random weights are all above the entropy where
# one is dropped, and subsets of 4 rollouts need groups of more.
CHANGED = {
    "capo_curvature": {"hyperparameters": ("top_k=5",)},
    "gtpo": {"hyperparameters": ("entropy_threshold=10",)},
    "passk_advantage": {"samples_per_prompt": 8},
}


# A statistic of the old policy, state and a term, an estimator that reads the reference.
@training_runs.every_trainable_method("lp_reg", "siren", "ace")
def test_a_step_of_several_updates_moves_the_policy(name, model):
    assert_a_step_moves_the_policy(name, model, minibatches=2, epochs=2)


def test_a_step_of_one_update_moves_the_policy(model):
    assert_a_step_moves_the_policy("simko", model)


def assert_a_step_moves_the_policy(name, model, **plan):
    changes = CHANGED.get(name, {})
    settings = training_runs.settings(model, "unused", method=name, **changes, **plan)
    run = training_runs.prepared(settings)
    state = run.initial_state()
    before = jax.tree.map(np.asarray, state.params)
    batch = collect(run, state, 0).batch
    state, metrics, records = learn(run.learner, state, batch.rollouts, 0)
    assert np.isfinite([metrics["loss"], metrics["gradient_norm"]]).all()
    assert all(np.isfinite(values).all() for values in records.values())
    assert int(state.updates) == settings.updates_per_step()
    moved = jax.tree.map(lambda now, then: np.any(np.asarray(now) != then), state.params, before)
    assert any(jax.tree.leaves(moved))
