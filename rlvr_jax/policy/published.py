"""Shapes of published models, for programs that are compiled before any weights are there."""

from collections.abc import Mapping

from rlvr_jax.policy.config import ModelConfig


def _qwen(width, num_layers, num_heads, num_kv_heads, mlp_width, head_size, **more) -> ModelConfig:
    """A dense Qwen with the fields that all of them share."""
    return ModelConfig(
        width=width,
        num_layers=num_layers,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_size=head_size,
        mlp_width=mlp_width,
        rope_theta=1_000_000.0,
        **more,
    )


def _qwen2(*sizes, vocab_size, tied, max_positions=131_072, **more) -> ModelConfig:
    own = dict(vocab_size=vocab_size, tied=tied, max_positions=max_positions, qkv_bias=True)
    return _qwen(*sizes, **own, **more)


PUBLISHED: Mapping[str, ModelConfig] = {
    "qwen2.5-0.5b": _qwen2(
        896, 24, 14, 2, 4864, 64, vocab_size=151_936, tied=True, max_positions=32_768
    ),
    "qwen2.5-1.5b": _qwen2(1536, 28, 12, 2, 8960, 128, vocab_size=151_936, tied=True),
    "qwen2.5-7b": _qwen2(3584, 28, 28, 4, 18_944, 128, vocab_size=152_064, tied=False),
    "qwen2.5-32b": _qwen2(
        5120, 64, 40, 8, 27_648, 128, vocab_size=152_064, tied=False, norm_epsilon=1e-5
    ),
    "qwen3-8b": _qwen(
        4096,
        36,
        32,
        8,
        12_288,
        128,
        vocab_size=151_936,
        tied=False,
        max_positions=40_960,
        qk_norm=True,
    ),
    "qwen3-30b-a3b": _qwen(
        2048,
        48,
        32,
        4,
        768,
        128,
        vocab_size=151_936,
        tied=False,
        max_positions=40_960,
        qk_norm=True,
        num_experts=128,
        experts_per_token=8,
        normalized_experts=True,
    ),
}
"""The base models by name, as their `config.json` on https://huggingface.co/Qwen says."""
