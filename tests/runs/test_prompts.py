"""Prompts as arrays, responses as text."""

import json
import shutil
from dataclasses import MISSING, fields

import numpy as np
import pytest
import training_runs
from tokenizers import AddedToken
from training_runs import WORDS, sums

from rlvr_jax import policy
from rlvr_jax.experience.prompts import (
    LEAST_OPENING,
    PromptTable,
    encode_prompts,
    prompt_lengths,
    responses,
    row_texts,
    shared_opening,
    token_texts,
    tokens_fingerprint,
)
from rlvr_jax.methods import recipe
from rlvr_jax.runs.loading import load_policy
from rlvr_jax.runs.resolved import with_task
from rlvr_jax.runs.step import collect
from rlvr_jax.tasks import Prompt
from rlvr_jax.training.learning import learn
from rlvr_jax.types import Rollouts, replace

EOS = WORDS.index("<eos>")


@pytest.fixture(scope="module")
def tokenizer(model):
    return policy.tokenizer(model)


def rollouts_of(rows, truncated, budget=4):
    """Rollouts of which only tokens, length and truncation matter."""
    tokens = np.zeros((len(rows), budget), np.int32)
    for row, ids in zip(tokens, rows, strict=True):
        row[: len(ids)] = ids
    length = np.array([len(ids) for ids in rows], np.int32)
    unused = {field.name: None for field in fields(Rollouts) if field.default is MISSING}
    prompts = {"prompt_tokens": tokens[:, :0], "prompt_length": 0 * length}
    own = {"tokens": tokens, "length": length, "truncated": truncated}
    return Rollouts(**{**unused, **prompts, **own})


def test_prompts_are_padded_on_the_right_to_the_longest(tokenizer):
    table = encode_prompts(tokenizer, [Prompt("1 + 2 ="), Prompt("3")], 0, "train")
    assert table.tokens.dtype == table.length.dtype == np.int32
    assert table.length.tolist() == [4, 1]
    ids = [[WORDS.index(word) for word in ("1", "+", "2", "=")], [WORDS.index("3"), 0, 0, 0]]
    assert table.tokens.tolist() == ids


def test_a_budget_widens_the_table(tokenizer):
    table = encode_prompts(tokenizer, sums().train, 7, "train")
    assert table.tokens.shape == (15, 7)
    assert (table.tokens[:, 4:] == 0).all()


def test_a_prompt_over_the_budget_is_named(tokenizer):
    with pytest.raises(ValueError, match=r"at least 4 for the longest test prompt, got 3: '1 \+"):
        encode_prompts(tokenizer, [Prompt("2"), Prompt("1 + 2 =")], 3, "test")


def test_a_prompt_without_tokens_is_refused(tokenizer):
    with pytest.raises(ValueError, match="train prompts must have tokens, got ' '"):
        encode_prompts(tokenizer, [Prompt("1"), Prompt(" ")], 0, "train")


def test_a_chat_template_makes_the_prompt_a_message(model, tmp_path):
    pytest.importorskip("jinja2", reason="transformers renders templates with it")
    for file in model.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    settings["chat_template"] = (
        "+ {{ messages[0].content }}{% if add_generation_prompt %} ={% endif %}"
    )
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    table = encode_prompts(policy.tokenizer(tmp_path), [Prompt("1 2")], 0, "train")
    assert [WORDS[index] for index in table.tokens[0]] == ["+", "1", "2", "="]


def test_a_prompt_with_a_token_that_the_model_does_not_embed_is_named(model, tmp_path):
    policy.save(tmp_path, *policy.load(model), policy.tokenizer(model))
    larger = policy.tokenizer(model)
    larger.add_tokens([AddedToken("<image>", special=True)])
    larger.save_pretrained(tmp_path)
    task = sums()
    task = replace(task, test=[*task.test, Prompt("1 + <image>")])
    config = training_runs.settings(tmp_path, "unused")
    assert load_policy(
        with_task(config, sums()), sums(), str(tmp_path)
    ).tokenizer.vocab_size == len(WORDS)
    with pytest.raises(ValueError, match=f"below {len(WORDS)}, .* {len(WORDS)} in '1 . <image>"):
        load_policy(with_task(config, task), task, str(tmp_path))


