"""Tokenizers of a folder."""

import json

import pytest
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from rlvr_jax.policy import tokenizer

VOCABULARY = {"<eos>": 0, "a": 1, "b": 2, "1": 3, "2": 4}


@pytest.fixture
def folder(tmp_path):
    words = Tokenizer(models.WordLevel(VOCABULARY, unk_token="<eos>"))
    words.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<eos>").save_pretrained(tmp_path)
    return tmp_path


def test_text_and_tokens_agree(folder):
    loaded = tokenizer(folder)
    assert loaded.encode("ab12") == [1, 2, 3, 4]
    assert loaded.eos_token_id == 0


def test_a_path_may_be_a_string(folder):
    assert tokenizer(str(folder)).encode("b") == [2]


def test_the_file_decides_and_not_the_model_type_beside_it(folder):
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen2"}))
    assert tokenizer(folder).encode("ab12") == [1, 2, 3, 4]


def test_what_was_loaded_can_be_saved_and_loaded(folder, tmp_path):
    tokenizer(folder).save_pretrained(tmp_path / "again")
    assert tokenizer(tmp_path / "again").encode("ab12") == [1, 2, 3, 4]


def test_a_folder_without_a_tokenizer_is_refused(tmp_path):
    with pytest.raises(
        ValueError, match=r"tokenizer: path must be a folder with a tokenizer\.json"
    ):
        tokenizer(tmp_path / "absent")


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("tokenizer.json", "version https://git-lfs", "tokenizer.json must hold a JSON object"),
        ("tokenizer.json", '{"a": 1}', "tokenizer.json must hold a tokenizer, got one with"),
        ("tokenizer_config.json", "{", "tokenizer_config.json must hold a JSON object"),
    ],
)
def test_a_file_that_is_not_what_it_is_named_for_is_refused(file, text, message, folder):
    (folder / file).write_text(text)
    with pytest.raises(ValueError, match=message):
        tokenizer(folder)


def test_a_tokenizer_without_an_end_is_refused(folder):
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    del settings["eos_token"]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(ValueError, match="must name an eos_token, found none"):
        tokenizer(folder)


def test_special_tokens_may_lie_above_what_the_model_embeds(folder):
    (folder / "config.json").write_text(json.dumps({"vocab_size": 5}))
    larger = tokenizer(folder)
    larger.add_tokens([AddedToken("<image>", special=True)])
    larger.save_pretrained(folder)
    assert tokenizer(folder).encode("a<image>") == [1, 5]
    larger.eos_token = "<image>"
    larger.save_pretrained(folder)
    with pytest.raises(ValueError, match=r"must be below vocab_size = 5 of its .*, got 5"):
        tokenizer(folder)


def test_an_ordinary_token_above_what_the_model_embeds_is_refused(folder):
    (folder / "config.json").write_text(json.dumps({"vocab_size": 4}))
    with pytest.raises(ValueError, match=r"must be below vocab_size = 4 of its .*, got 4"):
        tokenizer(folder)


def test_a_config_that_is_no_json_is_refused_by_name(folder):
    (folder / "config.json").write_text('{"vocab_size": 5,')
    with pytest.raises(ValueError, match=r"config\.json must hold a JSON object, got text with"):
        tokenizer(folder)
