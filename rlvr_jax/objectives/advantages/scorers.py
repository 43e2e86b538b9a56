"""Networks that score tokens for an objective and are fitted to outcomes of rollouts.

A `Scorer` takes the critic's place in a recipe (`Recipe.critic`): its scores are computed for the
whole batch before the first update, as the record `process_reward` or `critic_values`, and
it is fitted after the last one, with an optimizer of its own. Each belongs to one paper.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from jaxtyping import Array, Float

from rlvr_jax.arguments import check_arguments
from rlvr_jax.types import Part, Rollouts


@dataclass(frozen=True, eq=False, repr=False)
class Scorer(Part):
    """A network that scores tokens or responses.

    Fields:
      init: (key, width of the policy, dtype) -> its parameters, a pytree; {}: only its trunk has
        parameters.
      score: (parameters, seen, rollouts) -> [B, T], or [B, K] where it writes critic_values.
      fit: (parameters, seen, rollouts) -> losses [B] and weights [B], which carry no gradient;
        Σ w l / Σ w over the rows of an update is minimised.
      trunk: source of its input. "policy": states [B, T + 1, D], constants, the last hidden states
        of the policy at the last token of the prompt and at the T of the response. "own": log-probs
        [B, T] of a network that starts as the policy and is trained with the parameters.
      reads: records that it reads besides those of the sampler and the grades: "reference_logp".
      writes: the record of rollouts that holds its scores.
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
