"""RLMEC's vectors: the teacher is the rewriting model, and its favourites are the rewrite."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import on_mask, only

from rlvr_jax.methods import recipe
from rlvr_jax.methods.credit.rlmec import edit_weight, edited_places, imitated_tokens
from rlvr_jax.objectives import imitate

LEFT_OUT = {"edit_distance": "an intermediate of the edited places, which are compared"}


def outputs(case, hyper):
    batch, data = golden.rollouts(case), golden.inputs(case)
    nobody = jnp.zeros(len(batch.mask), bool)
    batch = batch.replace(edits=jnp.zeros(batch.mask.shape, jnp.int32), supervised=nobody)
    method = recipe("rlmec", clip=hyper["clip"], high=hyper["hi"], low=hyper["lo"])
    done = golden.evaluate(method, case, batch=batch)
    mask, correct = np.asarray(batch.mask), np.asarray(batch.outcome) > 0.5
    tokens, weights = rewritten(data, mask, correct, hyper)
    # Both texts are scored by the same logits here.
    copy = batch.replace(
        tokens=jnp.asarray(tokens, jnp.int32),
        mask=jnp.zeros_like(batch.mask),
        supervised=jnp.ones(len(mask), bool),
        edits=jnp.asarray((weights > 0).astype(np.int32) + (weights == hyper["edited"])),
    )
    imitation = imitate(hyper["lam"], imitated_tokens, ("edits", "supervised"), edit_weight)
    learned = golden.evaluate(only(imitation), case, batch=copy)
    logp = golden.stats(case).logp
    coefficient = np.asarray(-done.token_loss / logp)
    return {
        **done.outputs("_rl"),
        "token_reward": on_mask(done.signals.advantage, batch),
        "coefficient": np.where(np.asarray(done.signals.mask), coefficient, 0),
        "rewrite": np.where(mask, tokens, 0),
        "edit_weights": weights,
        "loss_imitation": learned.loss / hyper["lam"],
        "loss": done.loss + learned.loss,
        "dlogits": done.dlogits + learned.dlogits,
    }


def rewritten(data, mask, correct, hyper):
    """The rewrites, and weights of their tokens."""
    teacher = data["teacher_logits"]
    p = np.exp(teacher) / np.exp(teacher).sum(axis=-1, keepdims=True)
    changed = (p.max(axis=-1) > 0.5) & ~correct[:, None] & mask
    tokens = np.where(changed, p.argmax(axis=-1), data["tokens"])
    weights = np.zeros(mask.shape)
    for row, on in enumerate(mask):
        old, new = data["tokens"][row][on].tolist(), tokens[row][on].tolist()
        own = np.full(len(new), hyper["kept"])
        own[edited_places(old, new)] = hyper["edited"]
        weights[row, on] = own
    return tokens, weights
