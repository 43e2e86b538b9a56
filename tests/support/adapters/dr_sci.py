"""Dr.SCI's vectors: a group is a prompt; odd ones are in the set, even ones wait."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience import weighted_fraction
from rlvr_jax.methods import recipe
from rlvr_jax.methods.curricula.dr_sci import exchanged, stages_by_difficulty
from rlvr_jax.types import Criterion


def outputs(case, hyper):
    data = golden.inputs(case)
    size, items = int(data["group_size"]), len(hyper["weights"])
    columns = np.arange(items)
    judged = (data["tokens"][:, columns % data["tokens"].shape[1]] + columns) % 2 == 0
    scores = np.concatenate([judged, data["rewards"][:, None]], axis=1).astype(float)
    names = [*map(str, columns), "answer"]
    weights = [*hyper["weights"], hyper["answer_weight"]]
    rubric = [Criterion(name, weight) for name, weight in zip(names, weights, strict=True)]
    (stage,) = recipe("dr_sci", rubric=rubric).experience.stages.values()
    batch = golden.rollouts(case).replace(component_rewards=jnp.asarray(scores))
    shaped = golden.prepared(recipe("dr_sci", rubric=rubric), batch).reward
    assert "by_rubric" in stage.label

    means = {
        name: data[name].reshape(-1, size).mean(axis=1) for name in ("rewards", "soft_rewards")
    }
    difficulty = np.round(8 * means["soft_rewards"]) / 8
    active = np.arange(len(difficulty)) % 2 == 1
    after, _ = exchanged(active, ~active, means["rewards"], difficulty, hyper["mastered"])
    of_group = {
        "accuracy": means["rewards"],
        "difficulty": difficulty,
        "stage": stages_by_difficulty(difficulty, hyper["pending"], hyper["discard"]),
        "mastered": active & (means["rewards"] > hyper["mastered"]),
        "active_next_epoch": after,
    }
    return {
        "judged": judged,
        "reward": shaped,
        "reward_no_answer": weighted_fraction(jnp.asarray(judged, float), hyper["weights"]),
        **{name: np.repeat(values, size) for name, values in of_group.items()},
    }
