"""Networks that score tokens for an objective and are fitted to what comes of the rollouts.

A `Scorer` stands in the critic's place of a recipe (`Recipe.critic`): its scores are made for the
whole batch before the first update, as `Rollouts.process_reward` or `Rollouts.critic_values`, and
it is fitted after the last one, with an optimizer of its own.

A scorer is part of one paper: `flow_scorer` of RLFR, `pessimistic_scorer` of SAFE.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxtyping import Array, Float

from rlvr_jax.types import Part, Rollouts


@dataclass(frozen=True, eq=False, repr=False)
class Scorer(Part):
    """What a method wants of the network that scores its tokens or responses.

    Fields:
      init: (key, width of the policy, dtype) -> its parameters, a pytree; {}: it has none beside
        its trunk.
      score: (parameters, seen, rollouts) -> [B, T], or [B, K] where it writes critic_values.
      fit: (parameters, seen, rollouts) -> losses [B] and weights [B], which carry no gradient; what
        is minimised is Σ w l / Σ w over the rows of an update.
      trunk: what it sees. "policy": states [B, T + 1, D], constants, the last hidden states of the
        policy at the last token of the prompt and at the T of the response. "own": log-probs [B, T]
        of a network that starts as the policy and is trained with the parameters.
      reads: records of the rollouts that it reads beside those of the sampler and the grades, of
        "reference_logp".
      writes: the record of rollouts that its scores are, "process_reward" or "critic_values".
    """

    init: Callable[[Array, int, Any], Any]
    score: Callable[[Any, Array, Rollouts], Float[Array, "B N"]]
    fit: Callable[[Any, Array, Rollouts], tuple[Float[Array, "B"], Float[Array, "B"]]]
    trunk: str = "policy"
    reads: frozenset[str] = frozenset()
    writes: str = "process_reward"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.writes not in ("process_reward", "critic_values"):
            raise ValueError(
                f"Scorer: writes must be 'process_reward' or 'critic_values', got {self.writes!r}"
            )
        if self.trunk not in ("own", "policy"):
            raise ValueError(f"Scorer: trunk must be 'own' or 'policy', got {self.trunk!r}")
        if unknown := sorted(self.reads - {"reference_logp"}):
            raise ValueError(f"Scorer: reads must be among reference_logp, got {unknown}")
