"""Choosing one of N answers at test time."""

import re

import jax
import numpy as np
import pytest
import training_runs

from experiments.evaluate import main
from rlvr_jax.diagnosis import policy_pair
from rlvr_jax.experience import RunActor
from rlvr_jax.experience.choosing import (
    RULES,
    Answered,
    Recorder,
    by_implicit_reward,
    by_likelihood,
    by_verdict,
    chosen_rates,
    sizes_up_to,
)
from rlvr_jax.experience.evaluation import answered
from rlvr_jax.policy import products
from rlvr_jax.runs.loading import load_policy
from rlvr_jax.runs.resolved import with_task


@pytest.fixture(scope="module")
def loaded(model):
    config = training_runs.settings(model, "unused")
    return load_policy(with_task(config, training_runs.sums()), training_runs.sums(), str(model))


def table(prompts=5, samples=13, seed=0):
    """Random answers: the class 0 is right, negative ones are none."""
    random = np.random.default_rng(seed)
    answer = random.integers(-1, 4, (prompts, samples))
    return Answered(answer == 0, answer, random.uniform(size=answer.shape), 0, 0.0)


def slowly(rule, answer, score, strength):
    """Which of some answers a rule chooses, one at a time; None without any."""
    rows = [row for row in range(len(answer)) if rule == "best_of_n" or answer[row] >= 0]
    if not rows:
        return None

    def worth(row):
        own = [other for other in rows if answer[other] == answer[row]]
        mean = np.mean([score[other] for other in own])
        return {
            "majority": len(own),
            "weighted": np.sum([score[other] for other in own]),
            "best_of_n": score[row],
            "lower_bound": mean - strength * np.log(len(answer)) / (len(own) + 1),
        }[rule]

    return max(rows, key=lambda row: (np.float32(worth(row)), -row))


