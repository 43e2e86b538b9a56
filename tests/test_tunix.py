"""A model of Tunix: its gradient, and its training with a registered objective."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from other_peoples_models import ROUNDING, ROWS, VOCABULARY, WIDTH, some_rollouts

from rlvr_jax import exact_gradient, methods
from rlvr_jax.objectives import Spec
from rlvr_jax.types import Rollouts, TokenStats


def tunix_loss(objective):
    """An objective under the signature that Tunix registers policy losses with."""
    from flax import nnx
    from tunix.rl import common

    def policy_loss(model, train_example, algo_config, pad_id, eos_id, **kwargs):
        del kwargs
        graph, weights = nnx.split(model)
        logp = common.compute_per_token_logps(
            graph,
            weights,
            prompt_tokens=train_example.prompt_ids,
            completion_tokens=train_example.completion_ids,
            pad_id=pad_id,
            eos_id=eos_id,
            stop_gradient=False,
            temperature=algo_config.temperature,
        )
        mask = train_example.completion_mask.astype(bool)
        rows = mask.shape[0]
        batch = Rollouts.of_responses(
            train_example.completion_ids,
            mask,
            jnp.zeros((rows,)),
            jnp.zeros((rows,), jnp.int32),
            old_logp=train_example.old_per_token_logps,
            # Tunix has estimated the advantages; the objective then does not.
            advantage=jnp.broadcast_to(train_example.advantages[:, None], mask.shape),
        )
        state = objective.init(Spec(1, *mask.shape))
        loss, (_, metrics) = objective.loss(TokenStats(logp=logp), batch, state, jax.random.key(0))
        return loss, metrics

    return policy_loss


def small_tunix_model(dtype):
    """A model with the arguments that Tunix's losses and trainers call one with."""
    from flax import nnx

    class Small(nnx.Module):
        def __init__(self):
            self.embed = nnx.Embed(VOCABULARY, 8, param_dtype=dtype, rngs=nnx.Rngs(0))
            self.head = nnx.Linear(8, VOCABULARY, param_dtype=dtype, rngs=nnx.Rngs(1))

        def __call__(self, tokens, positions, cache, attention_mask, **kwargs):
            return self.head(jnp.tanh(self.embed(tokens))), cache

    return Small()


def qwen2_of_tunix(dtype):
    from flax import nnx
    from tunix.models.qwen2.model import ModelConfig, Qwen2

    config = ModelConfig(
        num_layers=2,
        vocab_size=VOCABULARY,
        embed_dim=16,
        hidden_dim=24,
        num_heads=2,
        head_dim=8,
        num_kv_heads=1,
        rope_theta=10_000,
        norm_eps=1e-6,
        dtype=dtype,
        param_dtype=dtype,
    )
    return Qwen2(config, rngs=nnx.Rngs(0))


# `pip install -e .[test,tunix]` in an environment of its own: Tunix needs older packages.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # warnings of Tunix's own imports
@pytest.mark.parametrize(
    ("made", "tolerance"),
    # Tunix's norms and rotations are float32 in any dtype.
    [(small_tunix_model, ROUNDING), (qwen2_of_tunix, 1e-6)],
)
def test_the_gradient_of_a_tunix_model_is_that_of_the_whole_batch(made, tolerance):
    pytest.importorskip("tunix", reason="requires older packages: CONTRIBUTING.md")
    from flax import nnx
    from tunix.rl import common

    graph, params = nnx.split(made(jnp.float64))

    def score(params, rows):
        before = jnp.full((rows.tokens.shape[0], 1), 2)  # a prompt of one token
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            _, logits = common.compute_per_token_logps(
                graph, params, before, rows.tokens, 0, 1, stop_gradient=False, return_logits=True
            )
        logs = jax.nn.log_softmax(logits.astype(jnp.float64))  # its own log-probs are float32
        logp = jnp.take_along_axis(logs, rows.tokens[..., None], axis=-1)[..., 0]
        return TokenStats(logp=logp, entropy=-jnp.sum(jnp.exp(logs) * logs, axis=-1))

    own = methods.recipe("clip_cov", fraction=0.2).objective
    rollouts = some_rollouts(score, params)
    # Ids 0 and 1 are Tunix's padding and its end.
    rollouts = rollouts.replace(tokens=jnp.maximum(rollouts.tokens, 2))
    state, key = own.init(Spec(4, ROWS, WIDTH)), jax.random.key(5)

    def loss(params):
        return own.loss(score(params, rollouts), rollouts, state, key)[0]

    wanted = jax.tree.leaves(jax.grad(loss)(params))
    largest = max(float(jnp.max(jnp.abs(x))) for x in wanted)
    assert largest > 0
    for pieces in (1, 2, 4, 8, 16):
        found = exact_gradient(
            score, own, params, rollouts, state, key, fresh=False, micro_batches=pieces
        )
        for one, other in zip(jax.tree.leaves(found.grads), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * largest)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # warnings of Tunix's own imports
def test_tunix_trains_with_a_registered_objective():
    pytest.importorskip("tunix", reason="requires older packages: CONTRIBUTING.md")
    from flax import nnx
    from tunix.rl import algo_core, common, function_registry as registry

    ours = methods.recipe("grpo", kl_coefficient=0.0).objective
    registry.register_policy_loss_fn("rlvr_jax_grpo")(tunix_loss(ours))
    random = np.random.default_rng(0)
    example = common.TrainExample(
        prompt_ids=jnp.asarray(random.integers(2, VOCABULARY, (ROWS, 2))),
        prompt_mask=jnp.ones((ROWS, 2), bool),
        completion_ids=jnp.asarray(random.integers(2, VOCABULARY, (ROWS, WIDTH))),
        completion_mask=jnp.asarray(np.arange(WIDTH) < random.integers(1, WIDTH + 1, (ROWS, 1))),
        advantages=jnp.asarray(random.normal(size=ROWS), jnp.float32),
        ref_per_token_logps=None,
        old_per_token_logps=jnp.asarray(random.normal(-2, 0.3, (ROWS, WIDTH)), jnp.float32),
    )

    @dataclasses.dataclass
    class Settings:
        beta: float = 0.0
        epsilon: float = 0.2
        epsilon_high: float = 0.2
        loss_algo: str = "grpo"
        loss_agg_mode: str = "sequence-mean-token-mean"
        temperature: float = 1.0

    with jax.numpy_dtype_promotion("standard"):
        results = []
        for loss in (registry.get_policy_loss_fn("rlvr_jax_grpo"), algo_core.grpo_loss_fn):
            call = partial(loss, train_example=example, algo_config=Settings(), pad_id=0, eos_id=1)
            (value, _), grads = nnx.value_and_grad(call, has_aux=True)(
                small_tunix_model(jnp.float32)
            )
            results.append((value, jax.tree.leaves(grads)))
    (ours_value, ours_grads), (theirs_value, theirs_grads) = results
    # float32, some forty tokens
    np.testing.assert_allclose(ours_value, theirs_value, rtol=1e-5)
    for found, wanted in zip(ours_grads, theirs_grads, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(wanted).max())
