"""Prompts as people have them: templates of several kinds, system messages, none at all."""

import datetime
import json
from dataclasses import replace

import pytest
import training_runs
from tokenizers.processors import TemplateProcessing
from training_runs import WORDS

from rlvr_jax import methods, policy
from rlvr_jax.experience import branch_turns, experience, turns
from rlvr_jax.experience.prompts import encode_prompts, shown_tokens
from rlvr_jax.methods.agents.epo import turn_rows
from rlvr_jax.methods.agents.supo import summarized_turns
from rlvr_jax.runs import check_config, parse_config
from rlvr_jax.runs.resolved import resolve
from rlvr_jax.runs.run import make_run
from rlvr_jax.runs.step import collect
from rlvr_jax.runs.task import load_task, load_tokenizer
from rlvr_jax.tasks import Prompt
from rlvr_jax.tools import Tool, tags, toolbox

QUESTION = Prompt("1 + 2 =")
PARTS = (
    "{% for m in messages %}{% if m.content is not string %}{% for part in m.content %}"
    "+ {{ part.text }}{% endfor %}{% endif %}{% endfor %}"
)


@pytest.fixture
def shown(model):
    """What the policy sees of a prompt by a template."""

    def by(template, prompt=QUESTION, **arguments):
        tokenizer = policy.tokenizer(model)
        tokenizer.chat_template = template
        tokenizer = policy.templated(tokenizer, **arguments)
        table = encode_prompts(tokenizer, [prompt], 0, "train")
        return " ".join(WORDS[index] for index in table.tokens[0])

    return by


def test_a_template_that_wants_content_in_parts_gets_parts(shown):
    assert shown(PARTS) == "+ 1 + 2 ="


def test_a_template_that_loses_the_question_is_refused(shown):
    wanted = r"chat template must show the user's message, got '\+ 1' for '1 \+ 2 ='"
    with pytest.raises(ValueError, match=wanted):
        shown("+ {{ messages|length }}")


@pytest.mark.parametrize("role", ["system", "user"])
def test_a_template_that_loses_what_stands_before_the_question_is_refused(shown, role):
    prompt = replace(QUESTION, messages=[{"role": role, "content": "5 + 5 = "}])
    assert shown("{% for m in messages %}{{ m.content }} {% endfor %}", prompt) == (
        "5 + 5 = 1 + 2 ="
    )
    wanted = rf"must show the {role}'s message, got '1 \+ 2 =' for '5 \+ 5 = '"
    with pytest.raises(ValueError, match=wanted):
        shown("{{ messages[-1].content }}", prompt)


def test_an_answer_that_a_template_shortens_is_no_loss(shown):
    turns = [{"role": "user", "content": "5"}, {"role": "assistant", "content": "6 + 6"}]
    template = "{% for m in messages %}{{ m.content[:2] if m.role == 'assistant' else m.content }} "
    assert shown(template + "{% endfor %}", replace(QUESTION, messages=turns)) == "5 6 1 + 2 ="


def test_a_template_may_count_the_tools_that_there_are_not(shown):
    template = "{% if tools|length > 0 %}+{% endif %}{{ messages[0].content }}"
    assert shown(template) == "1 + 2 ="
    # But one that asks whether there are any is told that there are none.
    assert shown("{% if tools is not none %}+{% endif %}{{ messages[0].content }}") == "1 + 2 ="


BOX = toolbox(Tool("5", "6", {"x": {}}, lambda arguments, state: (state, "")))
# Of a template that knows tools: their names, and how a call ends.
TOOLS = "{% for t in tools or [] %}{{ t.function.name }} </tool_call> {% endfor %}"
REST = "{% for m in messages %}{{ m.role }} {{ m.content }} {% endfor %}"


