"""The shape of a decoder, and config.json in both directions."""

import json

import pytest
from transformers import AutoConfig

from rlvr_jax.policy import SIZES, LoraConfig, ModelConfig, RopeScaling, named_config
from rlvr_jax.policy.hugging_face import from_hugging_face, to_hugging_face

SIZE = dict(
    vocab_size=7,
    width=24,
    num_layers=2,
    num_heads=4,
    num_kv_heads=1,
    head_size=8,
    mlp_width=40,
    rope_theta=5e5,
    norm_epsilon=1e-5,
    max_positions=77,
)
FAMILIES = {
    "qwen2": dict(qkv_bias=True),
    "qwen3": dict(qk_norm=True, rope_scaling=RopeScaling(4.0)),
    "llama": dict(rope_scaling=RopeScaling(8.0, 64, 1.5, 3.0)),
    "gemma3_text": dict(
        qk_norm=True,
        activation="gelu_tanh",
        query_pre_attn_scalar=9,
        sliding_window=5,
        sliding_layers=(1,),
        local_rope_theta=2e4,
        rope_scaling=RopeScaling(8.0),
        output_norms=True,
        unit_offset=True,
        scaled_embedding=True,
        logit_softcap=30.0,
    ),
    "qwen3_moe": dict(qk_norm=True, num_experts=4, experts_per_token=2, normalized_experts=True),
}

# The least that config.json of any family holds.
LEAST = dict(
    vocab_size=7,
    hidden_size=24,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=40,
)
EXPERTS = dict(moe_intermediate_size=8, num_experts=4, num_experts_per_tok=2)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_config_survives_the_way_to_hugging_face_and_back(family, tied):
    config = ModelConfig(**SIZE, **FAMILIES[family], tied=tied)
    written = json.loads(json.dumps(to_hugging_face(config)))
    assert written["model_type"] == family
    assert from_hugging_face(written) == config


@pytest.mark.thorough
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_transformers_reads_the_config_and_what_it_writes_is_read_the_same(family, tied, tmp_path):
    config = ModelConfig(**SIZE, **FAMILIES[family], tied=tied)
    (tmp_path / "config.json").write_text(json.dumps(to_hugging_face(config)))
    theirs = AutoConfig.from_pretrained(str(tmp_path))
    assert theirs.model_type == family
    assert theirs.head_dim == config.head_size
    rope = theirs.rope_parameters
    assert rope.get("full_attention", rope)["rope_theta"] == config.rope_theta
    theirs.save_pretrained(str(tmp_path))
    assert from_hugging_face(json.loads((tmp_path / "config.json").read_text())) == config


@pytest.mark.parametrize("family", FAMILIES)
def test_a_key_that_is_absent_means_what_transformers_takes_it_for(family):
    least = {**LEAST, "num_hidden_layers": 7, **(EXPERTS if family == "qwen3_moe" else {})}
    complete = AutoConfig.for_model(family, **least).to_dict()
    seen = from_hugging_face({"model_type": family, **least, "max_position_embeddings": 5})
    wanted = from_hugging_face({**complete, "max_position_embeddings": 5})
    assert seen == wanted


@pytest.mark.parametrize(
    "without", [{"max_window_layers": 2}, {"layer_types": ["full_attention"] * 2}]
)
def test_windows_that_no_layer_has_are_no_windows(without):
    config = {"model_type": "qwen2", **LEAST, "use_sliding_window": True, "sliding_window": 4}
    plain = from_hugging_face({"model_type": "qwen2", **LEAST})
    assert from_hugging_face({**config, **without}) == plain


def test_the_rotary_base_of_older_configs_is_read():
    older = {"model_type": "llama", **LEAST, "rope_theta": 5e5, "rope_scaling": None}
    assert from_hugging_face(older).rope_theta == 5e5


