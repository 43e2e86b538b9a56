"""RiskPO's vectors. Bundles are compared by their own quantiles, as in a first update.

A deviation of 0 is divided by ε, as the authors do.
"""

import golden_vectors as golden
from adapters.common import both

from rlvr_jax.methods import recipe
from rlvr_jax.objectives.risk import bundled, upper_tail
from rlvr_jax.objectives.risk_credit import (
    outcome_credit,
    relative_credit,
    spread_credit,
    uniform_credit,
)

LEFT_OUT = {}


@both
def outputs(case, hyper, soft):
    def run(state=None, **changed):
        settings = {
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
        return golden.evaluate(recipe("riskpo", **{**settings, **changed}), case, soft, state)

    first = run()
    second = run(first.state)
    variants = {
        "uniform": first,
        "std": run(credit=spread_credit),
        "score": run(credit=outcome_credit),
        "sum_mean": run(credit=relative_credit, natural_baseline=False),
        "tracked": run(second.state),
        "rvar": run(tail_weight=0.0),
        "upper": run(tail=upper_tail),
    }
    return {
        "bundle_scores": bundled(first.batch, hyper["bundle"]).score,
        "quantiles_first": first.state["risk_sensitive"].quantiles,
        "quantiles_next": second.state["risk_sensitive"].quantiles,
        **{f"advantages_{name}": done.signals.advantage for name, done in variants.items()},
        "advantages": first.signals.advantage,
        "token_loss": first.token_loss,
        "loss": first.loss,
        "dlogits": first.dlogits,
    }