@pytest.mark.parametrize(
    ("template", "box", "wanted"),
    [
        # "user" and what explains a call are words that this policy does not know.
        (TOOLS + REST, BOX, "5 <unk> <unk> 1 + 2 ="),
        # Templates that know no tools, or call them in another way: a system message says it.
        (REST, BOX, None),
        ("{% for t in tools or [] %}{{ t.function.name }}{% endfor %}" + REST, BOX, None),
        (TOOLS + REST, replace(BOX, style=tags({"a": "5"})), None),
        (TOOLS + REST, replace(BOX, describe=False), "<unk> 1 + 2 ="),
    ],
)
def test_tools_are_explained_by_a_template_that_knows_how(shown, template, box, wanted):
    prompt = replace(QUESTION, messages=box.start(None)[1])
    found = shown(template, prompt)
    if wanted is None:
        told = box.start(None)[1][0]["content"]
        wanted = shown(REST, replace(QUESTION, messages=[{"role": "system", "content": told}]))
    assert found == wanted


CALL = {"function": {"name": "5", "arguments": {"x": 6}}}
CALLING = {"role": "assistant", "content": "", "tool_calls": [CALL]}
KNOWS = (
    "{% for m in messages %}{{ m.reasoning_content or '' }} {{ m.content }} "
    "{% for c in m.tool_calls or [] %}{{ c.function.name }} + {{ c.function.arguments.x }} "
    "{% endfor %}{% endfor %}"
)


def test_calls_of_tools_in_earlier_messages_are_given_to_the_template(shown):
    before = [{"role": "user", "content": "3"}, CALLING, {"role": "tool", "content": "7"}]
    prompt = replace(QUESTION, messages=before)
    assert shown(KNOWS, prompt) == "3 5 + 6 7 1 + 2 ="
    with pytest.raises(ValueError, match=r"must show calls of tools in messages, got .* of '5'"):
        shown("{% for m in messages %}{{ m.content }} {% endfor %}", prompt)


def test_reasoning_in_earlier_messages_is_given_to_the_template(shown):
    said = {"role": "assistant", "content": "7", "reasoning_content": "3 + 4"}
    prompt = replace(QUESTION, messages=[said])
    assert shown(KNOWS, prompt) == "3 + 4 7 1 + 2 ="
    with pytest.warns(UserWarning, match="leaves out reasoning .* in 1 of 1 prompts"):
        assert shown("{% for m in messages %}{{ m.content }} {% endfor %}", prompt) == "7 1 + 2 ="


GOES_ON = "{% for m in messages %}{{ m.content }} {% endfor %}{{ '= ' if add_generation_prompt }}"


@pytest.mark.parametrize(
    ("template", "after", "wanted"),
    [
        (GOES_ON, [("assistant", "3 +")], "1 + 2 = = 3 +"),
        # A template that begins the response in these words.
        (GOES_ON, [("assistant", "=")], "1 + 2 = ="),
        (GOES_ON, [("tool", "5")], "1 + 2 = 5 ="),
        (GOES_ON, [("tool", "5"), ("assistant", "6")], "1 + 2 = 5 = 6"),
        (None, [("assistant", " 3 +")], "1 + 2 = 3 +"),
    ],
)
def test_a_response_goes_on_from_the_messages_after_the_users(shown, template, after, wanted):
    turns = [{"role": role, "content": content, "after": True} for role, content in after]
    assert shown(template, replace(QUESTION, messages=turns)) == wanted


