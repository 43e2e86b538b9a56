"""The vectors of the rubric rewards: each strategy alone, and all of them."""

import golden_vectors as golden

from rlvr_jax.experience import first_of_largest
from rlvr_jax.methods import recipe


def outputs(case, hyper):
    batch = golden.rollouts(case)
    strategies = {
        "weighted": {},
        "vetoed": {"veto": hyper["veto"], "veto_below": hyper["veto_below"]},
        "saturated": {"saturation": hyper["tau"]},
        "interaction": {"synergy": hyper["synergy"], "pair": (0, 2)},
        "shaped": {"power": hyper["power"]},
    }
    strategies["combined"] = {name: x for form in strategies.values() for name, x in form.items()}
    settings = {"weights": hyper["weights"], "epsilon": hyper["eps"]}
    done = {
        name: golden.evaluate(recipe("rubric_rewards", **settings, **form), case)
        for name, form in strategies.items()
    }
    fraction = done["weighted"].batch.reward
    best = first_of_largest(fraction, batch.group, batch.rollout_id)
    return {
        **{name: found.batch.reward for name, found in done.items()},
        "advantages": done["weighted"].signals.advantage,
        "best": best,
        "refine": best & (fraction < hyper["solved"]),
    }
