"""Implicit PRM: fits a log-ratio to outcomes; its terms are process rewards.

"Free Process Rewards without Process Labels", https://github.com/PRIME-RL/ImplicitPRM

    r(y) = β Σ_t log π(y_t) / π_ref(y_t), fitted to the outcomes of responses
    q_t  = β Σ_{i≤t} log-ratio_i; the reward of a step is the rise of q over it
    loss = mean over rollouts of the cross entropy of σ(r) and the outcome

The policy of this recipe is the reward model, and the rollouts are its data. β is `scale`. Other
losses are `logistic_pairs` (DPO, which fits only differences), `contrastive_pairs` (NCA) and
`prospect` (KTO). The zero point of KTO is here the mean log-ratio of the batch. The authors use
mismatched prompts and responses.

Left out: the paired variant of KTO.
Reports: MATH, best of n, Llama and Mistral: above a PRM like Math-Shepherd with less than 1/38 of
its data. The cross entropy requires only one response per prompt.
Traps: The recipe trains a reward model, not a policy that answers. r grows with the length, so the
cross entropy saturates on long responses. Short responses need a larger β. Use a single step with
many prompts and minibatches, so that its data are samples of one policy. A change of the reference
shifts all token rewards.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives import ImplicitLoss, ImplicitRewards, first_of_pairs, implicit_reward_loss
from rlvr_jax.objectives.compositions import objective_of_terms
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe
from rlvr_jax.types.hyperparameters import Positive


def cross_entropy(given: ImplicitRewards) -> Float[Array, ""]:
    """Mean over the rollouts with tokens of the cross entropy of σ(r) and correctness."""
    sign = jnp.where(given.correct, 1, -1).astype(given.reward.dtype)
    return -masked_mean(jax.nn.log_sigmoid(sign * given.reward), given.written)


def contrastive_pairs(given: ImplicitRewards) -> Float[Array, ""]:
    """Mean over pairs of -log σ(r_w) - ½ log σ(-r_w) - ½ log σ(-r_l): fits level and difference.

    Source: NCA, https://github.com/huggingface/trl ("nca_pair").
    """
    better, worse = given.reward, given.reward[given.partner]
    pushed_up = -jax.nn.log_sigmoid(better)
    pushed_down = -(jax.nn.log_sigmoid(-better) + jax.nn.log_sigmoid(-worse)) / 2
    return masked_mean(pushed_up + pushed_down, first_of_pairs(given))


def prospect(given: ImplicitRewards) -> Float[Array, ""]:
    """Mean over the rollouts with tokens of 1 - σ(±(r - βK)), + if correct; each term is bounded.

    K = max(0, mean log-ratio) of the batch, without gradient.

    Source: Ethayarajh et al. 2024, https://arxiv.org/abs/2402.01306.
    """
    sign = jnp.where(given.correct, 1, -1).astype(given.reward.dtype)
    zero_point = jnp.maximum(masked_mean(jax.lax.stop_gradient(given.reward), given.written), 0)
    distance = given.reward - zero_point
    return masked_mean(1 - jax.nn.sigmoid(sign * distance), given.written)


def implicit_prm(scale: Positive = 0.05, loss: ImplicitLoss = cross_entropy) -> Recipe:
    """Fits a reward model to outcomes through its log-ratio to a reference.

    Args:
      scale: factor of the log-ratio (β).
      loss: `cross_entropy`, `logistic_pairs`, `contrastive_pairs` or `prospect`.
    """
    return Recipe(objective=objective_of_terms([implicit_reward_loss(scale, loss)]))


METHOD = Method(implicit_prm, changes="surrogate", shown=LOSS_ON_BRACKETS)
