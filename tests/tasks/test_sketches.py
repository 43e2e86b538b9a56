"""Small tasks in published formats: the numbers of their grades, and their environments."""

import json

import pytest

from rlvr_jax import policy
from rlvr_jax.judges import constraints_question
from rlvr_jax.tasks import Response, load, self_check
from rlvr_jax.tasks.sketches import number_lists
from rlvr_jax.tasks.sketches.words import BASE_MODEL, VOCABULARY, words_of

NAMES = ("clips", "equations", "feelings", "number_lists", "queries", "repairs", "routes")
EVERY = (*NAMES, "searches", "searches:form=r1_searcher", "dilemma:form=signs")


def graded(task, prompt, text, *, truncated=False):
    (grade,) = task.verify([prompt], [Response(text, truncated=truncated)])
    return grade


def first(task, kind):
    return next(prompt for prompt in task.train if prompt.kind == kind)


def played(task, prompt, *actions):
    """The replies to actions."""
    state, _ = task.environment.start(prompt)
    replies = []
    for action in actions:
        replies.append(task.environment.reply(state, action))
        state = replies[-1].state
    return replies


@pytest.mark.parametrize("name", EVERY)
def test_prompts_and_golds_are_of_the_vocabulary_and_golds_are_correct(name):
    task = load(name)
    assert task.base_model == BASE_MODEL and self_check(task).problems == ()
    for prompt in (*task.train[:100], *task.test[:20]):
        for text in filter(None, (prompt.text, prompt.gold, "".join(prompt.solution))):
            assert "".join(words_of(text)) == text
        if prompt.gold:
            assert len(words_of(prompt.gold)) < task.response_tokens
    assert load(name, seed=1).train != task.train


def test_the_tokenizer_reads_and_writes_the_words():
    reader = policy.tokenizer(BASE_MODEL)
    assert reader.get_vocab() == {word: id for id, word in enumerate(VOCABULARY)}
    text = "Ba Ko born?#<|begin_of_query|>12\n(1) SELECT name FROM people\n"
    ids = reader(text, add_special_tokens=False)["input_ids"]
    assert [VOCABULARY[id] for id in ids] == words_of(text)
    assert reader.decode(ids, clean_up_tokenization_spaces=False) == text


def test_a_question_of_two_hops_is_answered_by_its_two_searches():
    task = load("searches")
    prompt = first(task, "2_hops")
    *queries, gold = prompt.solution
    replies = played(task, prompt, *queries)
    assert prompt.answer in replies[1].text and prompt.answer not in queries[1]
    assert graded(task, prompt, "".join(queries) + gold).outcome == 1


@pytest.mark.parametrize(
    ("form", "text", "outcome", "reward"),
    (
        ("tags", "<answer>{}</answer>", 1, 1),
        ("tags", "<answer>{} Ba</answer>", 0, 2 / 3),
        ("tags", "<answer>{}</answer> so", 1, 0),
        ("tags", "{}", 0, 0),
        ("r1_searcher", "</think><answer>{}</answer>", 1, 1),
        ("r1_searcher", "<answer>{}</answer>", 1, 0),
    ),
)
def test_the_reward_of_a_search_is_f1_times_form(form, text, outcome, reward):
    task = load("searches", form=form)
    grade = graded(task, task.train[0], text.format(task.train[0].answer))
    assert grade.outcome == outcome and grade.reward == pytest.approx(reward, abs=1e-12)


def test_a_question_follows_the_last_reply():
    task = load("searches")
    read = task.read_problem(task.train[0], "\n<found>(1) a</found>\nBa Ko born river?")
    assert (read.text, read.answer) == ("Ba Ko born river?", task.train[0].answer)
    assert task.read_problem(task.train[0], "Ba Ko river?") is None


def test_an_episode_of_queries_is_paid_by_the_rows_of_its_last_table():
    task = load("queries")
    prompt = next(one for one in task.train if "ORDER" not in one.answer)
    table, end = played(task, prompt, f"{prompt.answer}\n", "submit\n")
    assert table.info == {"actions": 1.0} and (end.reward, end.outcome) == (1, 1)
    error, end = played(task, prompt, "SELECT\n", "submit\n")
    assert error.info == {"errors": 1.0} and (end.reward, end.outcome) == (0, 0)
    assert "".join(words_of(table.text)) == table.text


def test_tools_of_equations_see_the_data_of_their_prompt():
    task = load("equations:size=16,test_size=8")
    prompt = first(task, "x1*x2")
    look, good, bad, unknown = played(
        task,
        prompt,
        "<look>x1*x2</look>",
        "<try>c1*x1*x2+c2</try>",
        "<try>c1*x1+c2</try>",
        "<look>x3</look>",
    )
    assert "+10" in look.text and "<shown>0<" in good.text
    assert int(bad.text.partition("<shown>")[2].partition("<")[0]) > 2
    assert unknown.info["tool_errors"] == 1
    assert task.environment.most == 20


@pytest.mark.parametrize(
    ("kind", "text", "metric"),
    (
        ("interval", "2-4", 1),
        ("interval", "3-4", 2 / 3),
        ("interval", "5-9", 0),
        ("interval", "4-2", 0),
        ("interval", "tie", 0),
        ("caption", "cut,tie,close", 1),
        # Of 3 and 4 pairs two are common.
        ("caption", "cut,close", 4 / 7),
        ("caption", "", 0),
    ),
)
def test_clips_have_two_metrics(kind, text, metric):
    task = load("clips")
    answer = {"interval": "2-4", "caption": "cut,tie,close"}[kind]
    prompt = first(task, kind).__class__("…", answer, kind)
    grade = graded(task, prompt, text)
    assert grade.info["metric"] == pytest.approx(metric, abs=1e-12)
    assert grade.outcome == (metric == 1)


@pytest.mark.parametrize(
    ("text", "soft", "verdict"),
    (
        ("3 7 12", "rising", "YES"),
        ("3 12 7", "rising", "NO"),
        ("3 3", "rising", "NO"),
        ("2 8 4", "even", "YES"),
        ("2 7", "even", "NO"),
        ("", "even", "NO"),
    ),
)
def test_the_judge_of_lists_reads_the_soft_constraints(text, soft, verdict):
    ask = constraints_question()
    messages = ask(prompt="…", response=text, meta={"soft": [number_lists.SOFT[soft]]})
    assert number_lists.judge(messages) == verdict


def test_an_edit_of_the_wrong_value_is_malformed():
    task = load("repairs")
    prompt = task.train[0]
    grade = graded(task, prompt, prompt.gold)
    assert (grade.outcome, grade.info["exact"]) == (1, 1)
    (file,) = prompt.answer["oracle"]
    other = {"a.py": "b.py", "b.py": "a.py"}[file]
    assert graded(task, prompt, prompt.gold.replace(file, other)).info["malformed"] == 1
    json.dumps(prompt.answer)


def test_routes_have_a_change_of_lines_in_about_half_of_the_questions():
    task = load("routes")
    changes = [p.answer["transfers"] for p in task.train if p.kind == "route"]
    assert 0.4 < sum(changes) / len(changes) < 0.6
    prompt = next(p for p in task.train if p.kind == "route" and p.answer["transfers"])
    wrong = prompt.gold.replace("L1", "L3").replace("L2", "L3")
    # 2 for the ends, 3 for a line that exists, twice, and -5 for the last leg.
    assert graded(task, prompt, wrong).outcome == 0
    assert graded(task, prompt, wrong).info["detail"] == 3
