"""RL^V: trains the policy to verify its own rollouts, with the labels of RL."""

import functools

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
import pytest
from training_runs import trained, values

from rlvr_jax.methods import recipe


@pytest.mark.slow
def test_pieces_of_an_update_change_nothing(model, tmp_path):
    given = ("question=+ =", "yes=8", "no=7")
    one, four = (trained(model, tmp_path / str(n), "rl_v", *given, micro_batches=n) for n in (1, 4))
    for name in ("verdict_loss", "gradient_norm"):
        np.testing.assert_allclose(values(one, name), values(four, name), rtol=1e-4)
    # Two tokens of fourteen, before anything is learned.
    assert values(one, "verdict_loss")[0] == pytest.approx(np.log(14), abs=0.5)


def test_a_verdict_is_correct_if_the_likelier_word_agrees_with_the_outcome():
    data, batch = golden.inputs("a"), golden.rollouts("a")
    after = golden.token_after(data["mask"])
    batch = batch.replace(truncated=jnp.asarray(after >= data["mask"].shape[1]))
    stats_of = functools.partial(golden.token_stats, tokens=batch.tokens, verdict=([0, 1], after))
    found = golden.evaluate(recipe("rl_v"), "a", stats_of=stats_of, batch=batch).metrics
    rows = np.flatnonzero(~np.asarray(batch.truncated) & np.asarray(batch.mask).any(axis=1))
    logits = data["logits"][rows, after[rows]]
    wanted = np.mean((logits[:, 0] > logits[:, 1]) == (np.asarray(batch.outcome)[rows] > 0.5))
    assert 0 < wanted < 1
    np.testing.assert_allclose(found["correct_verdicts"], wanted, rtol=1e-6)
