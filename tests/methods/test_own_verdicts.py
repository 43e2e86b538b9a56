"""LaSeR, RL^V, RLBFF: one token behind a response; ARES, DSDR, CGPO: what else they read."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import training_runs
from training_runs import trained, values

from rlvr_jax import policy
from rlvr_jax.experience import ask_verdict, experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.exploration.dsdr import equations, find_formulas
from rlvr_jax.methods.judges.rlbff import reward_odds
from rlvr_jax.methods.rewards.ares import mark_triggers
from rlvr_jax.training.statistics import statistics
from rlvr_jax.types import Rollouts, replace

CLOSE = 2e-5
"""Of float32 log-probs by two passes of different widths."""


def rows(asked):
    """Three responses of different lengths, and what is asked behind them."""
    random = np.random.default_rng(3)
    tokens = random.integers(5, 13, (3, 5)).astype(np.int32)
    length = np.array([5, 2, 3], np.int32)
    return Rollouts.of_responses(
        tokens,
        np.arange(5)[None] < length[:, None],
        np.zeros(3),
        np.arange(3),
        prompt_tokens=random.integers(5, 13, (3, 4)).astype(np.int32),
        prompt_length=np.array([4, 3, 2], np.int32),
        temperature=np.full((3, 5), 0.5, np.float32),
        asked_tokens=np.tile(np.array(asked, np.int32), (3, 1)).reshape(3, -1),
        asked_length=np.full(3, len(asked), np.int32),
        verdict_ids=np.tile(np.array([6, 9], np.int32), (3, 1)),
    )


@pytest.mark.parametrize("asked", [[], pytest.param([3, 4], marks=pytest.mark.slow)])
def test_a_verdict_is_the_next_token_behind_what_is_asked(model, asked):
    own, params = policy.load(model)
    batch = rows(asked)
    measure = jax.jit(lambda *given: statistics(own, *given, {"logp", "verdict_logp"}))
    found = measure(params, batch).verdict_logp
    texts = [
        [
            *batch.prompt_tokens[row, : batch.prompt_length[row]].tolist(),
            *batch.tokens[row, : batch.length[row]].tolist(),
            *asked,
        ]
        for row in range(3)
    ]
    # A row for each text and each verdict, all in one pass.
    alone = Rollouts.of_responses(
        np.tile(np.array([[6], [9]], np.int32), (3, 1)),
        np.ones((6, 1), bool),
        np.zeros(6),
        np.arange(6),
        prompt_tokens=np.repeat(np.int32([text + [0] * (12 - len(text)) for text in texts]), 2, 0),
        prompt_length=np.repeat(np.int32([len(text) for text in texts]), 2),
    )
    wanted = jax.jit(policy.score, static_argnums=0)(own, params, alone).logp.reshape(3, 2)
    np.testing.assert_allclose(found, wanted, atol=CLOSE)


@pytest.mark.slow
def test_its_gradient_reaches_all_that_stands_before_it(model):
    own, params = policy.load(model)

    def first(params, tokens):
        batch = replace(rows([3, 4]), tokens=tokens)
        return statistics(own, params, batch, {"logp", "verdict_logp"}).verdict_logp[1, 0]

    batch = rows([3, 4])
    grads = jax.grad(first)(params, batch.tokens)
    assert all(bool(jnp.any(leaf != 0)) for leaf in jax.tree.leaves(grads)[:3])
    # What stands behind the response's end is nobody's.
    changed = batch.tokens.at[1, 3].set(12)
    assert first(params, changed) == first(params, batch.tokens)
    assert first(params, batch.tokens.at[1, 1].set(12)) != first(params, batch.tokens)


@pytest.mark.slow  # ten seconds
def test_a_policy_rewards_itself(model, tmp_path):
    given = ("token=<pad>", "reference_logp=-3.0", "min_std=0.0")
    lines = trained(model, tmp_path / "run", "laser", *given)
    assert all(values(lines, "experience/self_reward"))
    assert any(values(lines, "self_reward/right")) and any(values(lines, "self_reward/wrong"))


@pytest.mark.slow
def test_pieces_of_an_update_change_nothing(model, tmp_path):
    given = ("question=+ =", "yes=8", "no=7")
    one, four = (trained(model, tmp_path / str(n), "rl_v", *given, micro_batches=n) for n in (1, 4))
    for name in ("verdict_loss", "gradient_norm"):
        np.testing.assert_allclose(values(one, name), values(four, name), rtol=1e-4)
    # Two tokens of fourteen, before anything is learned.
    assert values(one, "verdict_loss")[0] == pytest.approx(np.log(14), abs=0.5)


def test_odds_of_the_first_policy_are_a_reward(model, tmp_path):
    given = ("principle=+ =", "yes=8", "no=7")
    lines = trained(model, tmp_path / "run", "rlbff", *given)
    assert values(lines, "info/odds") == pytest.approx(values(lines, "experience/reward/odds"))
    with pytest.raises(ValueError, match=r"answers must be different tokens .*' Yes', ' No'"):
        trained(model, tmp_path / "none", "rlbff", *given[:1])


def test_odds_are_asked_of_the_first_policy_for_rows_of_every_round():
    chain = experience(stages=[reward_odds("so?", ["a", "b"])])
    ((collected, _, _),) = numpy_actor.walk(chain, steps=1)
    actor, batch = numpy_actor.NumpyActor(), collected.batch
    asked = ask_verdict(["a", "b"], "so?").apply(batch, actor, (), None)[0]
    logp = actor.score(asked, ["verdict_logp"], "start")["verdict_logp"]
    told = [grade.info["odds"] for grade in batch.grades]
    np.testing.assert_allclose(told, logp[:, 0] - logp[:, 1], rtol=1e-6)
    assert len(set(told)) > 1


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ask_verdict("yes"), "answers must be texts"),
        (lambda: ask_verdict([]), "answers must be texts"),
        (lambda: reward_odds("?", ["a"]), "answers must be yes and no"),
        (lambda: mark_triggers([]), "words must be at least one"),
        (lambda: find_formulas(most=0), "most must be"),
    ],
)
def test_what_cannot_be_asked_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize("answers", [["yes"], ["a", "a"]])
def test_answers_that_are_no_tokens_are_refused_when_a_run_draws(answers):
    with pytest.raises(ValueError, match="answers must be"):
        numpy_actor.walk(experience(stages=[ask_verdict(answers)]), steps=1)


def test_likeliest_words_trigger_whatever_was_drawn():
    chain = experience(stages=[mark_triggers(["a", "longer"])])
    ((collected, _, _),) = numpy_actor.walk(chain, steps=1)
    batch, actor = collected.batch, numpy_actor.NumpyActor()
    (letter,), (capital,) = actor.encode("a"), actor.encode("A")
    likeliest = actor.score(batch, ["max_id"])["max_id"]
    wanted = np.isin(likeliest, [letter, capital]) & batch.rollouts.mask
    np.testing.assert_array_equal(batch.rollouts.trigger, wanted)
    assert wanted.any() and not wanted.all()
    with pytest.raises(ValueError, match=r"got \['longer'\], of which none is one"):
        numpy_actor.walk(experience(stages=[mark_triggers(["longer"])]), steps=1)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("so 3 + 4 = 7, and x = y = 2.", ["3+4=7", "x=y=2"]),
        (r"with $a^2 = b$ and \(c\) or \[d\]", ["a^2=b", "c", "d"]),
        ("five apples = many, =", []),
        ("", []),
    ],
)
def test_formulas_are_found(text, found):
    assert equations(text) == found


def test_equal_formulas_have_one_id():
    chain = experience(stages=[find_formulas(str.split, most=3)])
    ((collected, _, _),) = numpy_actor.walk(chain, steps=1)
    ids, texts = collected.batch.rollouts.formulas, collected.batch.responses
    known = {}
    for row, response in zip(ids, texts, strict=True):
        words = response.text.split()[:3]
        assert np.sum(row >= 0) == len(words)
        for number, word in zip(row.tolist(), words, strict=False):
            assert known.setdefault(word, number) == number
    assert len(set(known.values())) == len(known) > 3


def test_second_thoughts_are_counted(model, tmp_path):
    lines = trained(model, tmp_path / "run", "ares", "triggers=3 5 +", "percentile=10.0")
    assert all(count > 0 for count in values(lines, "experience/triggers"))


@pytest.mark.slow
def test_right_answers_that_differ_are_paid(model, tmp_path):
    lines = trained(model, tmp_path / "run", "dsdr", samples_per_prompt=8)
    assert len(values(lines, "experience/formulas")) == 2
    reward, outcome = (np.array(values(lines, name)) for name in ("reward", "outcome"))
    assert np.all(reward >= outcome) and np.any(reward > outcome)
    # What is mixed has a curve of its own before.
    diversity = np.array(values(lines, "experience/reward/diversity"))
    np.testing.assert_allclose(reward, outcome + 0.1 * diversity, rtol=1e-5)


def judged_by(judge, tmp_path):
    """A run of CGPO whose only judge is one of the tests' own."""
    return training_runs.on_brackets(
        "cgpo",
        tmp_path,
        hyperparameters=("judges=0",),
        judge=f"own_judges:{judge}",
        samples_per_prompt=4,
    )


def test_rewards_are_compared_with_those_of_worked_solutions(tmp_path):
    steps = judged_by("thirds", tmp_path)
    assert max(values(steps, "gradient_norm")) > 0
    assert all(count == 8 for count in values(steps, "experience/traces"))
    assert all(0 < share < 1 for share in values(steps, "info/judge"))


def test_a_judge_that_is_down_accepts_nothing(tmp_path):
    steps = judged_by("broken", tmp_path)
    # Of four rows of a group three were drawn, and one was given.
    traces = np.array(values(steps, "experience/traces"))
    np.testing.assert_array_equal(values(steps, "experience/rows_without_reward"), 3 * traces)


def test_records_of_what_is_asked_are_as_wide_as_the_question():
    batch = numpy_actor.walk(experience(stages=[ask_verdict(["a"])]), steps=1)[0][0].batch
    assert batch.rollouts.asked_tokens.shape == (16, 0)
    assert dataclasses.asdict(batch.rollouts)["verdict_ids"].shape == (16, 1)
