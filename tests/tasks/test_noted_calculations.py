"""Noted calculations: the reply to a call of another expression, and the forms of the prompts."""

from rlvr_jax.tasks import load, self_check


def replies(task, text, *turns):
    prompt = next(prompt for prompt in task.train if prompt.text == text)
    state, _ = task.environment.start(prompt)
    found = []
    for turn in turns:
        reply = task.environment.reply(state, turn)
        state = reply.state
        found.append((reply.text, reply.info["tool_errors"]))
    return found


def test_another_expression_than_the_question_is_an_error():
    task = load("noted_calculations")
    found = replies(task, "37*46=", "[37*47]", "[37*46]")
    assert found == [("?;", 1.0), ("1702;", 0.0)]
    # Episodes do not share a question.
    assert replies(task, "37+46=", "[37*46]", "[37+46]") == [("?;", 1.0), ("83;", 0.0)]


def test_its_gold_is_correct_and_its_forms_are_in_its_vocabulary():
    task = load("noted_calculations")
    assert self_check(task).problems == ()
    prompt = task.train[0]
    assert task.show_hint(prompt, "?=\n*=") == f"?=*=;{prompt.text}"
    assert task.show_answer(prompt, "12") == f"{prompt.text}12?"
    assert {one.kind: one.hints for one in task.train} == {"sum": ("+?",), "product": ("*=",)}
    assert {one.kind: len(one.meta["calls"]) for one in task.train} == {"sum": 0, "product": 1}
