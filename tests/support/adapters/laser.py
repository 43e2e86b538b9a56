"""LaSeR's vectors: the auxiliary loss alone, and scores of the old policy in the advantage."""

import functools

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import only, per_group, per_rollout

from rlvr_jax.methods import recipe
from rlvr_jax.methods.judges.laser import class_balance, self_reward, self_reward_loss
from rlvr_jax.objectives.statistics.groups import finished_rows, group_std
from rlvr_jax.types import is_correct


def outputs(case, hyper):
    data, batch = golden.inputs(case), golden.rollouts(case)
    after = golden.token_after(data["mask"])
    batch = batch.replace(truncated=jnp.asarray(after >= data["mask"].shape[1]))
    stats_of = functools.partial(
        golden.token_stats, tokens=batch.tokens, verdict=([hyper["token"]], after)
    )
    finished, form = finished_rows(batch), (hyper["beta"], hyper["c_ref"])

    def score_of(name):
        stats = stats_of(jnp.asarray(data[name]))
        return self_reward(stats.records["verdict_logp"][:, 0], finished, *form)

    batch = batch.replace(self_reward=score_of("old_logits"))
    evaluate = functools.partial(golden.evaluate, case=case, stats_of=stats_of, batch=batch)
    fitted = evaluate(only(self_reward_loss(hyper["coef"], *form)))
    unbalanced = evaluate(only(self_reward_loss(hyper["coef"], *form, balanced=False)))
    advantages = {
        name: evaluate(
            recipe("laser", coefficient=0.0, mix=mix, min_std=hyper["min_std"])
        ).signals.advantage
        for name, mix in (
            ("advantages", 0.0),
            ("self_advantages", 1.0),
            ("mixed_advantages", hyper["mix"]),
        )
    }
    score = score_of("logits")
    clipped = jnp.where(finished, jnp.clip(batch.records["self_reward"], 0, 1), 0)
    return {
        **fitted.outputs(),
        "score": score,
        "finished": finished,
        "weights": class_balance(is_correct(batch.outcome), finished),
        "loss_unbalanced": unbalanced.loss,
        "score_std": per_group(group_std(clipped, batch.group), case),
        "predicted": is_correct(score),
        **{name: per_rollout(values, batch) for name, values in advantages.items()},
    }
