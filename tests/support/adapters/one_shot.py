"""The vectors of 1-shot RLVR: the order of prompts by their histories, and the loss."""

import golden_vectors as golden
from adapters.common import recipe_with

from rlvr_jax.analysis.prompt_order import historical_variance, order


def outputs(case, hyper):
    data = golden.inputs(case)
    score = historical_variance(data["soft_rewards"].reshape(-1, int(data["group_size"])))

    def made(kl_coefficient, entropy_coefficient):
        method = recipe_with(
            hyper,
            "one_shot",
            kl_coefficient=kl_coefficient,
            entropy_coefficient=entropy_coefficient,
        )
        return golden.evaluate(method, case)

    done, plain = made(hyper["beta"], hyper["entropy_coef"]), made(0.0, 0.0)
    kl = done.metrics["kl_penalty/k3"]
    return {
        **done.outputs(),
        "score": score,
        "order": order(score),
        "pg_loss": plain.loss,
        "kl_loss": kl,
        # The loss is linear in the entropy.
        "mean_entropy": (made(0.0, 1.0).loss - plain.loss) * -1,
    }
