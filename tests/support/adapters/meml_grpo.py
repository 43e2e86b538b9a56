"""MEML-GRPO's vectors: experts by turns in a group; logits are those behind the worst's prompt."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import only, per_group

from rlvr_jax.methods import recipe
from rlvr_jax.methods.distillation.meml_grpo import hard_groups, teach_the_worst, teaching_rows
from rlvr_jax.types import replace


def outputs(case, hyper):
    data = golden.inputs(case)
    size = int(data["group_size"])
    batch = golden.rollouts(case)
    expert = np.arange(len(batch.group)) % size % hyper["experts"]
    batch = batch.replace(
        cell=jnp.asarray(expert, jnp.int32),
        supervised=jnp.zeros(len(expert), bool),
    )

    def stats_of(logits):
        return golden.token_stats(logits, data["tokens"], second_prompt=logits)

    def evaluated(method):
        method = replace(method, experience=None)
        return golden.evaluate(method, case, stats_of=stats_of, batch=batch)

    made = {
        "clip_low": hyper["clip"],
        "clip_high": hyper["clip"],
        "epsilon": hyper["std_eps"],
        "incorrect_above": hyper["hard_fraction"],
    }
    done = evaluated(recipe("meml_grpo", mutual=hyper["kl_coef"], **made))
    plain = evaluated(recipe("meml_grpo", mutual=0.0, **made))
    mutual = evaluated(only(teach_the_worst(1.0)))
    teaching = teaching_rows(batch.reward, batch.outcome, batch.group, batch.records["cell"])
    stats = stats_of(jnp.asarray(data["logits"]))
    taught = np.asarray(teaching.rows)[:, None] & np.asarray(batch.mask)
    outcomes = golden.experience_batch(batch).outcomes()
    return {
        **done.outputs(),
        "expert": expert,
        "best": per_group(teaching.best, case),
        "worst": per_group(teaching.worst, case),
        "teach_rows": teaching.rows,
        "hard": hard_groups(outcomes, hyper["hard_fraction"]),
        "mutual_kl": np.where(taught, batch.old_logp - stats.records["second_prompt_logp"], 0),
        "pg_loss": plain.loss,
        "mutual_loss": mutual.loss,
        "dlogits_pg": plain.dlogits,
        "dlogits_mutual": mutual.dlogits,
    }