@pytest.mark.parametrize(
    "change, message",
    [
        ({"model_type": "gpt2"}, "model_type must be one of qwen2, qwen3, .* got 'gpt2'"),
        ({"model_type": None}, "model_type must be one of qwen2, qwen3, .* got None"),
        ({"hidden_size": None}, "must hold hidden_size"),
        ({"hidden_act": "gelu"}, "hidden_act must be 'silu', got 'gelu'"),
        ({"rope_scaling": {"rope_type": "llama3"}}, "llama3 rope scaling must hold factor, orig"),
        ({"rope_scaling": {"type": "linear"}}, "linear rope scaling must hold factor, found none"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "one of default, linear, llama3, got 'yarn'"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor must be 1.0"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor must be 1.0, got 0.5"),
        ({"use_sliding_window": True}, "use_sliding_window must be False, got True"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types must be 2 of full"),
        ({"layer_types": ["full_attention"]}, "layer_types must be 2 of full_attention"),
        ({"quantization_config": {"bits": 4}}, "quantization_config must be None, got .*4"),
        ({"mlp_bias": True}, "mlp_bias must be False, got True"),
        ({"attention_bias": True}, "attention_bias must be False, got True"),
        ({"num_key_value_heads": 3}, "num_kv_heads must divide num_heads = 4, got 3"),
        ({"vocab_size": "64"}, "vocab_size must be a positive integer, got '64'"),
        ({"hidden_size": 32.0}, "hidden_size must be a positive integer, got 32.0"),
        ({"num_attention_heads": 0}, "num_attention_heads must be a positive integer, got 0"),
        ({"head_dim": "8"}, "head_size must be an integer, got '8'"),
        ({"max_position_embeddings": None}, "max_positions must be an integer, got None"),
        ({"rms_norm_eps": "small"}, "rms_norm_eps must be a number, got 'small'"),
        ({"rope_theta": None}, "rope_theta must be a number, got None"),
        ({"rope_scaling": "linear"}, "rope_scaling must be an object, got 'linear'"),
        ({"rope_scaling": {"type": "linear", "factor": "8"}}, "factor must be a number, got '8'"),
        ({"layer_types": 2}, "layer_types must be 2 of full_attention, got 2"),
    ],
)
def test_a_config_that_is_not_built_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        from_hugging_face({"model_type": "llama", **LEAST, **change})


@pytest.mark.parametrize(
    "change, message",
    [
        ({"hidden_activation": "gelu"}, "hidden_activation must be 'gelu_pytorch_tanh', got 'gelu"),
        ({"attn_logit_softcapping": 50.0}, "attn_logit_softcapping must be None, got 50.0"),
        ({"use_bidirectional_attention": True}, "use_bidirectional_attention must be False"),
        ({"layer_types": ["full_attention", "chunked"]}, "layer_types must be 2 of full_attention"),
        (
            {"rope_parameters": {"sliding_attention": {"rope_type": "linear", "factor": 2.0}}},
            "rope type of sliding_attention must be 'default', got 'linear'",
        ),
        ({"rope_parameters": {"full_attention": 1}}, "full_attention must be an object, got 1"),
        ({"sliding_window_pattern": 0}, "sliding_window_pattern must be a positive integer, got 0"),
        ({"model_type": "gemma3"}, "model_type must be one of .* got 'gemma3'"),
    ],
)
def test_a_gemma_that_is_not_built_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        from_hugging_face({"model_type": "gemma3_text", **LEAST, **change})


@pytest.mark.parametrize(
    "change, message",
    [
        ({"num_experts": None}, "config must hold num_experts, found none"),
        ({"moe_intermediate_size": None}, "config must hold moe_intermediate_size"),
        ({"mlp_only_layers": [0]}, r"mlp_only_layers must be \[\], got \[0\]"),
        ({"decoder_sparse_step": 2}, "decoder_sparse_step must be 1, got 2"),
        ({"num_experts_per_tok": 5}, "experts_per_token must be 1 .. num_experts = 4, got 5"),
    ],
)
def test_a_mixture_that_is_not_built_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        from_hugging_face({"model_type": "qwen3_moe", **LEAST, **EXPERTS, **change})


def test_both_names_of_the_number_of_experts_are_read():
    newer = {**EXPERTS, "num_local_experts": 4}
    del newer["num_experts"]
    seen, wanted = (
        from_hugging_face({"model_type": "qwen3_moe", **LEAST, **names})
        for names in (newer, EXPERTS)
    )
    assert seen == wanted


def test_older_and_newer_files_of_gemma_say_the_same():
    older = {"rope_theta": 1e6, "rope_local_base_freq": 1e4, "sliding_window_pattern": 2}
    older["rope_scaling"] = {"rope_type": "linear", "factor": 8.0}
    newer = {
        "layer_types": ["sliding_attention", "full_attention"],
        "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
    }
    seen, wanted = (
        from_hugging_face({"model_type": "gemma3_text", **LEAST, **keys}) for keys in (older, newer)
    )
    assert seen == wanted
    assert (seen.sliding_layers, seen.rope_scaling) == ((0,), RopeScaling(8.0))


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(qkv_bias=True, qk_norm=True), "qk_norm must be False .* family qwen2, got True"),
        (dict(logit_softcap=30.0), "logit_softcap must be None .* family llama, got 30.0"),
        (dict(output_norms=True), "qk_norm must be True .* family gemma3_text, got False"),
    ],
)
def test_a_mixture_of_families_is_not_written(change, message):
    with pytest.raises(ValueError, match=f"to_hugging_face: {message}"):
        to_hugging_face(ModelConfig(**SIZE, **change))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"width": 0}, "width must be positive, got 0"),
        ({"width": 24.0}, "width must be an integer, got 24.0"),
        ({"vocab_size": "64"}, "vocab_size must be an integer, got '64'"),
        ({"norm_epsilon": None}, "norm_epsilon must be a number, got None"),
        ({"norm_epsilon": 0.0}, "norm_epsilon must be positive, got 0.0"),
        ({"rope_theta": -1.0}, "rope_theta must be positive, got -1.0"),
        ({"num_kv_heads": 3}, "num_kv_heads must divide num_heads = 4, got 3"),
        ({"head_size": 7}, "head_size must be even, got 7"),
        ({"compute_dtype": "float16"}, "compute_dtype must be .* got 'float16'"),
        ({"activation": "relu"}, "activation must be silu or gelu_tanh, got 'relu'"),
        ({"remat": "all"}, "remat must be none, layers or attention, got 'all'"),
        (
            {"sliding_window": 4},
            "sliding_window, sliding_layers and local_rope_theta must be given",
        ),
        ({"sliding_layers": (0,)}, "sliding_window, sliding_layers and local_rope_theta must be"),
        (
            {"sliding_layers": (2,), "sliding_window": 4, "local_rope_theta": 1e4},
            r"sliding_layers must lie in 0 .. 1, got \(2,\)",
        ),
        ({"sliding_window": 0}, "sliding_window must be positive, got 0"),
        ({"num_experts": 4}, "experts_per_token must be 1 .. num_experts = 4, got None"),
        (
            {"num_experts": 4, "experts_per_token": 2, "lora": LoraConfig(2, 4.0)},
            "lora.targets must be some of query, .* in a model with experts",
        ),
    ],
)
def test_a_shape_that_is_no_decoder_is_refused(change, message):
    with pytest.raises(ValueError, match=f"ModelConfig: {message}"):
        ModelConfig(**{**SIZE, **change})


