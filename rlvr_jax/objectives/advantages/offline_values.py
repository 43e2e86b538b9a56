"""Offline values of tokens, from written dialogues: implicit Q-learning on an agent's tokens.

A dialogue is one row of tokens. The agent's tokens are actions, all other tokens are the
environment. The state after an action is that at the agent's next token.
"""

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.arguments import check_each
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import Mask, Values
from rlvr_jax.types.hyperparameters import NonNegative, Unit

__all__ = ["implicit_q_losses", "moved_targets", "value_perturbed"]

Tree = TypeVar("Tree")


class ValueLosses(NamedTuple):
    """The losses of `implicit_q_losses`: means over the agent's tokens.

    Fields:
      action: L_Q, squared errors of both heads.
      state: L_V, expectile regression.
      conservative: L_C, -log softmax(Q)[a] of both heads.
      policy: L_π, the weighted -logp.
      total: L_Q + L_V + c L_C + L_π.
    """

    action: Float[Array, ""]
    state: Float[Array, ""]
    conservative: Float[Array, ""]
    policy: Float[Array, ""]
    total: Float[Array, ""]


def next_action(values: Values, mask: Mask) -> tuple[Values, Mask]:
    """The value at the row's next token on the mask (0 after the last), and whether it exists."""
    width = mask.shape[1]
    places = jnp.arange(width, dtype=jnp.int32)[None]
    beyond = jnp.where(mask, places, width)
    following = jax.lax.cummin(beyond, axis=1, reverse=True)
    following = jnp.pad(following[:, 1:], ((0, 0), (0, 1)), constant_values=width)
    there = following < width
    taken = jnp.take_along_axis(values, jnp.minimum(following, width - 1), axis=1)
    return jnp.where(there, taken, 0), there


class ValueHeads(NamedTuple):
    """Two heads of action values over the vocabulary, their target heads, and the state value."""

    q: tuple[Float[Array, "B T V"], Float[Array, "B T V"]]
    target_q: tuple[Float[Array, "B T V"], Float[Array, "B T V"]]
    value: Float[Array, "B T"]


def implicit_q_losses(
    heads: ValueHeads,
    logp: Float[Array, "B T"],
    tokens: Int[Array, "B T"],
    mask: Bool[Array, "B T"],
    reward: Float[Array, "B T"],
    *,
    discount: float = 0.99,
    expectile: float = 0.9,
    conservatism: float = 1e-2,
    sharpness: float = 0.0,
) -> ValueLosses:
    """The losses of implicit language Q-learning, each a mean over the agent's tokens.

    With Q̂ the smaller of the target heads at the action and V' the value at the next action,

        L_Q = Σ_k (r + γ sg V' - Q^k[a])²,   L_V = |τ - 1[Q̂ < V]| (sg Q̂ - V)²
        L_C = Σ_k -log softmax(Q^k)[a],      L_π = -exp(β (Q̂ - V)) logp

    The authors divide L_π by all tokens of a row, so long turns of the other side weaken it.

    Args:
      heads: action values of the two heads and of their target heads, and the state value.
      logp: log-probs of the tokens under the policy (nats).
      tokens: sampled tokens (actions a).
      mask: the agent's tokens.
      reward: r of each token.
      discount: discount per token (γ).
      expectile: τ; above ½ the best actions in the data count more.
      conservatism: weight of L_C in the sum of the losses.
      sharpness: β; 0 is imitation.
    Raises:
      ValueError: discount or expectile is outside [0, 1], or a coefficient is negative.
    Source: ILQL, https://github.com/Sea-Snell/Implicit-Language-Q-Learning.
    """
    q, target_q, value = heads
    check_each(Unit, "implicit_q_losses", discount=discount, expectile=expectile)
    weights = {"conservatism": conservatism, "sharpness": sharpness}
    check_each(NonNegative, "implicit_q_losses", **weights)

    def of_action(table):
        return jnp.take_along_axis(table, tokens[:, :, None], axis=-1)[..., 0]

    following, there = next_action(jax.lax.stop_gradient(value), mask)
    wanted = reward + discount * jnp.where(there, following, 0)
    best = jax.lax.stop_gradient(jnp.minimum(*map(of_action, target_q)))
    action = sum(masked_mean((wanted - of_action(one)) ** 2, mask) for one in q)
    asymmetry = jnp.where(best < value, 1 - expectile, expectile)
    state = masked_mean(asymmetry * (best - value) ** 2, mask)
    conservative = sum(masked_mean(-of_action(jax.nn.log_softmax(one, axis=-1)), mask) for one in q)
    weight = jnp.exp(sharpness * (best - jax.lax.stop_gradient(value)))
    policy = masked_mean(-weight * logp, mask)
    total = action + state + conservatism * conservative + policy
    return ValueLosses(action, state, conservative, policy, total)


def moved_targets(targets: Tree, parameters: Tree, rate: float = 0.005) -> Tree:
    """Moves target parameters towards the trained ones: θ̂ ← rate θ + (1 - rate) θ̂."""
    check_each(Unit, "moved_targets", rate=rate)
    return jax.tree.map(
        lambda t, p: (rate * p + (1 - rate) * t).astype(t.dtype), targets, parameters
    )


def value_perturbed(
    logits: Float[Array, "... V"],
    target_q: tuple[Float[Array, "... V"], Float[Array, "... V"]],
    value: Float[Array, "..."],
    sharpness: float,
    cap: float = jnp.inf,
) -> Float[Array, "... V"]:
    """Logits of a policy shifted by action values: log π(a) + β min(Q̂(a) - V, cap) + constant.

    Args:
      logits: logits of the policy π.
      target_q: both target heads; Q̂ is the smaller one of each action.
      value: state value (V).
      sharpness: β; 0 is the policy.
      cap: upper bound of Q̂ - V. Without it a large β with poor values breaks the language.
    """
    check_each(NonNegative, "value_perturbed", sharpness=sharpness)
    advantage = jnp.minimum(jnp.minimum(*target_q) - value[..., None], cap)
    return jax.nn.log_softmax(logits, axis=-1) + sharpness * advantage
