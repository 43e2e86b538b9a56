"""Influence of a step on one problem on the correct responses of the others, of sampled rollouts.

Gradients are those of the last layer, so no backward pass is needed
(`analysis.updates.interference`). Advantages are GRPO's.
"""

import jax
import numpy as np

from rlvr_jax import policy
from rlvr_jax.analysis.updates.interference import Interference, interference, row_gradients
from rlvr_jax.policy import Model, Params
from rlvr_jax.types import Rollouts, is_correct

_PROBLEMS, _RESPONSES = 16, 8
_EPSILON = 1e-6  # of the standard deviation of a group, as GRPO
_MOST_NUMBERS = 2**27  # of all gradients, 1 GiB in float64


def influence(model: Model, params: Params, rollouts: Rollouts) -> Interference:
    """The influence matrix of the first problems with correct and incorrect responses.

    Raises:
      ValueError: fewer than two such problems, or a vocabulary whose gradients fill the memory.
    """
    correct = is_correct(np.asarray(rollouts.outcome))
    members = []
    for number in np.unique(rollouts.group):
        own = rollouts.group == number
        right, wrong = np.flatnonzero(own & correct), np.flatnonzero(own & ~correct)
        if len(right) and len(wrong):
            few = min(len(right), max(_RESPONSES // 2, _RESPONSES - len(wrong)))
            members.append(np.concatenate([right[:few], wrong[: _RESPONSES - few]]))
    members = members[:_PROBLEMS]
    if len(members) < 2:
        raise ValueError(
            "influence: two problems must have correct and incorrect responses, got"
            f" {len(members)}: raise --samples or --prompts"
        )
    rows = np.concatenate(members)
    config = model.config
    size = len(rows) * config.width * config.vocab_size
    if size > _MOST_NUMBERS:
        raise ValueError(
            f"influence: last-layer gradients must be at most {_MOST_NUMBERS} numbers, got {size}"
            f" ({len(rows)} responses, vocabulary of {config.vocab_size})"
        )
    own = jax.tree.map(lambda values: values[rows], rollouts)
    hidden = policy.score(model, params, own, ("hidden",)).records["hidden"]
    gradients = row_gradients(hidden, model.to_logits(params, hidden), own.tokens, own.mask)
    group = np.repeat(np.arange(len(members)), [len(each) for each in members])
    advantage = grpo_advantage(correct[rows].astype(float), group)
    return interference(gradients, advantage, correct[rows], group)


def grpo_advantage(reward: np.ndarray, group: np.ndarray) -> np.ndarray:
    """The reward minus the mean of its group, over the standard deviation (n - 1), [B]."""
    place = np.unique(group, return_inverse=True)[1]
    found = np.zeros(len(reward))
    for number in range(place.max() + 1):
        own = reward[place == number]
        if len(own) > 1:
            found[place == number] = (own - own.mean()) / (own.std(ddof=1) + _EPSILON)
    return found
