"""What a response is like, as numbers."""

from rlvr_jax.experience.parts import Stage
from rlvr_jax.types.parts import part


@part(writes=frozenset({"embedding"}), by_row=True)
def embed(of: str = "start") -> Stage:
    """Gives every response an embedding: the mean of the last hidden states of its tokens.

    A state is the one that a token is predicted from. Rows that bring an embedding keep it.

    Args:
      of: whose states, "start" or "current".
    Writes: embedding.
    Raises:
      ValueError: another policy.
    """
    if of not in ("start", "current"):
        raise ValueError(f"embed: of must be 'start' or 'current', got {of!r}")

    def apply(batch, actor, state, turn):
        if batch.rollouts.embedding is not None:
            return batch, state, {}
        found = actor.score(batch, ["mean_hidden"], of)["mean_hidden"]
        return batch.with_rollouts(embedding=found.astype(batch.rollouts.reward.dtype)), state, {}

    return apply
