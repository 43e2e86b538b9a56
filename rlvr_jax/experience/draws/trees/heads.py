"""Linear heads on a hidden state that predict correctness of a response, or the score of a step."""

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Actor

Head = dict[str, np.ndarray]

BETAS, EPSILON = (0.9, 0.999), 1e-8


def new_head(width: int) -> Head:
    """Zero weights w [D] and bias b, with the moments of Adam."""
    weights = np.zeros(width + 1, np.float32)
    return {"weights": weights, "mean": weights, "square": weights, "updates": np.zeros((), int)}


def fitted(head: Head, gradient: np.ndarray, rate: float) -> Head:
    """The head after one step of Adam.

    Args:
      gradient: [D + 1], with respect to weights and bias.
    """
    number = int(head["updates"]) + 1
    mean = BETAS[0] * head["mean"] + (1 - BETAS[0]) * gradient
    square = BETAS[1] * head["square"] + (1 - BETAS[1]) * gradient**2
    step = mean / (1 - BETAS[0] ** number)
    step = step / (np.sqrt(square / (1 - BETAS[1] ** number)) + EPSILON)
    found = {"weights": head["weights"] - rate * step, "mean": mean, "square": square}
    known = {name: value.astype(np.float32) for name, value in found.items()}
    return {**known, "updates": np.asarray(number)}


def states_behind(batch: Batch, actor: Actor) -> np.ndarray:
    """The policy's last hidden state after each row's last token, [B, D].

    It is 0 where a response fills its budget.
    """
    rollouts = batch.rollouts
    # The hidden state that predicts the next token, which does not exist yet.
    behind = np.arange(rollouts.mask.shape[1])[None] == rollouts.length[:, None]
    longer = batch.with_rollouts(
        mask=behind, length=(rollouts.length + behind.any(axis=1)).astype(rollouts.length.dtype)
    )
    return actor.score(longer, ["mean_hidden"])["mean_hidden"]