@pytest.mark.parametrize("name", SIZES)
def test_every_named_size_is_a_config_of_one_family(name):
    config = named_config(name, vocab_size=40)
    assert (config.vocab_size, config.width) == (40, SIZES[name]["width"])
    assert from_hugging_face(to_hugging_face(config)) == config


def test_overrides_win_over_the_named_size():
    assert named_config("tiny", vocab_size=40, num_layers=5, tied=False).num_layers == 5


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match=r"named_config: name must be one of .* got 'large'"):
        named_config("large", vocab_size=40)


def test_a_rope_scaling_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="RopeScaling: factor must be positive, got 0"):
        RopeScaling(0.0)
    with pytest.raises(ValueError, match=r"low_turns must be below high_turns = 4.0, got 4.0"):
        RopeScaling(2.0, 64, low_turns=4.0)


@pytest.mark.parametrize(
    "rank, targets, message",
    [
        (0, ("query",), "rank must be positive, got 0"),
        ("8", ("query",), "rank must be an integer, got '8'"),
        (2, ("query", "router"), "targets must be some of query, key, .* got .*'router'"),
        (2, (), r"targets must be some of query, key, .* got \(\)"),
    ],
)
def test_adapters_that_cannot_be_are_refused(rank, targets, message):
    with pytest.raises(ValueError, match=f"LoraConfig: {message}"):
        LoraConfig(rank, 4.0, targets)