@pytest.mark.parametrize(
    ("method", "words", "longest"),
    [
        ("prefix_rl", 10, 8),
        ("reverse_curriculum", 9, 8),
        ("seele", 8, 8),
    ],
)
def test_solutions_that_leave_no_room_behind_them_are_counted_before_weights_are_read(
    model, method, words, longest
):
    task = sums()
    first, *others = task.train
    others = [replace(prompt, solution=("1", " 2")) for prompt in others]

    def load_with(number):
        task_of = replace(task, train=[replace(first, solution=("1",) + (" 1",) * number), *others])
        chain = recipe(method).experience
        config = training_runs.settings(model, "unused", response_tokens=8)
        return load_policy(with_task(config, task_of), task_of, str(model), views=chain.views)

    assert load_with(words - 2).tables.keys() > {"plain"}
    said = (
        rf"fewer than the 8 tokens .* up to {longest} for 1 of {len(task.train)} prompts, such as '"
    )
    with pytest.raises(ValueError, match=said):
        load_with(words - 1)


def test_a_response_ends_with_any_end_of_the_tokenizer_or_the_generation_config(model, tmp_path):
    policy.save(tmp_path, *policy.load(model), policy.tokenizer(model))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [5, EOS, 6]}))
    config = training_runs.settings(tmp_path, "unused")
    assert load_policy(with_task(config, sums()), sums(), str(tmp_path)).sampler.stop_tokens == (
        EOS,
        5,
        6,
    )


def table_of(*rows):
    tokens = np.zeros((len(rows), max(map(len, rows))), np.int32)
    for row, ids in zip(tokens, rows, strict=True):
        row[: len(ids)] = ids
    return PromptTable([], tokens, np.array([len(ids) for ids in rows], np.int32))


def test_an_opening_is_what_all_prompts_begin_with():
    first = list(range(1, LEAST_OPENING + 1))
    train, test = table_of([*first, 7, 8], [*first, 7]), table_of([*first, 7, 8, 9])
    assert shared_opening([train, test]) == LEAST_OPENING
    # One token of the shortest prompt is left, and a short opening is none.
    assert shared_opening([test]) == LEAST_OPENING + 2
    assert shared_opening([table_of(first)]) == 0
    assert shared_opening([test, table_of([5, *first])]) == 0


def test_responses_are_texts_without_their_stop_token(tokenizer):
    three, plus = WORDS.index("3"), WORDS.index("+")
    # Any token may have been the one that stopped the last row.
    rows = [[three, EOS], [three, plus, three, three], [EOS], [three, plus]]
    found = responses(tokenizer, rollouts_of(rows, np.array([False, True, False, False])))
    assert [r.text for r in found] == ["3", "3 + 3 3", "", "3"]
    assert [r.truncated for r in found] == [False, True, False, False]


def test_verifiers_see_how_the_prompt_ends_by_the_chat_template(model, tmp_path):
    folder = tmp_path / "policy"
    shutil.copytree(model, folder)
    path = folder / "tokenizer_config.json"
    stored = json.loads(path.read_text())
    stored["chat_template"] = "{{ messages[0]['content'] }} = ="
    path.write_text(json.dumps(stored))
    run = training_runs.prepared(training_runs.settings(folder, tmp_path / "run"))
    batch = collect(run, run.initial_state(), 0).batch
    tails = [response.prompt_tail for response in batch.responses]
    assert tails == [f"{prompt.text} = =" for prompt in batch.prompts]


def test_texts_of_tokens_add_up_to_the_response(tokenizer):
    ids = [WORDS.index(word) for word in ("3", "+", "<eos>")]
    texts = token_texts(tokenizer, ids)
    assert len(texts) == 3
    assert "".join(texts) == tokenizer.decode(ids)


def templated(folder, template):
    loaded = policy.tokenizer(folder)
    loaded.chat_template = template
    return loaded


def test_a_template_that_asks_for_the_date_gets_the_same_one_every_day(model):
    unless = (
        "{% if date_string is not defined %}{% set date_string = strftime_now('%d') %}{% endif %}"
    )
    asked = templated(model, unless + "{{ date_string }} {{ messages[0]['content'] }}")
    plain = templated(model, "26 Jul 2024 {{ messages[0]['content'] }}")
    tables = [encode_prompts(each, [Prompt("1 + 2 =")], 0, "train") for each in (asked, plain)]
    assert tables[0].tokens.tolist() == tables[1].tokens.tolist()


@pytest.mark.parametrize(
    "template", ["{{ raise_exception('only tools') }}", "{% if %}", "{{ messages[0].x.y }}"]
)
def test_a_template_that_does_not_work_is_refused_with_the_prompt(template, model):
    with pytest.raises(ValueError, match=r"chat template must take a user's message.*'1 \+ 2 ='"):
        encode_prompts(templated(model, template), [Prompt("1 + 2 =")], 0, "train")


def test_other_tokens_have_another_fingerprint(tokenizer):
    tables = [encode_prompts(tokenizer, [Prompt(text)], 0, "train") for text in ("1 +", "1 =")]
    first, second = (tokens_fingerprint([table]) for table in tables)
    assert first != second == tokens_fingerprint([tables[1]])


