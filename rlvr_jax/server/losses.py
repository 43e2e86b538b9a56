"""The losses of the Tinker protocol, as sums over tokens.

    cross_entropy        -Σ w log p
    importance_sampling  -Σ A ρ,  ρ = exp(log p - log q)
    ppo                  -Σ min(A ρ, A clip(ρ, low, high))
    cispo                -Σ A sg[clip(ρ, low, high)] log p
    dro                  -Σ (A log p - β/2 (log p - log q)²)

p is the current policy, q is the policy that sampled (`logprobs`), A is the advantage. Tokens that
do not count have weight or advantage 0. `low` and `high` are bounds of the ratio itself.

Source: https://tinker-docs.thinkingmachines.ai/losses
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.server.refusal import Refused

Inputs = Mapping[str, Float[Array, "B N"]]
Numbers = Mapping[str, Float[Array, ""]]


@dataclass(frozen=True)
class ProtocolLoss:
    """A loss that is a sum over tokens.

    Fields:
      token_loss: (logp [B, N], inputs, config) -> [B, N].
      inputs: arrays that it reads besides target_tokens.
      config: numbers that a client may set, with their defaults; None: without default.
    """

    token_loss: Callable[[Float[Array, "B N"], Inputs, Numbers], Float[Array, "B N"]]
    inputs: tuple[str, ...] = ("logprobs", "advantages")
    config: Mapping[str, float | None] = field(default_factory=dict)

    def numbers(self, name: str, given: Mapping[str, float | str]) -> dict[str, float]:
        """The config of a request with its defaults.

        Raises:
          Refused: an unknown name, a text, or a number without default that is not given.
        """
        for key, value in given.items():
            if key not in self.config or isinstance(value, str):
                known = ", ".join(self.config) or "none"
                raise Refused(
                    f"loss_fn_config of {name} must have numbers among {known}, got"
                    f" {key}={value!r:.40}"
                )
        numbers = {**self.config, **given}
        missing = [key for key, value in numbers.items() if value is None]
        if missing:
            raise Refused(f"loss_fn_config of {name} must have {', '.join(missing)}, got none")
        return {key: float(value) for key, value in numbers.items() if value is not None}


def _ratio(logp: Array, inputs: Inputs) -> Array:
    return jnp.exp(logp - inputs["logprobs"])


def _cross_entropy(logp: Array, inputs: Inputs, config: Numbers) -> Array:
    return -inputs["weights"] * logp


def _importance_sampling(logp: Array, inputs: Inputs, config: Numbers) -> Array:
    return -inputs["advantages"] * _ratio(logp, inputs)


def _clipped(ratio: Array, config: Numbers) -> Array:
    return jnp.clip(ratio, config["clip_low_threshold"], config["clip_high_threshold"])


def _ppo(logp: Array, inputs: Inputs, config: Numbers) -> Array:
    ratio, advantage = _ratio(logp, inputs), inputs["advantages"]
    return -jnp.minimum(advantage * ratio, advantage * _clipped(ratio, config))


def _cispo(logp: Array, inputs: Inputs, config: Numbers) -> Array:
    weight = jax.lax.stop_gradient(_clipped(_ratio(logp, inputs), config))
    return -inputs["advantages"] * weight * logp


def _dro(logp: Array, inputs: Inputs, config: Numbers) -> Array:
    distance = logp - inputs["logprobs"]
    return -(inputs["advantages"] * logp - config["beta"] / 2 * distance**2)


LOSSES: Mapping[str, ProtocolLoss] = {
    "cross_entropy": ProtocolLoss(_cross_entropy, inputs=("weights",)),
    "importance_sampling": ProtocolLoss(_importance_sampling),
    "ppo": ProtocolLoss(_ppo, config={"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}),
    "cispo": ProtocolLoss(_cispo, config={"clip_low_threshold": 0.0, "clip_high_threshold": 4.0}),
    "dro": ProtocolLoss(_dro, config={"beta": None}),
}
"""The protocol's losses by name."""


def protocol_loss(name: str) -> ProtocolLoss:
    """The loss of a name.

    Raises:
      Refused: another name.
    """
    if name not in LOSSES:
        raise Refused(
            f"loss_fn must be one of {', '.join(LOSSES)} or rlvr:METHOD, such as rlvr:clip_cov, got"
            f" {name!r}"
        )
    return LOSSES[name]