@pytest.mark.thorough
@pytest.mark.parametrize("rule", RULES)
def test_rates_are_those_of_choosing_one_by_one(rule):
    found = table()
    curve = chosen_rates(found, [rule], strength=0.3)[rule]
    assert list(curve) == sizes_up_to(13) == [1, 2, 4, 8]
    for n, rates in curve.items():
        for prompt in range(5):
            hits = []
            for start in range(0, 13 // n * n, n):
                part = slice(start, start + n)
                answer, score = found.answer[prompt, part], found.score[prompt, part]
                chosen = slowly(rule, answer, score, 0.3)
                hits.append(chosen is not None and found.correct[prompt, part][chosen])
            assert rates[prompt] == pytest.approx(np.mean(hits))


@pytest.mark.slow
def test_many_prompts_are_looked_at_in_parts(monkeypatch):
    monkeypatch.setattr("rlvr_jax.experience.choosing.MOST_ROWS", 26)
    found = table(prompts=7)
    parts = chosen_rates(found, ["weighted"])["weighted"]
    monkeypatch.undo()
    whole = chosen_rates(found, ["weighted"])["weighted"]
    for n in parts:
        np.testing.assert_array_equal(parts[n], whole[n])


def test_every_answer_is_scored_once(loaded):
    sampler, calls = loaded.sampler, []

    def score(batch):
        calls.append(len(batch))
        return np.arange(len(batch), dtype=float), 7.0

    def answer(indices, key, first):
        return answered(sampler, loaded.params, loaded.test_table, indices, key, first)

    recorder = Recorder(answer, score)
    key = jax.random.key(0)
    recorder(np.array([0, 1, 2, 3]), key, np.array([0, 0, 0, 0]))
    recorder(np.array([0, 1, 2, 3]), key, np.array([4, 4, 0, 0]))
    # The second call was filled up with answers that were known.
    assert calls == [16, 8] and recorder.tokens == 14
    recorder(np.array([2, 3, 0, 1]), key, np.array([4, 4, 0, 0]))
    told = recorder.answered()
    assert told.correct.shape == (4, 8) and told.unscored == 0 and told.tokens == 21
    assert (told.answer >= -1).all() and len(np.unique(told.answer[0])) > 2


def rows(loaded):
    numbers = np.arange(4)
    return answered(loaded.sampler, loaded.params, loaded.test_table, numbers, jax.random.key(1))


def test_likelihood_is_the_mean_of_the_tokens(loaded):
    batch = rows(loaded)
    score, tokens = by_likelihood(batch)
    logp = [
        batch.rollouts.behaviour_logp[row, : batch.rollouts.length[row]].mean() for row in range(16)
    ]
    np.testing.assert_allclose(score, np.exp(logp), rtol=1e-5)
    assert tokens == 0


@pytest.mark.thorough
def test_a_policy_beside_itself_has_no_opinion_and_another_one_has(loaded, tmp_path):
    batch = rows(loaded)
    own = loaded.model, loaded.params
    score, tokens = by_implicit_reward(own, own, 0.05)(batch)
    np.testing.assert_allclose(score, 0.5, atol=1e-6)
    rollouts = batch.rollouts
    assert tokens == 2 * (rollouts.prompt_length.sum() + rollouts.length.sum())
    folder = training_runs.write_policy(tmp_path, seed=1)
    other = load_policy(
        with_task(training_runs.settings(folder, "unused"), training_runs.sums()),
        training_runs.sums(),
        str(folder),
    )
    score, _ = by_implicit_reward((other.model, other.params), own, 0.05)(batch)
    assert len(np.unique(score)) > 8 and (score > 0).all() and (score < 1).all()
    with pytest.raises(ValueError, match="scale must be positive, got 0"):
        by_implicit_reward(own, own, 0.0)


def test_a_verdict_is_the_odds_of_yes(loaded):
    batch = rows(loaded)
    actor = RunActor(loaded.sampler, loaded.params, {"plain": loaded.test_table}, 0, None)
    score, tokens = by_verdict(actor, loaded.model, loaded.params, "+ =", ("8", "7"))(batch)
    other, _ = by_verdict(actor, loaded.model, loaded.params, "+ =", ("7", "8"))(batch)
    whole = ~batch.rollouts.truncated
    np.testing.assert_allclose(score[whole] + other[whole], 1, atol=1e-6)
    assert (score[~whole] == 0).all() and len(np.unique(score[whole])) > 1
    context = batch.rollouts.prompt_length.sum() + batch.rollouts.length.sum()
    assert tokens == context + 2 * 16


def test_options_of_the_compiler_reach_what_scores_answers(loaded, monkeypatch):
    batch, own = rows(loaded), (loaded.model, loaded.params)
    monkeypatch.setattr(products, "compiler_options", lambda dtype: {"no_such_option": True})
    monkeypatch.setattr(policy_pair, "_scoring", policy_pair._scoring.__wrapped__)
    actor = RunActor(loaded.sampler, loaded.params, {"plain": loaded.test_table}, 0, None)
    for score in (
        by_verdict(actor, *own, "+ =", ("8", "7")),
        by_implicit_reward(own, own, 1),
        lambda batch: policy_pair.score_answers(*own, batch.rollouts),
    ):
        with pytest.raises(Exception, match="no_such_option"):
            score(batch)


def asked(model, *more):
    """The command line of a small evaluation."""
    line = ["--model", str(model), "--task", "training_runs:sums", "--prompts", "4"]
    return [*line, "--samples", "4", *more]


JUDGED = ("--choose", "best_of_n", "--scorer", "judge", "--judge", "own_judges:longer")


def curve(printed, name):
    return [float(mean) for mean in re.findall(rf"choice/{name}@\d+ +([0-9.]+) \[", printed)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "more",
    [
        [],
        ["--scorer", "verdict", "--question", "+ =", "--yes", "8", "--no", "7"],
        ["--scorer", "judge", "--judge", "own_judges:longer", "--judge-prompt", "PROMPT"],
        ["--scorer", "implicit_prm", "--reward-model", "MODEL"],
    ],
)
def test_curves_are_printed_for_every_rule(model, more, capsys, tmp_path):
    (tmp_path / "prompt.txt").write_text("{response} =")
    known = {"PROMPT": str(tmp_path / "prompt.txt"), "MODEL": str(model)}
    more = [known.get(word, word) for word in more]
    main(asked(model, "--choose", "weighted", "best_of_n", "lower_bound", *more))
    printed = capsys.readouterr().out
    for name in ("pass", "majority", "weighted", "best_of_n", "lower_bound"):
        assert len(curve(printed, name)) == 4, printed
    assert curve(printed, "pass")[0] == curve(printed, "best_of_n")[0]
    assert curve(printed, "pass")[-1] >= curve(printed, "best_of_n")[-1]
    tokens = int(re.search(r"chosen by \w+: (\d+) tokens", printed)[1])
    assert (tokens > 0) == (more[1:2] in (["verdict"], ["implicit_prm"]))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--choose", "best"], "choose must be among majority, .* got 'best'"),
        (["--scorer", "verifier"], "scorer must be among logp, .* got 'verifier'"),
        (["--choose", "weighted", "--scorer", "judge"], "--judge must be given"),
        ([*JUDGED, "--judge-prompt", "pairs"], "judge-prompt must be a request .* got 'pairs'"),
        ([*JUDGED, "--judge-prompt", "again"], "judge-prompt must be a request .* got 'again'"),
        (["--choose", "weighted", "--scorer", "implicit_prm"], "--reward-model must be given"),
    ],
)
def test_what_cannot_choose_is_refused(model, more, said):
    with pytest.raises(ValueError, match=said):
        main(asked(model, *more))


def test_votes_need_answers(model):
    line = asked(model, "--choose", "majority")
    line[line.index("training_runs:sums")] = "text_tasks:lists"
    with pytest.raises(ValueError, match="choose must be best_of_n for task 'text_tasks:lists'"):
        main(line)