@pytest.mark.thorough
def test_a_prefill_is_graded_with_the_response(model, monkeypatch):
    asked = training_runs.sums()
    begun = [{"role": "assistant", "content": " 3 4", "after": True}]
    prompts = [replace(prompt, messages=begun) for prompt in asked.train]
    read = []

    def verify(prompts, responses):
        read.extend(response.text for response in responses)
        return asked.verify(prompts, responses)

    task = replace(asked, train=prompts, verify=verify)
    monkeypatch.setattr(training_runs, "sums", lambda: task)
    run = training_runs.prepared(training_runs.settings(model, "unused", method="grpo"))
    table = run.start.train_table
    tail = table.tokens[0, : table.length[0]][-2:]
    assert [WORDS[index] for index in tail] == ["3", "4"]
    collect(run, run.initial_state(), 0)
    assert read and all(text.startswith(" 3 4") for text in read)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "draw", [turns, summarized_turns, branch_turns, turn_rows], ids=lambda draw: draw.__name__
)
def test_every_way_to_give_an_environment_shows_the_same_opening(tmp_path, draw, monkeypatch):
    said = " ".join(message["content"] for message in BOX.start(None)[1]).split()
    words = list(dict.fromkeys([*training_runs.WORDS, "system", "user", *said]))
    monkeypatch.setattr(training_runs, "WORDS", words)
    model = training_runs.write_policy(tmp_path / "policy", max_positions=512)
    settings = json.loads((model / "tokenizer_config.json").read_text())
    (model / "tokenizer_config.json").write_text(json.dumps({**settings, "chat_template": REST}))

    def opening(task, environment):
        chain = experience(draw=draw(environment))
        recipe = replace(methods.recipe("grpo", kl_coefficient=0), experience=chain)
        config = training_runs.settings(model, "unused", method="grpo")
        run = make_run(resolve(config, task, recipe))
        table = run.start.train_table
        return table.tokens[:, : int(table.length.max())].tolist(), table.prompts[0].messages

    alone = training_runs.sums()
    given = opening(alone, BOX)
    assert given == opening(replace(alone, environment=BOX), None)
    assert given == opening(replace(alone, environment=BOX), BOX)
    assert given[1] == tuple(BOX.start(None)[1])
    # One that is given takes the place of the task's.
    other = replace(BOX, describe=False)
    assert opening(replace(alone, environment=BOX), other)[1] == ()


def test_a_template_that_fails_is_told_in_a_sentence(shown):
    with pytest.raises(ValueError, match=r"must take a user's message, got TypeError: .* for '1 "):
        shown("{{ messages[0].content + 1 }}")


def test_the_date_of_the_day_is_the_same_every_day(shown):
    today = datetime.date.today().strftime("%d %b %Y")
    template = "{{ strftime_now('%d %b %Y') }} {{ messages[0].content }}"
    assert today != "26 Jul 2024"
    assert shown(template) == shown("26 Jul 2024 {{ messages[0].content }}")


def test_a_question_with_a_special_token_is_refused(shown):
    with pytest.raises(ValueError, match=r"no special token .* got '<eos>' in '1 <eos> 2'"):
        shown("{{ messages[0].content }}", Prompt("1 <eos> 2"))


def test_special_tokens_in_what_a_model_wrote_are_words(model):
    tokenizer = policy.tokenizer(model)
    tokenizer.chat_template = REST
    table = encode_prompts(tokenizer, [QUESTION], 0, "train")
    said = [{"role": "5", "content": "2 <eos> 3"}]
    found = tokenizer.decode(table.encode("1 <eos><pad> 2", said), skip_special_tokens=False)
    # "< eos>" is no word that this policy knows; the roles are none either.
    assert "<eos>" not in found and "<pad>" not in found and "2 <unk>" in found
    assert table.encode("1 + 2 =") == table.tokens[0].tolist()
    # Without a template a text is what it is.
    tokenizer.chat_template = None
    assert tokenizer.eos_token_id in table.encode("1 <eos> 2")


def test_what_a_template_is_given_reaches_it_or_is_refused(shown):
    template = "{% if thinking %}+ {% endif %}{{ messages[0].content }}"
    assert shown(template, thinking=True) == "+ 1 + 2 ="
    assert shown(template, thinking=False) == shown(template) == "1 + 2 ="
    with pytest.raises(ValueError, match="read by the tokenizer's chat template, got thoughts, wh"):
        shown(template, thoughts=True)
    with pytest.raises(ValueError, match="got thinking, and a tokenizer without"):
        shown(None, thinking=True)
    assert shown("+ {{ messages[0].content }}", chat_template=False) == "1 + 2 ="


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("1 + 2 =", "<pad> 1 + 2 ="), ("<pad> 1 =", "<pad> 1 ="), ("1 <eos>", "<pad> 1 <eos>")],
)
def test_without_a_template_no_prompt_gets_an_end_or_a_second_beginning(model, text, wanted):
    tokenizer = policy.tokenizer(model)
    tokenizer.bos_token = "<pad>"
    around = [(name, WORDS.index(name)) for name in ("<pad>", "<eos>")]
    tokenizer._tokenizer.post_processor = TemplateProcessing(
        single="<pad> $A <eos>", special_tokens=around
    )
    table = encode_prompts(tokenizer, [Prompt(text)], 0, "train")
    assert " ".join(WORDS[index] for index in table.tokens[0]) == wanted


