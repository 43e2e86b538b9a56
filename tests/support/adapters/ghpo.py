"""The vectors of GHPO: which groups are asked again and with how much, and the loss."""

import golden_vectors as golden
import numpy as np

from rlvr_jax.experience import all_incorrect
from rlvr_jax.methods import recipe
from rlvr_jax.tasks import Prompt, Task

LETTERS = 100


def shown_fraction(view):
    """How much of a solution a view shows, read off what it shows."""
    solved = Prompt("?", solution=["x" * LETTERS])
    task = Task("letters", [solved], [Prompt("test")], None)
    return view.show(solved, task).text.count("x") / LETTERS


def outputs(case, hyper):
    method = recipe(
        "ghpo",
        fractions=hyper["stages"][1:],
        weights=(1.0, hyper["format_weight"]),
        epsilon=hyper["std_eps"],
    )
    batch = golden.rollouts(case)
    rewards = batch.records["component_rewards"][:, :2]
    # One update for each batch: the old policy is the current one.
    batch = batch.replace(outcome=rewards[:, 0], component_rewards=rewards, old_logp=None)
    done = golden.evaluate(method, case, batch=batch)
    incorrect = all_incorrect(golden.experience_batch(batch).outcomes())
    # The last try is repeated where a group has had all of them.
    tries = [shown_fraction(view) for view in method.experience.views]
    tries.append(tries[-1])
    return {
        **done.outputs(),
        "all_wrong": incorrect,
        "next_hint_ratio": np.where(incorrect[:, None], tries, 0),
        "reward": done.batch.reward,
    }
