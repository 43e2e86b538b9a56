"""Distance of sampler and scorer in a tiny mixture of experts, with and without router replay.

    python -m experiments.router_gap

The model has random weights and the shape of Qwen3-MoE. Sampler and scorer differ as in a real run:
by the number format of activations, or by the number format of weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from rlvr_jax.keys import plain_key
from rlvr_jax.policy import Model, ModelConfig, Params, score
from rlvr_jax.policy.scoring import without_routes
from rlvr_jax.rollout import Prompts, Sampling, sample
from rlvr_jax.runs import described, guarded
from rlvr_jax.types import Rollouts, replace

_VOCABULARY, _WIDTH = 512, 16


@dataclass(frozen=True)
class Options:
    """The shape of the model, and the size of the batch."""

    layers: int = 6
    """Layers of the model."""
    experts: int = 16
    """Experts of a layer, of which each token is read by `chosen`."""
    chosen: int = 2
    """Experts of a token."""
    prompts: int = 16
    """Prompts."""
    samples: int = 4
    """Responses to each prompt."""
    tokens: int = 32
    """Tokens of a response."""


def main(arguments: Sequence[str]) -> None:
    """Prints a table with a row for each pair of sampler and scorer."""
    options = tyro.cli(Options, args=list(arguments), description=described(__doc__))
    wide = Model(_shape(options))
    narrow = replace(wide, config=replace(wide.config, compute_dtype="bfloat16"))
    random = np.random.default_rng(0)
    shapes = jax.eval_shape(wide.init, jax.random.key(0))
    params = jax.tree.map(lambda x: jnp.asarray(random.normal(0, 0.3, x.shape), x.dtype), shapes)
    rounded = jax.tree.map(lambda x: x.astype(jnp.bfloat16).astype(x.dtype), params)
    pairs = {
        "bfloat16, bfloat16": (narrow, params, narrow),
        "bfloat16, float32": (narrow, params, wide),
        "float32 with weights in bfloat16, float32": (wide, rounded, wide),
        "float32, float32": (wide, params, wide),
    }
    print("| sampler, scorer | other experts | gap of the router's choice | gap with replay |")
    print("|---|---|---|---|")
    for name, (sampler, own, scorer) in pairs.items():
        rollouts = _sampled(options, sampler, own)
        free = _gaps(scorer, params, without_routes(rollouts), options.samples)
        replayed = _gaps(scorer, params, rollouts, options.samples)
        moved = _moved(scorer, params, rollouts)
        print(f"| {name} | {moved:.1%} | {_numbers(free)} | {_numbers(replayed)} |")


def _shape(options: Options) -> ModelConfig:
    return ModelConfig(
        vocab_size=_VOCABULARY,
        width=64,
        num_layers=options.layers,
        num_heads=4,
        num_kv_heads=2,
        head_size=16,
        mlp_width=32,
        qk_norm=True,
        num_experts=options.experts,
        experts_per_token=options.chosen,
        normalized_experts=True,
    )


def _sampled(options: Options, model: Model, params: Params) -> Rollouts:
    count = options.prompts
    tokens = np.random.default_rng(1).integers(0, _VOCABULARY, (count, _WIDTH))
    numbers = np.arange(count, dtype=np.int32)
    length = np.full(count, _WIDTH, np.int32)
    prompts = Prompts(tokens.astype(np.int32), length, numbers, np.zeros_like(numbers))
    return sample(
        model,
        params,
        prompts,
        plain_key(0),
        samples=options.samples,
        response_tokens=options.tokens,
        sampling=Sampling(),
        stop_tokens=(),
        record_routes=True,
    )


def _gaps(model: Model, params: Params, rollouts: Rollouts, samples: int) -> np.ndarray:
    """|log p of the sampler - log p of the scorer| of all sampled tokens."""
    scored = jax.jit(lambda params, rows: score(model, params, rows, shared=samples).logp)
    apart = np.abs(np.asarray(scored(params, rollouts) - rollouts.behaviour_logp))
    return apart[np.asarray(rollouts.mask)]


def _moved(model: Model, params: Params, rollouts: Rollouts) -> float:
    """Fraction of tokens with other experts in a layer, if the scorer's router chooses."""
    tokens = jnp.concatenate([rollouts.prompt_tokens, rollouts.tokens], axis=1)
    places = jnp.broadcast_to(jnp.arange(tokens.shape[1], dtype=jnp.int32), tokens.shape)

    @jax.jit
    def chosen(params):
        caches = model.empty_caches(*tokens.shape)
        return model.extend_routed(params, caches, tokens, places)[2]

    own = np.sort(np.asarray(chosen(params))[:, _WIDTH:-1], axis=-1)
    recorded = np.sort(np.asarray(rollouts.records["routes"])[:, :-1], axis=-1)
    return float((own != recorded).any(axis=(2, 3)).mean())


def _numbers(gaps: np.ndarray) -> str:
    return f"{gaps.mean():.1e}, {np.quantile(gaps, 0.99):.1e}, {gaps.max():.1e}"


if __name__ == "__main__":
    guarded(main)
