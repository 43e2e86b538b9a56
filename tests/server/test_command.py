"""The command `serve`: its settings, its token file, and the names of models."""

import pytest

from experiments import serve
from rlvr_jax import tasks

BRACKETS = str(tasks.load("brackets").base_model)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "--model must be given, got none"),
        ({"model": ("m",), "rows": 0}, "--rows must be at least 1, got 0"),
        ({"model": ("m",), "body_megabytes": 0}, "--body-megabytes must be at least 1"),
        ({"model": ("m",), "compute_dtype": "int8"}, "--compute-dtype must be float32 or bfloat16"),
    ],
)
def test_other_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        serve.check(serve.Config(**settings))


def test_a_token_is_made_once_and_only_its_user_reads_it(tmp_path):
    config = serve.Config(run_dir=tmp_path)
    (token,) = serve.read_tokens(config)
    assert token.startswith("tml-") and len(token) > 30
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert serve.read_tokens(config) == [token]


@pytest.mark.parametrize("text", ["", "short\n", "tml-short\n", 30 * "a"])
def test_tokens_that_can_be_guessed_are_refused(tmp_path, text):
    (tmp_path / "tokens").write_text(text)
    with pytest.raises(ValueError, match="--token-file must have tokens of at least 20 letters"):
        serve.read_tokens(serve.Config(token_file=tmp_path / "tokens"))


def test_models_have_the_names_that_they_are_given(tmp_path):
    models = (BRACKETS, f"other/name={BRACKETS}")
    bases = serve.load_models(serve.Config(model=models, run_dir=tmp_path))
    assert list(bases) == ["brackets", "other/name"]
    assert {path.name for path in (tmp_path / "tokenizers").iterdir()} == {
        *("brackets", "other--name")
    }
    twice = serve.Config(model=(BRACKETS, BRACKETS), run_dir=tmp_path)
    with pytest.raises(ValueError, match="--model must have a new name, got 'brackets'"):
        serve.load_models(twice)
