"""Networks that score tokens for an objective and are fitted to outcomes of rollouts.

A `Scorer` takes the critic's place in a recipe (`Recipe.critic`). Before the first update it scores
the whole batch, and the record `process_reward` or `critic_values` holds the scores. After the last
update it is fitted with a separate optimizer. Each scorer is in the file of its paper.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from jaxtyping import Array, Float

from rlvr_jax.arguments import check_arguments
from rlvr_jax.types import Part, Rollouts


@dataclass(frozen=True, eq=False, repr=False)
class Scorer(Part):
    """A network that is fitted during the run and scores tokens or responses, such as a critic.

    Fields:
      init: (key, width of the policy, dtype) -> its parameters, a pytree; {} if only the trunk has
        parameters.
      score: (parameters, seen, rollouts) -> [B, T], or [B, K] where it writes critic_values. `seen`
        is the output of the trunk.
      fit: (parameters, seen, rollouts) -> losses [B] and weights [B] without gradient. The fit
        minimises Σ w l / Σ w over the rows of an update.
      trunk: source of `seen`. "policy": states [B, T + 1, D] without gradient, the last hidden
        states of the policy at the last prompt token and the T response tokens. "own": log-probs
        [B, T] of a network that starts as the policy and is trained with the parameters.
      reads: records that it reads besides those of the sampler and the grades: "reference_logp".
      writes: the record of the rollouts that holds its scores.
    """

    init: Callable[[Array, int, Any], Any]
    score: Callable[[Any, Array, Rollouts], Float[Array, "B N"]]
    fit: Callable[[Any, Array, Rollouts], tuple[Float[Array, "B"], Float[Array, "B"]]]
    trunk: Literal["own", "policy"] = "policy"
    reads: frozenset[str] = frozenset()
    writes: Literal["process_reward", "critic_values"] = "process_reward"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_arguments(Scorer, {"trunk": self.trunk, "writes": self.writes})
        if unknown := sorted(self.reads - {"reference_logp"}):
            raise ValueError(f"Scorer: reads must be among reference_logp, got {unknown}")