class Bytes:
    """A tokenizer of bytes, as far as `token_texts` reads one."""

    def decode(self, ids, **_):
        return bytes(ids).decode(errors="replace")


def test_a_token_that_completes_no_character_adds_nothing():
    text = "a…é"
    texts = token_texts(Bytes(), list(text.encode()))
    assert texts == ["a", "", "", "…", "", "é"]


def test_bytes_that_are_no_characters_are_seen_with_the_next_one():
    texts = token_texts(Bytes(), [0x61, 0xFF, 0xC3, 0x62, 0x63])
    assert texts == ["a", "", "", "\ufffd\ufffdb", "c"]


def test_bytes_that_never_become_a_character_are_shown_after_a_while():
    texts = token_texts(Bytes(), [0xFF] * 40 + [0x61])
    assert "".join(texts) == "\ufffd" * 40 + "a"
    assert max(map(len, texts)) <= 17


def test_a_long_response_is_decoded_in_linear_time(tokenizer):
    class Counting:
        tokens = 0

        def decode(self, ids, **options):
            self.tokens += len(ids)
            return tokenizer.decode(ids, **options)

    ids = [number % 9 for number in range(500)]
    counting = Counting()
    assert "".join(token_texts(counting, ids)) == tokenizer.decode(ids)
    assert counting.tokens < 5 * len(ids)


@pytest.mark.thorough
def test_what_is_trained_are_the_sampled_tokens_whatever_their_text_says(model, tmp_path):
    """A tokenizer that reads no number above 1: of most responses the text has other tokens."""
    folder = tmp_path / "policy"
    shutil.copytree(model, folder)
    path = folder / "tokenizer.json"
    stored = json.loads(path.read_text())
    stored["normalizer"] = {"type": "Replace", "pattern": {"Regex": "[2-8]"}, "content": "1"}
    path.write_text(json.dumps(stored))
    config = training_runs.settings(folder, tmp_path / "run", minibatches=2)
    run = training_runs.prepared(config)
    state = run.initial_state()
    batch = collect(run, state, 0).batch
    texts = [response.text for response in batch.responses]
    tokens = batch.rollouts.tokens
    again = [run.start.tokenizer(text)["input_ids"] for text in texts]
    changed = [ids != row[: len(ids)].tolist() for ids, row in zip(again, tokens, strict=True)]
    assert np.mean(changed) > 0.5
    _, metrics, records = learn(run.learner, state.device, batch.rollouts, 0)
    for name in ("sampler_ratio/min", "sampler_ratio/max"):
        assert metrics[name] == pytest.approx(1, abs=1e-4)
    own, kept = batch.rollouts.behaviour_logp, batch.rollouts.mask
    np.testing.assert_allclose(records["old_logp"][kept], own[kept], atol=1e-4)


CHAT = "{% for m in messages %}{{ m.role[0] }} {{ m.content }} {% endfor %}"
SYSTEM = [{"role": "3", "content": "4"}]


def test_messages_stand_before_what_is_shown(model):
    spelled = templated(model, CHAT.replace("{{ m.role[0] }} ", ""))
    prompts = [Prompt("1 + 2", messages=SYSTEM), Prompt("1 + 2")]
    table = encode_prompts(spelled, prompts, 0, "train")
    words = [[WORDS[i] for i in row[:n]] for row, n in zip(table.tokens, table.length, strict=True)]
    assert words == [["4", "1", "+", "2"], ["1", "+", "2"]]
    assert table.encode("3", SYSTEM) == [WORDS.index("4"), WORDS.index("3")]
    assert prompt_lengths(spelled, prompts) == [4, 3]


def test_messages_without_a_template_are_refused_with_the_message(tokenizer):
    said = r"must have a tokenizer with a chat template, got .*'content': '4'.* before '1 \+ 2'"
    with pytest.raises(ValueError, match=said):
        encode_prompts(tokenizer, [Prompt("1 + 2", messages=SYSTEM)], 0, "train")


def test_a_template_that_takes_no_system_message_is_named_with_the_roles(model):
    refuses = templated(model, "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}")
    refuses.chat_template += "{% endif %}{{ messages[0].content }}"
    system = [{"role": "system", "content": "4"}]
    with pytest.raises(ValueError, match="user's message after messages of system, got"):
        encode_prompts(refuses, [Prompt("1 + 2", messages=system)], 0, "train")


def test_no_rows_have_no_texts(tokenizer, monkeypatch):
    # As transformers 5.17 has it.
    monkeypatch.setattr(tokenizer, "batch_decode", lambda rows, **options: [""])
    assert row_texts(tokenizer, []) == []
