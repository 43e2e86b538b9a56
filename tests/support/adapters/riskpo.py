"""RiskPO's vectors. Bundles are compared by their own quantiles, as in a first update.

A deviation of 0 is divided by ε, as the authors do.
"""

import golden_vectors as golden
from adapters.common import both

from rlvr_jax.methods import recipe
from rlvr_jax.methods.exploration.riskpo import (
    bundled,
    outcome_credit,
    relative_credit,
    spread_credit,
    uniform_credit,
    upper_tail,
)


@both
def outputs(case, hyper, soft):
    def changed(**settings):
        given = {
            "num_prompts": hyper["bundle"],
            "low": hyper["low"],
            "high": hyper["high"],
            "tail_weight": hyper["w_mix"],
            "credit": uniform_credit,
            "track_rate": hyper["track_rate"],
            "clip_low": hyper["clip_low"],
            "clip_high": hyper["clip_high"],
            "epsilon": hyper["eps"],
            "min_spread": 0.0,
        }
        return recipe("riskpo", **{**given, **settings})

    def signals(state=None, **settings):
        return golden.signals(changed(**settings), case, soft, state)

    first = golden.evaluate(changed(), case, soft)
    second = golden.evaluate(changed(), case, soft, first.state)
    variants = {
        "uniform": first.signals,
        "std": signals(credit=spread_credit),
        "score": signals(credit=outcome_credit),
        "sum_mean": signals(credit=relative_credit, natural_baseline=False),
        "tracked": signals(second.state),
        "rvar": signals(tail_weight=0.0),
        "upper": signals(tail=upper_tail),
    }
    return {
        **first.outputs(),
        "bundle_scores": bundled(first.batch, hyper["bundle"]).score,
        "quantiles_first": first.state["risk_sensitive"].quantiles,
        "quantiles_next": second.state["risk_sensitive"].quantiles,
        **{f"advantages_{name}": found.advantage for name, found in variants.items()},
    }
