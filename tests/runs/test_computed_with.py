"""A run goes on with the policies that it began with, and with no others."""

import json
import shutil

import jax
import numpy as np
import pytest
import training_runs

from rlvr_jax import policy
from rlvr_jax.runs.checks.computed_with import check_computed_with, computed_with
from rlvr_jax.types import Recipe


def edited(name, **values):
    """Changes entries of a JSON file of a policy folder, which may not be there."""

    def edit(folder):
        path = folder / name
        held = json.loads(path.read_text()) if path.is_file() else {}
        path.write_text(json.dumps({**held, **values}))

    return edit


def saved(change, **options):
    """Writes a policy folder anew with other parameters."""

    def save(folder):
        model, params = policy.load(folder)
        words = policy.tokenizer(folder)
        policy.save(folder, model, change(params), words, **options)

    return save


def one_value(params):
    largest = max(jax.tree.leaves(params), key=lambda leaf: leaf.size)
    changed = largest.at[(0,) * largest.ndim].add(1e-3)
    return jax.tree.map(lambda leaf: changed if leaf is largest else leaf, params)


def swapped_rows(params):
    return {**params, "embedding": params["embedding"][::-1]}


def other_words(folder):
    path = folder / "tokenizer.json"
    path.write_text(path.read_text().replace('"8"', '"9"'))


OTHERS = {
    "another seed": (lambda folder: training_runs.write_policy(folder, seed=1), "the weights of"),
    "one value": (saved(one_value), "the weights of"),
    "rows in another order": (saved(swapped_rows), "the weights of"),
    "rotary base": (edited("config.json", rope_theta=5e5), "rope_theta of"),
    "epsilon of norms": (edited("config.json", rms_norm_eps=1e-5), "norm_epsilon of"),
    "rotary scaling": (
        edited("config.json", rope_scaling={"rope_type": "linear", "factor": 2.0}),
        "rope_scaling of",
    ),
    "a further end": (edited("generation_config.json", eos_token_id=[2, 5]), "the stop tokens of"),
    "another end": (edited("tokenizer_config.json", eos_token="="), "the stop tokens of"),
    "another word": (other_words, "the tokenizer of"),
    "a chat template": (edited("tokenizer_config.json", chat_template="x"), "the tokenizer of"),
}
ALIKE = {
    "nothing": lambda folder: None,
    "saved again": saved(lambda params: params),
    "in shards": saved(lambda params: params, max_shard_bytes=5000),
    "more positions": edited("config.json", max_position_embeddings=64),
    "a note": edited("config.json", transformers_version="5.0", torch_dtype="bfloat16"),
    "a sampler's default": edited("generation_config.json", temperature=0.6),
}


@pytest.fixture
def folder(model, tmp_path):
    return shutil.copytree(model, tmp_path / "policy")


@pytest.fixture(params=["policy", "teacher", "judge"])
def told(request, folder, model):
    """Gives what a run reads where the folder is its policy, its teacher or its judge."""
    role = request.param
    config = training_runs.settings(model, "unused", judge=f"folder:{folder}" * (role == "judge"))
    recipe = Recipe(None, teacher=str(folder) if role == "teacher" else None)
    own = folder if role == "policy" else model
    return lambda: computed_with(config, recipe, str(own))


@pytest.mark.thorough
@pytest.mark.parametrize("name", OTHERS)
def test_other_values_are_refused(told, folder, name):
    change, wanted = OTHERS[name]
    before = json.loads(json.dumps(told()))
    change(folder)
    with pytest.raises(ValueError, match=f"--resume: {wanted} .*{folder} must be .* restore the"):
        check_computed_with(before, told())


@pytest.mark.parametrize("name", ALIKE)
def test_equal_values_go_on_however_they_are_stored(told, folder, name):
    before = json.loads(json.dumps(told()))
    ALIKE[name](folder)
    check_computed_with(before, told())


@pytest.mark.thorough
def test_a_run_is_resumed_on_its_own_weights_alone(folder, tmp_path):
    def config(**changes):
        return training_runs.settings(
            folder, tmp_path / "run", steps=1, evaluate_every=1, **changes
        )

    training_runs.quietly(config())
    kept = shutil.copytree(folder, tmp_path / "kept")
    training_runs.write_policy(folder, seed=1)
    again = training_runs.settings(folder, tmp_path / "run", steps=2, evaluate_every=1, resume=True)
    with pytest.raises(ValueError, match="--resume: the weights of the policy"):
        training_runs.quietly(again)
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)
    saved(lambda params: params, max_shard_bytes=5000)(folder)
    training_runs.quietly(again)
    assert [line["step"] for line in training_runs.metrics(tmp_path / "run")] == [0, 1, 2]
    assert np.isfinite(training_runs.metrics(tmp_path / "run")[-1]["loss"])
