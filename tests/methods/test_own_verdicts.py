"""Verdicts that are the next token of the policy: gradient, records, what is refused."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from adapters.common import only
from golden_vectors import array

from rlvr_jax import policy
from rlvr_jax.experience import experience, request_verdict
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.exploration.dsdr import find_formulas
from rlvr_jax.methods.judges.laser import self_reward_loss
from rlvr_jax.methods.judges.rl_v import verdict_loss
from rlvr_jax.methods.judges.rlbff import reward_odds
from rlvr_jax.methods.rewards.ares import mark_triggers
from rlvr_jax.objectives.statistics.groups import finished_rows
from rlvr_jax.training.statistics import statistics
from rlvr_jax.types import Rollouts, replace

CLOSE = 2e-5
"""Of float32 log-probs by two passes of different widths."""


def rows(asked):
    """Three responses of different lengths, and what is asked behind them."""
    random = np.random.default_rng(3)
    tokens = random.integers(5, 13, (3, 5)).astype(np.int32)
    length = np.array([5, 2, 3], np.int32)
    return Rollouts.of_responses(
        tokens,
        np.arange(5)[None] < length[:, None],
        np.zeros(3),
        np.arange(3),
        prompt_tokens=random.integers(5, 13, (3, 4)).astype(np.int32),
        prompt_length=np.array([4, 3, 2], np.int32),
        temperature=np.full((3, 5), 0.5, np.float32),
        asked_tokens=np.tile(np.array(asked, np.int32), (3, 1)).reshape(3, -1),
        asked_length=np.full(3, len(asked), np.int32),
        verdict_ids=np.tile(np.array([6, 9], np.int32), (3, 1)),
    )


@pytest.mark.thorough
@pytest.mark.parametrize("asked", [[], pytest.param([3, 4], marks=pytest.mark.slow)])
def test_a_verdict_is_the_next_token_behind_what_is_asked(model, asked):
    own, params = policy.load(model)
    batch = rows(asked)
    measure = jax.jit(lambda *given: statistics(own, *given, {"logp", "verdict_logp"}))
    found = measure(params, batch).records["verdict_logp"]
    texts = [
        [
            *batch.prompt_tokens[row, : batch.prompt_length[row]].tolist(),
            *batch.tokens[row, : batch.length[row]].tolist(),
            *asked,
        ]
        for row in range(3)
    ]
    # A row for each text and each verdict, all in one pass.
    alone = Rollouts.of_responses(
        np.tile(np.array([[6], [9]], np.int32), (3, 1)),
        np.ones((6, 1), bool),
        np.zeros(6),
        np.arange(6),
        prompt_tokens=np.repeat(np.int32([text + [0] * (12 - len(text)) for text in texts]), 2, 0),
        prompt_length=np.repeat(np.int32([len(text) for text in texts]), 2),
    )
    wanted = jax.jit(policy.score, static_argnums=0)(own, params, alone).logp.reshape(3, 2)
    np.testing.assert_allclose(found, wanted, atol=CLOSE)


@pytest.mark.slow
def test_its_gradient_reaches_all_that_stands_before_it(model):
    own, params = policy.load(model)

    def first(params, tokens):
        batch = replace(rows([3, 4]), tokens=tokens)
        return statistics(own, params, batch, {"logp", "verdict_logp"}).records["verdict_logp"][
            1, 0
        ]

    batch = rows([3, 4])
    grads = jax.grad(first)(params, batch.tokens)
    assert all(bool(jnp.any(leaf != 0)) for leaf in jax.tree.leaves(grads)[:3])
    # What stands behind the response's end is nobody's.
    changed = batch.tokens.at[1, 3].set(12)
    assert first(params, changed) == first(params, batch.tokens)
    assert first(params, batch.tokens.at[1, 1].set(12)) != first(params, batch.tokens)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: request_verdict("yes"), "answers must be texts"),
        (lambda: request_verdict([]), "answers must be texts"),
        (lambda: reward_odds("?", ["a"]), "answers must be yes and no"),
        (lambda: mark_triggers([]), "words must be at least one"),
        (lambda: find_formulas(most=0), "most must be"),
    ],
)
def test_what_cannot_be_asked_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize("answers", [["yes"], ["a", "a"]])
def test_answers_that_are_no_tokens_are_refused_when_a_run_draws(answers):
    with pytest.raises(ValueError, match="answers must be"):
        numpy_actor.walk(experience(stages=[request_verdict(answers)]), steps=1)


def test_records_of_what_is_asked_are_as_wide_as_the_question():
    batch = numpy_actor.walk(experience(stages=[request_verdict(["a"])]), steps=1)[0][0].batch
    assert batch.rollouts.records["asked_tokens"].shape == (16, 0)
    assert batch.rollouts.records["verdict_ids"].shape == (16, 1)


def test_cut_and_empty_rows_have_no_verdict():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    mask = np.asarray(batch.mask).copy()
    mask[1] = False
    truncated = np.zeros(mask.shape[0], bool)
    truncated[2] = True
    batch = batch.replace(mask=array(mask, bool), truncated=array(truncated, bool))
    assert not np.asarray(finished_rows(batch))[[1, 2]].any()
    for part in (self_reward_loss(1.0, 0.1, -8.0), verdict_loss(1.0)):
        dstats = golden.step(only(part).objective, stats, batch).dstats
        slope = np.asarray(dstats.records["verdict_logp"])
        assert not slope[[1, 2]].any() and slope.any()
