"""SSB's vectors: every row is a reply, its teacher's logits those behind the richer prompt."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import on_mask

from rlvr_jax.experience.stages.choices.pairs import mixed_groups
from rlvr_jax.methods import recipe
from rlvr_jax.types import replace


def outputs(case, hyper):
    data, heat = golden.inputs(case), hyper["temperature"]

    def stats_of(logits):
        """At the temperature that the rows have."""
        return golden.token_stats(logits / heat, data["tokens"], data["teacher_logits"] / heat)

    method = recipe("ssb", temperature=heat)
    batch = golden.rollouts(case)
    # All rows are replies, whatever groups they stand in.
    done = golden.evaluate(replace(method, experience=None), case, stats_of=stats_of)
    outcomes = golden.experience_batch(batch).outcomes()
    token_kl = stats_of(jnp.asarray(data["logits"])).records["reverse_kl"]
    return {
        **done.outputs(),
        "usable": mixed_groups(outcomes),
        "token_kl": on_mask(token_kl, batch),
    }
