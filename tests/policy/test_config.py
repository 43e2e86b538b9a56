"""The shape of a decoder, and config.json in both directions."""

import json

import pytest
from transformers import AutoConfig

from rlvr_jax.policy import SIZES, ModelConfig, named_config
from rlvr_jax.policy.config import from_hugging_face, to_hugging_face

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
FAMILIES = {"qwen2": dict(qkv_bias=True), "qwen3": dict(qk_norm=True), "llama": dict()}

# The least that config.json of any family holds.
LEAST = dict(
    vocab_size=7,
    hidden_size=24,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=40,
)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_config_survives_the_way_to_hugging_face_and_back(family, tied):
    config = ModelConfig(**SIZE, **FAMILIES[family], tied=tied)
    written = json.loads(json.dumps(to_hugging_face(config)))
    assert written["model_type"] == family
    assert from_hugging_face(written) == config


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_transformers_reads_the_config_and_what_it_writes_is_read_the_same(family, tied, tmp_path):
    config = ModelConfig(**SIZE, **FAMILIES[family], tied=tied)
    (tmp_path / "config.json").write_text(json.dumps(to_hugging_face(config)))
    theirs = AutoConfig.from_pretrained(str(tmp_path))
    assert theirs.model_type == family
    assert theirs.head_dim == config.head_size
    assert theirs.rope_parameters["rope_theta"] == config.rope_theta
    theirs.save_pretrained(str(tmp_path))
    assert from_hugging_face(json.loads((tmp_path / "config.json").read_text())) == config


@pytest.mark.parametrize("family", FAMILIES)
def test_a_key_that_is_absent_means_what_transformers_takes_it_for(family):
    complete = AutoConfig.for_model(family, **LEAST).to_dict()
    seen = from_hugging_face({"model_type": family, **LEAST, "max_position_embeddings": 5})
    wanted = from_hugging_face({**complete, "max_position_embeddings": 5})
    assert seen == wanted


def test_the_rotary_base_of_older_configs_is_read():
    older = {"model_type": "llama", **LEAST, "rope_theta": 5e5, "rope_scaling": None}
    assert from_hugging_face(older).rope_theta == 5e5


@pytest.mark.parametrize(
    "change, message",
    [
        ({"model_type": "gpt2"}, "model_type must be qwen2, qwen3 or llama, got 'gpt2'"),
        ({"model_type": None}, "model_type must be qwen2, qwen3 or llama, got None"),
        ({"hidden_size": None}, "must hold hidden_size"),
        ({"hidden_act": "gelu"}, "hidden_act must be 'silu', got 'gelu'"),
        ({"rope_scaling": {"rope_type": "llama3"}}, "rope type must be 'default', got 'llama3'"),
        ({"rope_scaling": {"type": "linear"}}, "rope type must be 'default', got 'linear'"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rope type must be 'default', got 'yarn'"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor must be 1.0"),
        ({"use_sliding_window": True}, "use_sliding_window must be False, got True"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types must be"),
        ({"mlp_bias": True}, "mlp_bias must be False, got True"),
        ({"attention_bias": True}, "attention_bias must be False, got True"),
        ({"num_key_value_heads": 3}, "num_kv_heads must divide num_heads = 4, got 3"),
    ],
)
def test_a_config_that_is_not_built_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        from_hugging_face({"model_type": "llama", **LEAST, **change})


def test_biases_and_query_norms_together_have_no_family():
    config = ModelConfig(**SIZE, qkv_bias=True, qk_norm=True)
    with pytest.raises(ValueError, match="to_hugging_face: qkv_bias and qk_norm"):
        to_hugging_face(config)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"width": 0}, "width must be positive, got 0"),
        ({"norm_epsilon": 0.0}, "norm_epsilon must be positive, got 0.0"),
        ({"rope_theta": -1.0}, "rope_theta must be positive, got -1.0"),
        ({"num_kv_heads": 3}, "num_kv_heads must divide num_heads = 4, got 3"),
        ({"head_size": 7}, "head_size must be even, got 7"),
        ({"compute_dtype": "float16"}, "compute_dtype must be .* got 'float16'"),
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