def test_settings_put_messages_before_every_prompt(model, tmp_path):
    turns = [{"role": "user", "content": "1 + 1 ="}, {"role": "assistant", "content": "2"}]
    (tmp_path / "turns.json").write_text(json.dumps(turns))
    line = ["--task", "training_runs:sums", "--model", str(model), "--system-prompt", "+"]
    config = parse_config([*line, "--few-shot", str(tmp_path / "turns.json")])
    task = load_task(config)
    wanted = ({"role": "system", "content": "+"}, *turns)
    assert all(prompt.messages == wanted for prompt in (*task.train, *task.test))
    assert task.fingerprint() != training_runs.sums().fingerprint()


@pytest.mark.parametrize("content", ["{", '{"role": "user"}', '[{"role": "user"}]', "[1]"])
def test_few_shots_that_are_no_messages_are_refused(model, tmp_path, content):
    (tmp_path / "turns.json").write_text(content)
    line = ["--task", "training_runs:sums", "--few-shot", str(tmp_path / "turns.json")]
    with pytest.raises(ValueError, match="--few-shot must be a JSON file with a list of messages"):
        load_task(parse_config(line))
    with pytest.raises(ValueError, match=r"--few-shot must be a JSON file .* got 'nowhere.json'"):
        load_task(parse_config([*line[:3], "nowhere.json"]))


def test_a_second_system_message_is_refused(model, tmp_path):
    (tmp_path / "turns.json").write_text('[{"role": "system", "content": "-"}]')
    line = ["--task", "training_runs:sums", "--system-prompt", "+"]
    with pytest.raises(ValueError, match="must leave one system message, the first, got system, s"):
        load_task(parse_config([*line, "--few-shot", str(tmp_path / "turns.json")]))


def test_arguments_of_the_template_are_read_as_json(model):
    line = ["--task", "training_runs:sums", "--chat-template-kwargs", "a=false", "b=2", "c=dark"]
    config = parse_config(line)
    assert config.data.template_arguments() == {"a": False, "b": 2, "c": "dark"}
    with pytest.raises(ValueError, match="chat-template-kwargs must be name=value, got 'a'"):
        parse_config([*line[:3], "a"]).data.template_arguments()
    with pytest.raises(ValueError, match="must be left out with --no-chat-template, got a=1"):
        check_config(parse_config([*line[:3], "a=1", "--no-chat-template"]))
    with pytest.raises(ValueError, match="got a, and a tokenizer without"):
        load_tokenizer(parse_config([*line[:3], "a=1"]).data, str(model))


def test_the_first_prompt_is_told_token_by_token(model):
    table = encode_prompts(policy.tokenizer(model), [QUESTION, Prompt("3")], 0, "train")
    assert shown_tokens(table) == "first prompt, 4 tokens: 1│ +│ 2│ ="
    assert shown_tokens(table, most=6) == "first prompt, 4 tokens: 1│  … │ ="


@pytest.mark.thorough
def test_a_run_saves_the_template_that_it_did_not_use(model, tmp_path):
    tokenizer = policy.tokenizer(model)
    tokenizer.chat_template = "+ {{ messages[0].content }}"
    policy.save(tmp_path / "policy", *policy.load(model), tokenizer)
    config = training_runs.settings(
        tmp_path / "policy", tmp_path / "run", steps=1, chat_template=False
    )
    training_runs.quietly(config)
    (row, *_) = map(json.loads, (tmp_path / "run/held_out.jsonl").read_text().splitlines())
    assert row["step"] == 0
    saved = policy.tokenizer(tmp_path / "run/policy")
    assert saved.chat_template == "+ {{ messages[0].content }}"
