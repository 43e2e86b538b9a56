"""GGUF files, written here by the package that reads them."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax import policy
from rlvr_jax.policy import Model, ModelConfig, gguf
from rlvr_jax.policy.config import RopeScaling
from rlvr_jax.policy.parameters import parameter_table
from rlvr_jax.policy.placement import on_host

SIZE = dict(vocab_size=12, width=32, num_layers=2, num_heads=4, num_kv_heads=2, mlp_width=64)
CONFIGS = {
    "llama": ModelConfig(**SIZE, head_size=8, rope_theta=1e5, norm_epsilon=1e-5),
    "llama-untied": ModelConfig(**SIZE, head_size=6, tied=False),
    "qwen2": ModelConfig(**SIZE, head_size=8, qkv_bias=True),
    "qwen3": ModelConfig(**SIZE, head_size=10, qk_norm=True, tied=False),
}
OURS = {theirs: ours for ours, theirs in {**gguf._INNER, **gguf._OUTER}.items()}
WORDS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "a", "b", "1", "2", "Ġ", "ab", "Ġa", "!"]


def parameters(config):
    shapes = jax.eval_shape(Model(config).init, jax.random.key(0))
    random = np.random.default_rng(0)
    return jax.tree.map(lambda x: jnp.asarray(random.normal(0, 0.4, x.shape), x.dtype), shapes)


def paired(rows, heads):
    """The rows of a llama file: the halves of every rotary pair side by side."""
    return rows.reshape(heads, 2, -1, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def tensors_of(config, params, kind):
    """Tensors in the names and layout of a GGUF file."""
    for entry in parameter_table(config):
        leaf = params[entry.path[0]]
        leaf = leaf[entry.path[1]] if len(entry.path) == 2 else leaf
        stacked = leaf if entry.num_stacked else leaf[None]
        for layer, array in enumerate(stacked):
            array = on_host(array).T if entry.transposed else on_host(array)
            stem, _, last = entry.name.format(layer=layer).rpartition(".")
            prefix = f"blk.{layer}." if entry.num_stacked else ""
            name = OURS[stem.removeprefix(f"model.layers.{layer}.")]
            if kind == "llama" and name in ("attn_q", "attn_k"):
                heads = config.num_heads if name == "attn_q" else config.num_kv_heads
                array = paired(array, heads)
            yield f"{prefix}{name}.{last}", np.ascontiguousarray(array)


def write(
    path,
    name="llama",
    *,
    without=(),
    values=(),
    tensors=None,
    words=WORDS,
    quantised=(),
    merges=("a b", "Ġ a"),
    kinds=None,
    padding=None,
    ends=(),
    begins=False,
):
    """Writes a GGUF file of a random model; returns its config and parameters."""
    library = pytest.importorskip("gguf")
    kind, config = name.split("-")[0], CONFIGS[name]
    params = parameters(config)
    writer = library.GGUFWriter(path, dict(values).get("architecture", kind))
    metadata = {
        "block_count": config.num_layers,
        "context_length": config.max_positions,
        "embedding_length": config.width,
        "feed_forward_length": config.mlp_width,
        "attention.head_count": config.num_heads,
        "attention.head_count_kv": config.num_kv_heads,
        "attention.key_length": config.head_size,
        "attention.value_length": config.head_size,
        "rope.dimension_count": config.head_size,
        "rope.freq_base": config.rope_theta,
        "attention.layer_norm_rms_epsilon": config.norm_epsilon,
        **{key: value for key, value in values if key != "architecture"},
    }
    for key, value in metadata.items():
        add = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
        if key not in without:
            add[type(value)](f"{kind}.{key}", value)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(dict(values).get("pre", "smollm"))
    writer.add_token_list(words)
    writer.add_token_types(kinds or [3 if word.startswith("<|") else 1 for word in words])
    writer.add_token_merges(list(merges))
    if padding is not None:
        writer.add_pad_token_id(padding)
    for end in ends:
        writer.add_uint32(f"tokenizer.ggml.{end}_token_id", 1)
    writer.add_bos_token_id(1)
    writer.add_add_bos_token(begins)
    if "eos" not in without:
        writer.add_eos_token_id(2)
    writer.add_chat_template("{{ messages[0]['content'] }}")
    for key, array in dict(tensors or tensors_of(config, params, kind)).items():
        if key in without:
            continue
        if key in quantised:
            packed = library.quantize(array, library.GGMLQuantizationType.Q8_0)
            writer.add_tensor(key, packed, raw_dtype=library.GGMLQuantizationType.Q8_0)
        else:
            writer.add_tensor(key, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return config, params


@pytest.mark.thorough
@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_is_read_bit_by_bit(name, tmp_path):
    config, params = write(tmp_path / "x.gguf", name)
    model, loaded = policy.load(tmp_path / "x.gguf")
    assert model == Model(config)
    assert jax.tree.structure(loaded) == jax.tree.structure(params)
    for ours, theirs in zip(jax.tree.leaves(loaded), jax.tree.leaves(params), strict=True):
        assert ours.dtype == theirs.dtype
        assert_array_equal(ours, theirs)


def test_quantised_tensors_are_read_within_their_steps(tmp_path):
    names = ("blk.1.attn_q.weight", "token_embd.weight")
    _, params = write(tmp_path / "x.gguf", quantised=names)
    _, loaded = policy.load(tmp_path / "x.gguf")
    for ours, theirs in [
        (loaded["layers"]["query"][1], params["layers"]["query"][1]),
        (loaded["embedding"], params["embedding"]),
    ]:
        # Q8_0: 127 steps to the largest of 32 numbers, which is below 2
        assert_allclose(ours, theirs, atol=2 / 127)
        assert not np.array_equal(ours, theirs)
    assert_array_equal(loaded["layers"]["query"][0], params["layers"]["query"][0])


def test_a_quantised_vector_is_read_whole(tmp_path):
    name = "blk.1.attn_norm.weight"
    _, params = write(tmp_path / "x.gguf", quantised=[name])
    _, loaded = policy.load(tmp_path / "x.gguf")
    ours, theirs = (tree["layers"]["attention_norm"][1] for tree in (loaded, params))
    assert_allclose(ours, theirs, atol=2 / 127)


@pytest.mark.parametrize(
    ("values", "factor"),
    [
        ([("rope.scaling.type", "linear"), ("rope.scaling.factor", 4.0)], 4.0),
        # Files that name no type mean linear; the second key is the older one.
        ([("rope.scaling.factor", 4.0)], 4.0),
        ([("rope.scale_linear", 2.5)], 2.5),
        ([("rope.scaling.type", "none"), ("rope.scaling.factor", 4.0)], None),
        ([("rope.scaling.factor", 1.0)], None),
    ],
)
def test_linear_scaling_of_positions_is_read(values, factor, tmp_path):
    write(tmp_path / "x.gguf", values=values)
    scaling = policy.load(tmp_path / "x.gguf")[0].config.rope_scaling
    assert scaling == (None if factor is None else RopeScaling(factor))


def test_all_tokens_that_end_a_turn_stop_a_response(tmp_path):
    write(tmp_path / "x.gguf", ends=("eot",))
    model, params = policy.load(tmp_path / "x.gguf")
    assert model.stop_tokens == (2, 1)
    policy.save(tmp_path / "folder", model, params)
    assert policy.load(tmp_path / "folder")[0].stop_tokens == (2, 1)


def test_the_tokenizer_comes_with_its_template(tmp_path):
    write(tmp_path / "x.gguf")
    loaded = policy.tokenizer(tmp_path / "x.gguf")
    assert loaded.encode("ab a12!") == [8, 9, 5, 6, 10]
    assert loaded.encode("<|im_start|>a") == [1, 3]
    assert loaded.decode([8, 9, 5, 6, 10]) == "ab a12!"
    assert (loaded.bos_token_id, loaded.eos_token_id) == (1, 2)
    assert loaded.decode([3, 2], skip_special_tokens=True) == "a"
    messages = [{"role": "user", "content": "ab"}]
    assert loaded.apply_chat_template(messages, return_dict=False) == [8]


def test_what_was_read_is_saved_as_a_folder(tmp_path):
    config, params = write(tmp_path / "x.gguf", "qwen2")
    model, loaded = policy.load(tmp_path / "x.gguf")
    policy.save(tmp_path / "folder", model, loaded, policy.tokenizer(tmp_path / "x.gguf"))
    again, weights = policy.load(tmp_path / "folder")
    assert again.config == config
    assert_array_equal(weights["layers"]["key"], params["layers"]["key"])
    assert policy.tokenizer(tmp_path / "folder").encode("ab a12!") == [8, 9, 5, 6, 10]


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(values=[("architecture", "mamba")]), "must be one of llama, qwen2, .* got 'mamba'"),
        (dict(without=["block_count"]), "metadata of .* must hold llama.block_count, found none"),
        (
            dict(without=["blk.1.ffn_up.weight"]),
            r"must hold model\.layers\.1\.mlp\.up_proj\.weight, found no such tensor",
        ),
        (dict(without=["token_embd.weight"]), "must hold token_embd.weight, found no such tensor"),
        (dict(values=[("rope.scaling.type", "yarn")]), "rope.scaling.type must be none or linear"),
        (dict(values=[("attention.head_count", 0)]), "head_count of .* positive integer, got 0"),
        (dict(values=[("block_count", "two")]), "block_count of .* positive integer, got 'two'"),
        (dict(values=[("rope.dimension_count", 4)]), "dimension_count must be the head size 8"),
        (dict(values=[("attention.head_count_kv", 3)]), "num_kv_heads must divide num_heads = 4"),
        (dict(values=[("feed_forward_length", 63)]), r"must have the shape \(63, 32\) .* \(64, 32"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_before_anything_is_read(
    changes, message, tmp_path, monkeypatch
):
    library = pytest.importorskip("gguf")
    write(tmp_path / "x.gguf", **changes)
    whole = library.dequantize

    def one_row_at_most(data, kind):
        assert len(data) == 1 or data.ndim == 1
        return whole(data, kind)

    monkeypatch.setattr(library, "dequantize", one_row_at_most)
    with pytest.raises(ValueError, match=message):
        policy.load(tmp_path / "x.gguf")


def with_divisors(path, divisors):
    config = CONFIGS["llama"]
    tensors = dict(tensors_of(config, parameters(config), "llama"))
    tensors["rope_freqs.weight"] = np.array(divisors, np.float32)
    write(path, tensors=tensors)
    return policy.load(path)[0].config.rope_scaling


def test_the_scaling_of_llama_3_1_stands_in_a_tensor(tmp_path):
    # Of 8192 positions the four frequencies 1e5^(-i/4) turn 1303.8, 73.3, 4.12 and .23 times.
    assert with_divisors(tmp_path / "x.gguf", [1, 1, 1, 8]) == RopeScaling(8.0, 8192)
    assert with_divisors(tmp_path / "y.gguf", [1, 1, 1, 32]) == RopeScaling(32.0, 8192)
    assert with_divisors(tmp_path / "z.gguf", [1, 1, 1, 1]) is None


@pytest.mark.parametrize("divisors", [[1, 1, 8, 8], [1, 8], [1, 2, 4, 8]])
def test_a_scaling_that_is_not_built_is_refused(tmp_path, divisors):
    with pytest.raises(ValueError, match=r"rope_freqs.weight must be what Llama 3.1 divides"):
        with_divisors(tmp_path / "x.gguf", divisors)


def test_a_tokenizer_that_begins_texts_does_so_here_too(tmp_path):
    write(tmp_path / "x.gguf")
    assert policy.tokenizer(tmp_path / "x.gguf").encode("ab") == [8]
    write(tmp_path / "y.gguf", begins=True)
    assert policy.tokenizer(tmp_path / "y.gguf").encode("ab") == [1, 8]


def test_a_quantisation_that_is_not_read_is_refused_by_name(tmp_path, monkeypatch):
    library = pytest.importorskip("gguf")
    write(tmp_path / "x.gguf", quantised=["blk.0.attn_q.weight"])
    monkeypatch.delitem(library.quants._type_traits, library.GGMLQuantizationType.Q8_0)
    with pytest.raises(ValueError, match=r"blk.0.attn_q.weight must have a quant.* got Q8_0"):
        policy.load(tmp_path / "x.gguf")


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(values=[("pre", "tekken")]), "one of the splits smollm, qwen2, got .* 'tekken'"),
        (dict(words=[*WORDS, "x", "y"]), "at most the 12 ids that the model embeds, got 13"),
        (dict(without=["eos"]), "must name an eos_token, found none"),
        (dict(padding=99), "the id of the pad_token of .* must be below 11, got 99"),
        (dict(merges=["a b", "a x"]), "each merge of .* must join two tokens.*, got 'a x'"),
        (dict(merges=["a"]), "each merge of .* must join two tokens to a third, got 'a'"),
        (dict(kinds=[1, 1]), "must have one kind for each of its 11 tokens, got 2"),
    ],
)
def test_a_tokenizer_that_does_not_fit_is_refused(changes, message, tmp_path):
    write(tmp_path / "x.gguf", **changes)
    with pytest.raises(ValueError, match=f"tokenizer: .*{message}"):
        policy.tokenizer(tmp_path / "x.gguf")


def test_a_file_that_is_none_is_refused(tmp_path):
    pytest.importorskip("gguf")
    with pytest.raises(ValueError, match="path must be a GGUF file, found no file"):
        policy.load(tmp_path / "absent.gguf")
    (tmp_path / "x.gguf").write_bytes(b"something else entirely")
    with pytest.raises(ValueError, match=r"x.gguf must be a GGUF file, got one with"):
        policy.load(tmp_path / "x.gguf")


def test_the_missing_package_is_named_with_the_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ValueError, match=r"needs the package gguf, .*run `pip install gguf`"):
        policy.load(tmp_path / "x.gguf")


def test_qwens_tokenizer_splits_as_transformers_does(tmp_path):
    from transformers import Qwen2Tokenizer

    write(tmp_path / "x.gguf", values=[("pre", "qwen2")])
    ours, theirs = policy.tokenizer(tmp_path / "x.gguf"), Qwen2Tokenizer()
    text = "don't YOU'LL  x1234\n\n naïve cafe\u0301 漢字… (a+b) \t\r\n end  "
    split, expected = (
        kind.backend_tokenizer.pre_tokenizer.pre_tokenize_str(text) for kind in (ours, theirs)
    )
    assert split == expected
    normal, expected = (
        kind.backend_tokenizer.normalizer.normalize_str(text) for kind in (ours, theirs)
    )
    assert normal == expected != text
