"""What a processor is told about the step: the token just fed and its hidden state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from everyday import everyday
from numpy.testing import assert_allclose, assert_array_equal
from pool_rows import EXACT, MODEL, PARAMS, PROMPT_LENGTH, PROMPTS, ROWS, SLOTS, STOP, draw, started

from rlvr_jax.rollout import Processor, Prompts, Sampling, sample

WIDTH = MODEL.config.width
HEAD = np.random.default_rng(2).normal(0, 1, (MODEL.config.vocab_size, WIDTH))


def _noted(logits, carry, context):
    """Writes down what it is told, at the row's step."""
    tokens, hidden = carry
    row = jnp.arange(len(logits), dtype=jnp.int32)
    tokens = tokens.at[row, context.position].set(context.token)
    return logits, (tokens, hidden.at[row, context.position].set(context.hidden))


NOTED = Processor(
    lambda rows: (jnp.zeros((rows, SLOTS), jnp.int32), jnp.zeros((rows, SLOTS, WIDTH))), _noted
)


@pytest.mark.thorough
def test_a_processor_sees_the_token_that_was_fed_and_its_hidden_state():
    pool = draw(started(), 4, Sampling(processor=NOTED))
    tokens, hidden = pool.carry[0]
    whole = MODEL.hidden(PARAMS, pool.tokens)
    for row, length in enumerate(PROMPT_LENGTH):
        fed = slice(length - 1, length + 3)
        assert_array_equal(tokens[row, :4], pool.tokens[row, fed])
        assert_allclose(hidden[row, :4], whole[row, fed], **EXACT)


def _other_head(logits, carry, context):
    """Adds the logits of another head on the hidden state, and a bias against the last token."""
    own = jnp.arange(logits.shape[1], dtype=jnp.int32)[None] == context.token[:, None]
    return logits + 0.1 * context.hidden @ HEAD.T - jnp.where(own, 1.0, 0.0), carry


@pytest.mark.thorough
@pytest.mark.parametrize("at_once", everyday([1, 5], 5))
def test_rows_in_turn_see_their_own(at_once):
    settings = dict(samples=3, response_tokens=5, stop_tokens=(STOP,))
    settings["sampling"] = Sampling(processor=Processor(lambda rows: None, _other_head))
    prompts = PROMPTS, PROMPT_LENGTH, np.arange(ROWS, dtype=np.int32), np.zeros(ROWS, np.int32)
    together, turns = (
        sample(
            MODEL,
            PARAMS,
            Prompts(*prompts),
            jax.random.key(3),
            at_once=number,
            **settings,
        )
        for number in (None, at_once)
    )
    assert_array_equal(turns.tokens, together.tokens)
    assert_allclose(turns.behaviour_logp, together.behaviour_logp, **EXACT)
    plain = sample(
        MODEL,
        PARAMS,
        Prompts(*prompts),
        jax.random.key(3),
        **{**settings, "sampling": Sampling()},
    )
    assert not np.array_equal(plain.tokens, together.tokens)
