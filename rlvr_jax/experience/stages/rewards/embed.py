"""Embeddings of responses."""

from rlvr_jax.experience.parts import Stage
from rlvr_jax.types.parts import part


@part(writes=frozenset({"embedding"}), by_row=True)
def embed(of: str = "start") -> Stage:
    """Records the mean of the last hidden states that predict a response's tokens.

    Existing embeddings do not change.

    Args:
      of: the policy whose states are used, "start" or "current".
    """
    if of not in ("start", "current"):
        raise ValueError(f"embed: of must be 'start' or 'current', got {of!r}")

    def apply(batch, actor, state, turn):
        if "embedding" in batch.rollouts.records:
            return batch, state, {}
        found = actor.score(batch, ["mean_hidden"], of)["mean_hidden"]
        return batch.with_rollouts(embedding=found.astype(batch.rollouts.reward.dtype)), state, {}

    return apply
