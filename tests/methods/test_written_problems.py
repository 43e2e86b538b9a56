"""CLPO, SvS, RLAD, GAR, SSP, STP: what the policy writes is asked, and who wrote it earns by it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import training_runs
from walks import of_cell, walked

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.experience.stages.problems.written import SOLVE, WRITE, problem_in
from rlvr_jax.methods import recipe
from rlvr_jax.methods.self_play.absolute_zero import (
    composed_proposer_reward,
    composed_solver_reward,
    learnability,
)
from rlvr_jax.methods.self_play.rlad import UNAIDED, abstraction_rewards
from rlvr_jax.methods.self_play.ssp import is_question, parabola, question_to, read_stored, stored
from rlvr_jax.methods.self_play.stp import matching_weights
from rlvr_jax.methods.self_play.svs import SOLVE_WRITTEN, within_band
from rlvr_jax.objectives import TOOL, Spec, group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.tasks import load, lookup
from rlvr_jax.tasks.base import Prompt, Response, Task
from rlvr_jax.tasks.hinted_brackets import hinted_brackets, read_problem
from rlvr_jax.types import Rollouts, TokenStats

PRINTED = 1e-8  # as many digits as the example prints


def asked(batch):
    """The ask of each group."""
    return [batch.asks[rows[0]] for rows in batch.groups]


# How problems are read


def test_a_problem_is_what_stands_in_the_last_fence():
    task = Task("t", [Prompt("a", answer=7, solution=("s",))], [Prompt("held out")], None)
    (prompt,) = task.train
    text = "First ```text\nno\n``` then ```text\nWhat is 3 + 4?\n```"
    found = problem_in(prompt, text, task)
    assert found.text == "What is 3 + 4?" and found.answer == 7 and not found.solution
    assert problem_in(prompt, "What is 3 + 4?", task) is None
    assert problem_in(prompt, "```text\n\n```", task) is None
    assert problem_in(prompt, "```text\nheld out\n```", task) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("( 5 + 2 = 7 ) * 4 = 28", "5 2 4 28 >"),
        ("3 - 1 = 2 ; 5 + ( 2 * 4 = 8 ) = 13", "5 2 4 13 >"),
        ("( 5 + 2 = 9 ) * 4 = 1", "5 2 4 1 >"),
        ("( 5 + 2 = 9 ) * 4 = 100", None),
        ("( 5 + 20 = 25 ) * 4 = 28", None),
        ("( 5 + 2 = 7", None),
        ("", None),
    ],
)
def test_an_attempt_states_its_numbers_and_what_it_comes_to(text, problem):
    found = read_problem(Prompt("3 9 4 15 >", answer=[3, 9, 4, 15]), text)
    assert (found and found.text) == problem
    assert found is None or found.answer == [int(word) for word in problem.split()[:4]]


def test_problems_of_brackets_are_graded_as_those_of_the_task():
    task = hinted_brackets(train=16)
    problem = read_problem(task.train[0], "( 5 + 2 = 7 ) * 4 = 28")
    right, wrong = task.verify(
        [problem] * 2, [Response("( 5 + 2 = 7 ) * 4 = 28"), Response("( 5 + 2 = 7 ) - 4 = 3")]
    )
    assert (right.outcome, wrong.outcome) == (1, 0) and problem.kind == "easy"


def test_a_problem_too_long_to_be_asked_is_none():
    class Wordy(numpy_actor.NumpyActor):
        def encode(self, text):
            return [1] * (50 if text.startswith("about ") else 1)

    for actor, some in ((numpy_actor.NumpyActor(), True), (Wordy(), False)):
        found = walked("svs", 4, actor)
        told = [collected.metrics.get("written_problems", 0) for collected, _, _ in found]
        assert any(told) == some


# What is earned


def test_those_who_write_earn_by_how_rarely_they_are_solved():
    rates = np.array([0.0, 0.25, 1.0])
    assert learnability(rates).tolist() == [0, 0.75, 0]
    assert parabola(rates).tolist() == [0, 0.75, 0]
    assert within_band(np.array([3 / 10, 0.625]), 0.3, 0.625).all()
    good = np.array([True, True, False])
    assert composed_proposer_reward(learnability(rates), good, -0.5, -1.0).tolist() == [
        -0.5,
        0.75,
        -1,
    ]
    right = np.array([True, False, True])
    assert composed_solver_reward(right, good, -0.5, -1.0).tolist() == [1, -0.5, -1]


# CLPO


def test_hard_prompts_are_rewritten_and_asked_in_the_same_step():
    rewritten = 0
    for collected, _, _ in walked("clpo", 8, numpy_actor.NumpyActor(chance=0.3)):
        batch, told = collected.batch, collected.metrics
        if not batch.rollouts.mask.any():
            continue
        for ask, rows in zip(asked(batch), batch.groups, strict=True):
            outcomes = batch.rollouts.outcome[rows]
            assert 0 < outcomes.mean() < 1 and len({*batch.rollouts.cell[rows].tolist()}) == 1
            new = ask.number >= 12
            rewritten += new
            assert new == ask.prompt.text.startswith("about ")
            assert not new or batch.rollouts.cell[rows[0]] in (0, 1)
        news = [ask.number >= 12 for ask in asked(batch)]
        # What was made of hard prompts comes first, then of medium ones, then the prompts.
        assert news == sorted(news, reverse=True)
        assert (
            told["rewritten_accepted"] == sum(news)
            if "rewritten_accepted" in told
            else not any(news)
        )
    assert rewritten > 0


@pytest.mark.slow
def test_training_on_rewritten_problems(tmp_path):
    steps = training_runs.on_brackets("clpo", tmp_path, steps=3)
    assert max(training_runs.values(steps, "experience/rewritten")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


# SvS


def test_problems_are_written_from_right_answers_and_earn_by_their_pass_rate():
    wrote = solved = 0
    given = {"low": 0.2, "high": 0.8, "written_low": 0.2, "written_high": 0.8, "sources": 3}
    for collected, _, _ in walked("svs", 10, numpy_actor.NumpyActor(chance=0.4), **given):
        batch, rollouts = collected.batch, collected.batch.rollouts
        if not rollouts.mask.any():
            continue
        for rows in batch.groups:
            cell, outcomes = rollouts.cell[rows[0]], rollouts.outcome[rows]
            assert (rollouts.cell[rows] == cell).all() and len(rows) == 4
            if cell == WRITE:
                wrote += 1
                assert outcomes.max() == 1 and set(outcomes.tolist()) <= {0.0, 1.0}
                assert all(batch.asks[row].view.label.startswith("with_request") for row in rows)
            else:
                assert 0 < outcomes.mean() < 1
                assert (cell == SOLVE_WRITTEN) == (batch.asks[rows[0]].number >= 12)
                solved += cell == SOLVE_WRITTEN
        np.testing.assert_array_equal(rollouts.reward, rollouts.outcome)
    assert wrote > 0 and solved > 0


def test_a_written_problem_keeps_the_answer_of_its_prompt():
    given = {"low": 0.2, "high": 0.8, "sources": 3}
    for collected, _, _ in walked("svs", 6, numpy_actor.NumpyActor(chance=0.4), **given):
        answers = {prompt.answer for prompt in numbered_task().train}
        for batch in collected.seen[1:]:
            assert {ask.prompt.answer for ask in batch.asks} <= answers
            assert all(ask.prompt.text.startswith("about ") for ask in batch.asks)


@pytest.mark.slow
def test_training_on_problems_that_the_policy_writes(tmp_path):
    given = ("high=0.9", "sources=8")
    steps = training_runs.on_brackets("svs", tmp_path, steps=3, hyperparameters=given)
    assert max(training_runs.values(steps, "experience/written_problems")) > 0
    assert max(training_runs.values(steps, "experience/sources")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


# RLAD


def test_abstractions_earn_the_mean_of_their_solutions_and_nothing_for_the_answer():
    outcome = np.array([[[1, 1, 0, 1], [0, 0, 1, 0.0]]])
    told = abstraction_rewards(outcome, np.zeros((1, 2), bool))
    assert told.tolist() == [[0.75, 0.25]]
    assert abstraction_rewards(outcome, np.array([[True, False]])).tolist() == [[0, 0.25]]
    reward = np.concatenate([told.ravel(), outcome.ravel()])
    group = np.repeat([0, 1, 2], [2, 4, 4])
    decided = normalized(reward, group)
    np.testing.assert_allclose(decided[:2], [0.707104781, -0.707104781], atol=PRINTED)
    solver = np.array([0.499999, 0.499999, -1.499997, 0.499999])
    np.testing.assert_allclose(decided[2:6], solver, atol=1e-6)
    np.testing.assert_allclose(decided[6:], -solver[[0, 1, 2, 3]], atol=1e-6)


def normalized(reward, group):
    own = objective(group_normalized(), surrogate=ppo_clip(0.2, 0.2), aggregation=token_mean())
    rows = len(reward)
    batch = Rollouts.of_responses(np.ones((rows, 1), int), np.ones((rows, 1), bool), reward, group)
    logp = jnp.zeros((rows, 1))
    state = own.init(Spec(1, rows, 1))
    return own.signals(TokenStats(logp=logp), batch, state, jax.random.key(0)).advantage[:, 0]


def test_three_kinds_of_rows_are_groups_of_their_own():
    for collected, _, _ in walked("rlad", 4, abstractions=2, unaided=2):
        batch, rollouts = collected.batch, collected.batch.rollouts
        sizes = {WRITE: 2, SOLVE: 2, UNAIDED: 2}
        for rows in batch.groups:
            cell = int(rollouts.cell[rows[0]])
            assert len(rows) == sizes[cell] and (rollouts.cell[rows] == cell).all()
        number = {cell: len(of_cell(batch, cell)) for cell in sizes}
        assert number == {WRITE: 8, SOLVE: 16, UNAIDED: 8}
        assert not rollouts.reward[of_cell(batch, UNAIDED)].any()
        solve = rollouts.outcome[of_cell(batch, SOLVE)].reshape(-1, 2).mean(axis=1)
        written = rollouts.reward[of_cell(batch, WRITE)]
        assert ((written == solve) | (written == 0)).all() and (written > 0).any()


@pytest.mark.slow
def test_training_on_abstractions(tmp_path):
    steps = training_runs.on_brackets("rlad", tmp_path)
    assert max(training_runs.values(steps, "experience/abstraction_reward")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


# GAR


def test_all_statements_of_a_step_are_compared_and_only_hard_ones_train_the_prover():
    proved = 0
    for collected, _, _ in walked("gar", 8, numpy_actor.NumpyActor(chance=0.3)):
        batch, rollouts = collected.batch, collected.batch.rollouts
        first = batch.groups[0]
        assert (rollouts.cell[first] == WRITE).all() and len(first) == 4
        assert len({batch.asks[row].number for row in first}) == 4
        for rows in batch.groups[1:]:
            assert 0 < rollouts.outcome[rows].mean() <= 0.5
            assert batch.asks[rows[0]].number >= 12 and len(rows) == 4
            proved += 1
        assert ((rollouts.reward[first] >= 0) & (rollouts.reward[first] < 1)).all()
    assert proved > 0


@pytest.mark.slow
def test_training_on_fused_statements(tmp_path):
    steps = training_runs.on_brackets("gar", tmp_path, steps=3)
    assert max(training_runs.values(steps, "experience/fused")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


# SSP


QUESTION = "Which river runs through the old town that lies below the castle?"


@pytest.mark.parametrize(
    ("text", "answer", "searches", "valid"),
    [
        (QUESTION, "Elbe", None, True),
        (f"{QUESTION} The Elbe", "Elbe", None, False),
        ("Which river?", "Elbe", None, False),
        ("a b c d e f g h i", "Elbe", None, False),
        ("w " * 600, "Elbe", None, False),
        (QUESTION, "Elbe", ["a"], False),
        (QUESTION, "Elbe", ["a", "a"], False),
        (QUESTION, "Elbe", ["a", "b"], True),
    ],
)
def test_what_is_a_question(text, answer, searches, valid):
    assert is_question(text, answer, searches=searches) == valid


def test_questions_are_stored_as_bytes():
    problems = [Prompt("Wo?", answer=[1, "é"], kind="k"), Prompt("x" * 5000, answer=1)]
    rows = stored(problems)
    assert read_stored(rows[:1]) == problems[:1] and not rows[1].any()


def test_what_is_no_question_pays_and_old_ones_take_its_place():
    given = {"least_characters": 8, "most_characters": 13, "least_words": 1, "reuse_below": 0.8}
    reused = paid = 0
    for collected, _, _ in walked("ssp", 8, **given):
        batch, rollouts = collected.batch, collected.batch.rollouts
        write = of_cell(batch, WRITE)
        assert len(write) == 4 and [len(batch.groups[k]) for k in range(4)] == [1] * 4
        solve = rollouts.outcome[of_cell(batch, SOLVE)].reshape(-1, 4).mean(axis=1)
        valid = rollouts.reward[write] >= 0
        np.testing.assert_allclose(rollouts.reward[write][valid], 1 - solve[: valid.sum()])
        assert (rollouts.reward[write][~valid] == -1).all()
        assert (rollouts.outcome[write][~valid] == 0).all()
        assert {batch.grades[row].outcome for row in write[~valid]} <= {0.0}
        paid += int((~valid).sum())
        reused += collected.metrics["reused_questions"]
        assert len(solve) == valid.sum() + collected.metrics["reused_questions"] <= 4
    assert reused > 0 and paid > 0


ASKED = "<search>Bo born</search><found>here</found> <search>{}</search><found>there</found>"
WRITTEN = [
    ASKED.format("Ur river") + f"\n```text\n{QUESTION}\n```",
    ASKED.format("Bo born") + f"\n```text\n{QUESTION}\n```",
    f"<search>once</search>\n```text\n{QUESTION}\n```",
    ASKED.format("Ur river") + "\n```text\ntoo short\n```",
    f"<search>once</search>\n```text\n{QUESTION}\n``` <search>without an end",
]


class Scripted(numpy_actor.Words):
    """Reads rows as what was written, by their first tokens."""

    def batch_decode(self, rows, **options):
        return [WRITTEN[row[0] % len(WRITTEN)] if row else "" for row in rows]


class Asking(numpy_actor.NumpyActor):
    """Its answers are read as what was written."""

    def draw(self, asks, key, sampling=None, constants=None):
        drawn = super().draw(asks, key, sampling, constants)
        return dataclasses.replace(drawn, tokenizer=Scripted())


def searching_task():
    return dataclasses.replace(
        numbered_task(),
        environment=load("lookup:people=40,size=32,test_size=8").environment,
        read_problem=lookup.read_problem,
    )


def test_questions_have_to_be_searched_for_where_there_are_tools():
    task = searching_task()
    stage = recipe("ssp", max_turns=4).experience.stages["pose_questions"]
    chain = experience(stages=[stage])
    own = numpy_actor.setting(chain, task=task, prompts=8)
    seen = set()
    for collected, _, _ in numpy_actor.walk(chain, Asking(), own=own):
        rollouts, write = collected.batch.rollouts, of_cell(collected.batch, WRITE)
        valid = rollouts.reward[write] >= 0
        first = rollouts.tokens[write, 0] % len(WRITTEN)
        cut = rollouts.truncated[write] | (rollouts.length[write] < 2)
        np.testing.assert_array_equal(valid, (first == 0) & ~cut)
        assert collected.metrics["searches"] > 0
        seen |= {*first.tolist()}
    assert seen == {*range(len(WRITTEN))}


def test_both_roles_search_in_turns():
    task = searching_task()
    chain = recipe("ssp", max_turns=1).experience
    own = numpy_actor.setting(chain, task=task, prompts=8)
    told, valid = dict.fromkeys((SOLVE, WRITE), 0), 0.0
    for collected, _, _ in numpy_actor.walk(chain, Asking(), 4, own=own):
        valid += collected.metrics["valid_questions"]
        for cell in told:
            rows = of_cell(collected.batch, cell)
            replies = collected.batch.rollouts.origin[rows] == TOOL
            assert not (collected.batch.rollouts.mask[rows] & replies).any()
            told[cell] += int(replies.sum())
    assert min(told.values()) > 0 and valid > 0


@pytest.mark.parametrize(("answer", "valid"), [("castle", False), ("Elbe", True)])
def test_a_question_that_names_the_answer_is_none_whatever_the_gold_response_is(answer, valid):
    task = numbered_task()
    given = {"answer": answer, "gold": f"<answer>{answer}</answer>"}
    train = [dataclasses.replace(prompt, **given) for prompt in task.train]
    task = dataclasses.replace(task, train=train, read_problem=None)
    chain = recipe("ssp").experience
    own = numpy_actor.setting(chain, task=task, prompts=8)
    found = numpy_actor.walk(chain, Asking(), own=own)
    assert any(collected.metrics["valid_questions"] for collected, _, _ in found) == valid


def test_who_asks_sees_the_answer_and_how_to_search_but_not_the_question():
    task = load("lookup:people=40,size=32,test_size=8")
    prompt = task.train[0]
    shown = question_to(True).show(prompt, task).text
    assert (
        prompt.answer in shown
        and "<answer>" not in shown
        and "<search>" in shown
        and prompt.text[:20] not in shown
    )
    plain = question_to(False).show(prompt, task).text
    assert shown.startswith(plain) and "<search>" not in plain


def test_a_task_without_tools_is_refused_where_questions_are_searched_for():
    chain = experience(stages=[recipe("ssp", max_turns=4).experience.stages["pose_questions"]])
    with pytest.raises(ValueError, match=r"must have an environment of tools .* got 'numbered'"):
        chain.init(numpy_actor.setting(chain))


def test_a_question_of_lookup_is_to_be_answered_by_searching():
    prompt = load("lookup:people=40,size=32,test_size=8").train[0]
    found = lookup.read_problem(prompt, f"thought ```text\n{QUESTION}\n``` end")
    assert found.text.startswith(QUESTION) and "<search>" in found.text
    assert (found.answer, found.gold) == (prompt.answer, prompt.gold)
    assert found.meta["question"] == QUESTION
    assert lookup.read_problem(prompt, "no question") is None


@pytest.mark.slow
def test_training_on_questions_to_given_answers(tmp_path):
    given = ("least_characters=4", "least_words=1")
    steps = training_runs.on_brackets("ssp", tmp_path, steps=3, hyperparameters=given)
    assert max(training_runs.values(steps, "experience/valid_questions")) > 0
    assert max(training_runs.values(steps, "experience/question_rate")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


# STP


def test_every_target_goes_to_the_example_that_is_most_like_it():
    examples = np.array([[1.0, 0], [0, 1]])
    targets = np.array([[2.0, 0.1], [1, 0], [0, 3], [1, 0.2]])
    # Each gives 2/4, up to a cap of 1 the first example.
    assert matching_weights(examples, targets, cap=1.0).tolist() == [1.0, 1.0]
    assert matching_weights(examples, targets, cap=4.0).tolist() == [1.5, 0.5]
    assert matching_weights(examples[:0], targets, 1.0).tolist() == []


def test_proofs_and_conjectures_are_imitated_by_weight():
    proofs = conjectures = 0
    given = {"hard": 0.3, "margin": 0.0, "most": 0.9, "length_cost": 0.05}
    actor = numpy_actor.NumpyActor(chance=0.4)
    for collected, _, _ in walked("stp", 8, actor, **given):
        batch, rollouts = collected.batch, collected.batch.rollouts
        assert not rollouts.mask.any()
        rows = np.flatnonzero(rollouts.supervised)
        if not len(rows):
            continue
        assert len(rows) == len(batch)
        assert (rollouts.outcome[rows] == 1).all() and (rollouts.reward[rows] > 0).all()
        written = of_cell(batch, WRITE)
        conjectures += len(written)
        proofs += len(batch) - len(written)
        assert collected.metrics["imitated_conjectures"] == len(written)
    assert proofs > 0 and conjectures > 0


def test_what_was_proved_in_an_earlier_step_is_no_target():
    stage = recipe("stp", hard=0.3, margin=0.0).experience.stages["imitate_proofs"]
    chain, scored = experience(stages=[stage]), []

    class Watched(numpy_actor.NumpyActor):
        def score(self, batch, needs, of="current"):
            if list(needs) == ["mean_hidden"]:
                scored.append(len(batch))
            return super().score(batch, needs, of)

    own = numpy_actor.setting(chain)
    for best in (0.0, 0.1):
        state = {"imitate_proofs": np.full(12, best, np.float32)}
        numpy_actor.walk(chain, Watched(chance=0.4), 8, state=state, own=own)
        # Without a target nothing is matched.
        assert bool(scored) == (best == 0)
        scored.clear()


@pytest.mark.slow
def test_training_on_ones_own_proofs(tmp_path):
    given = ("most=1", "hard=0.2", "margin=0")
    steps = training_runs.on_brackets("stp", tmp_path, steps=4, hyperparameters=given)
    assert max(training_runs.values(steps, "experience/conjectures")) > 0
    assert max(training_runs.values(steps, "imitated_tokens")) > 0
    losses = training_runs.values(steps, "imitation_loss")
    assert losses[-1] < losses[0]
