"""Held-out evaluation: which prompts, how many samples, and what is counted."""

import dataclasses

import jax
import numpy as np
import pytest
import training_runs

from experiments.evaluate import main
from rlvr_jax.analysis import pass_at_k
from rlvr_jax.experience.evaluation import evaluate, evaluation_sampler, held_out_indices, ks_for
from rlvr_jax.experience.sampling import Sampler
from rlvr_jax.runs.loading import load_policy
from rlvr_jax.runs.loop import evaluate_run
from rlvr_jax.runs.resolved import with_task
from rlvr_jax.runs.step import take_step
from rlvr_jax.tasks import Grade, Prompt, Task
from rlvr_jax.training.layout import make_reshard


def task_of(kinds, mixture=None):
    test = [Prompt(f"{number}", kind=kind) for number, kind in enumerate(kinds)]
    train = [Prompt(f"train {kind}", kind=kind) for kind in sorted(set(kinds) | set(mixture or {}))]
    return Task("kinds", train, test, lambda prompts, responses: [], mixture=mixture or {})


def count(indices, kinds):
    return {kind: sum(kinds[i] == kind for i in indices) for kind in sorted(set(kinds))}


def test_prompts_are_chosen_in_the_shares_of_the_test_set():
    kinds = ["easy"] * 60 + ["hard"] * 20
    indices = held_out_indices(task_of(kinds), 40)
    assert count(indices, kinds) == {"easy": 30, "hard": 10}
    assert (np.diff(indices) > 0).all()


def test_prompts_are_chosen_in_the_shares_of_the_mixture():
    kinds = ["easy"] * 60 + ["hard"] * 20
    indices = held_out_indices(task_of(kinds, {"easy": 1.0, "hard": 3.0}), 20)
    assert count(indices, kinds) == {"easy": 5, "hard": 15}


@pytest.mark.parametrize("wanted", range(1, 12))
def test_as_many_prompts_are_chosen_as_are_asked_for(wanted):
    kinds = ["a", "b", "c", "d"] * 3
    assert len(held_out_indices(task_of(kinds), wanted)) == wanted


def test_a_small_test_set_is_taken_whole():
    assert held_out_indices(task_of(["a"] * 5), 256).tolist() == [0, 1, 2, 3, 4]


def test_a_mixture_without_any_kind_of_the_test_set_is_refused():
    task = task_of(["easy"], {"easy": 0.0, "hard": 1.0})
    with pytest.raises(
        ValueError, match=r"mixture must have a positive fraction for a kind.*\(easy\)"
    ):
        held_out_indices(task, 4)


def test_pass_at_k_is_given_for_k_up_to_half_of_the_samples():
    assert ks_for(1) == ks_for(15) == [1]
    assert ks_for(16) == [1, 8]
    assert ks_for(64) == [1, 8, 32]


def evaluated(model, task, indices, samples, seed=0, **changes):
    config = training_runs.settings(model, "unused", **changes)
    loaded = load_policy(with_task(config, task), task, str(model))
    key = jax.random.key(seed)
    return evaluate(loaded.sampler, loaded.params, loaded.test_table, indices, samples, key).metrics


def test_rates_are_those_of_the_grades(model):
    seen = []

    def verify(prompts, responses):
        grades = training_runs.verify(prompts, responses)
        seen.extend(
            (p.text, g.outcome, len(r.text.split()))
            for p, r, g in zip(prompts, responses, grades, strict=True)
        )
        return grades

    task = dataclasses.replace(training_runs.sums(), verify=verify)
    # Four prompts are sampled at a time, five are asked.
    result = evaluated(model, task, np.arange(5), samples=16)
    answers = {prompt.text: [s for s in seen if s[0] == prompt.text][:16] for prompt in task.test}
    correct = np.array([sum(s[1] for s in rows) for rows in answers.values()])
    assert result["held_out/n"] == 16
    for k in (1, 8):
        expected = pass_at_k(np.full(5, 16), correct.astype(int), k).mean()
        np.testing.assert_allclose(result[f"held_out/pass@{k}"], expected)
    words = [s[2] for rows in answers.values() for s in rows]
    np.testing.assert_allclose(result["held_out/info/words"], np.mean(words))


@pytest.mark.parametrize(("prompts", "calls"), [(5, 4), (3, 3), (1, 1), (4, 3)])
def test_every_sample_is_drawn_once_and_only_the_last_call_is_filled_up(
    model, monkeypatch, prompts, calls
):
    asked, draw = [], Sampler.draw

    def watched(self, params, tokens, length, numbers, key, *, first_sample):
        asked.append(list(zip(numbers.tolist(), first_sample.tolist(), strict=True)))
        return draw(self, params, tokens, length, numbers, key, first_sample=first_sample)

    monkeypatch.setattr(Sampler, "draw", watched)
    result = evaluated(model, training_runs.sums(), np.arange(prompts), samples=12)
    assert result["held_out/n"] == 12
    assert [len(call) for call in asked] == [4] * calls  # with four samples each
    wanted = [(prompt, first) for prompt in range(prompts) for first in (0, 4, 8)]
    assert sorted([one for call in asked for one in call][: len(wanted)]) == wanted


def test_prompts_of_kinds_without_a_share_are_refused_before_any_is_drawn(model, monkeypatch):
    monkeypatch.setattr(Sampler, "draw", None)
    task = training_runs.sums()
    task = dataclasses.replace(task, mixture={task.train[0].kind: 1.0})
    others = [i for i, p in enumerate(task.test) if p.kind != task.train[0].kind]
    with pytest.raises(ValueError, match=r"mixture must .* a positive fraction .* \(large\)"):
        evaluated(model, task, np.array(others), samples=4)


def many(model, samples, **changes):
    """The sampler of a run for an evaluation of its five test prompts, and its parameters."""
    config = training_runs.settings(model, "unused", **changes)
    loaded = load_policy(with_task(config, training_runs.sums()), training_runs.sums(), str(model))
    sampler = evaluation_sampler(
        loaded.sampler, 5, samples, sampling_batches=config.sampling.sampling_batches
    )
    return loaded, sampler, make_reshard(loaded.model, sampler.model)(loaded.params)


@pytest.mark.thorough
def test_a_large_evaluation_draws_in_turn_on_every_core_and_finds_the_same(model):
    loaded, sampler, params = many(model, samples=250)
    cores = jax.device_count()
    # 4 prompts x 4 samples on a device; 5 prompts are filled up to one for each
    assert (sampler.model.mesh.size, sampler.at_once) == (cores, 16 * cores)
    assert (sampler.num_prompts, sampler.samples) == (cores, 252)
    wanted = evaluated(model, training_runs.sums(), np.arange(5), samples=250)
    key = jax.random.key(0)
    found = evaluate(sampler, params, loaded.test_table, np.arange(5), 250, key).metrics
    assert found.keys() == wanted.keys() and found["held_out/n"] == 252
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, err_msg=name)


@pytest.mark.slow
def test_a_run_finds_the_same_in_turn_also_the_way_from_its_start(model):
    changes = dict(evaluation_prompts=5, evaluation_samples=750)
    run = training_runs.prepared(training_runs.settings(model, "unused", **changes))
    assert run.evaluator.at_once
    state = take_step(run, run.initial_state(), 0).state
    found = evaluate_run(run, state, 1).metrics
    start = run.start.sampler
    programs = dataclasses.replace(run.programs, reshard_evaluator=run.programs.reshard)
    plain = dataclasses.replace(run, evaluator=start, programs=programs)
    wanted = evaluate_run(plain, state, 1).metrics
    assert wanted["held_out/kl_to_start/k1"] > 0.01
    assert found.keys() == wanted.keys()
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-4, err_msg=name)


def test_an_evaluation_of_very_many_rows_takes_several_calls(model):
    config = training_runs.settings(model, "unused")
    sampler = load_policy(
        with_task(config, training_runs.sums()), training_runs.sums(), str(model)
    ).sampler
    cores = jax.device_count()
    most = 32 * 16 * cores  # rows of a call
    large = evaluation_sampler(sampler, 12 * cores, most // (4 * cores))
    assert large.num_prompts * large.samples == most
    assert large.num_prompts == 4 * cores


@pytest.mark.parametrize(
    ("samples", "changes"),
    [(4, {}), (250, {"sampling_batches": 2}), (250, {"mesh": "data=4,fsdp=2"})],
)
def test_a_small_evaluation_waves_and_shared_rows_keep_the_run_s_sampler(model, samples, changes):
    loaded, sampler, _ = many(model, samples, **changes)
    assert sampler is loaded.sampler


def test_rows_in_turn_keep_the_mesh_that_was_asked_for(model):
    loaded, sampler, _ = many(model, samples=250, mesh="data=8")
    assert (sampler.model.mesh, sampler.at_once) == (loaded.sampler.model.mesh, 16)


def test_samples_are_rounded_up_to_whole_calls(model):
    assert evaluated(model, training_runs.sums(), np.arange(4), samples=5)["held_out/n"] == 8


def test_prompts_that_fill_the_last_call_are_not_counted(model):
    task = dataclasses.replace(
        training_runs.sums(),
        verify=lambda prompts, responses: [Grade(float(p.text.startswith("3"))) for p in prompts],
    )
    texts = [prompt.text for prompt in task.test]
    correct_rows = sum(text.startswith("3") for text in texts[:5])
    result = evaluated(model, task, np.arange(5), samples=4)
    np.testing.assert_allclose(result["held_out/pass@1"], correct_rows / 5)
    alone = evaluated(model, task, np.arange(4), samples=4)
    both = evaluated(model, task, np.array([0, 1, 2, 3, 0]), samples=4)
    assert alone["held_out/entropy"] != both["held_out/entropy"]


def test_kinds_count_by_their_share_of_the_mixture_and_not_by_their_prompts(model):
    kinds = {"1": "ones", "2": "others"}
    task = training_runs.sums()
    test = [dataclasses.replace(p, kind=kinds.get(p.text[0], "others")) for p in task.test]
    grade = lambda prompts, responses: [Grade(float(p.kind == "ones")) for p in prompts]  # noqa: E731
    mixture = {"ones": 0.75, "others": 0.25}
    train = [dataclasses.replace(p, kind=k) for p, k in zip(task.train, mixture, strict=False)]
    task = dataclasses.replace(task, train=train, test=test, verify=grade, mixture=mixture)
    asked = [i for i, p in enumerate(test) if p.kind == "ones"][:1]
    asked += [i for i, p in enumerate(test) if p.kind == "others"][:3]
    result = evaluated(model, task, np.array(asked), samples=4)
    assert result["held_out/ones/pass@1"] == 1
    assert result["held_out/others/pass@1"] == 0
    np.testing.assert_allclose(result["held_out/pass@1"], 0.75)
    plain = evaluated(model, dataclasses.replace(task, mixture={}), np.array(asked), samples=4)
    np.testing.assert_allclose(plain["held_out/pass@1"], 0.25)


@pytest.mark.thorough
def test_the_command_gives_the_same_numbers_on_a_mesh(model, capsys):
    line = ["--model", str(model), "--task", "training_runs:sums", "--prompts", "5"]
    said = []
    for mesh in ("", "data=4,tensor=2"):
        main([*line, "--samples", "4", "--mesh", mesh])
        said.append(capsys.readouterr().out)
    assert "held_out/pass@1" in said[0]
    assert said[0] == said[1]


def test_counts_are_prompt_by_prompt_and_give_the_rates(model):
    config = training_runs.settings(model, "unused")
    task = dataclasses.replace(training_runs.sums(), mixture={"small": 0.9, "large": 0.1})
    loaded = load_policy(with_task(config, task), task, str(model))
    key = jax.random.key(3)
    asked = np.array([4, 0, 2])
    found = evaluate(loaded.sampler, loaded.params, loaded.test_table, asked, 12, key)
    assert found.prompts == [4, 0, 2] and len(found.correct) == 3
    rate = np.dot(found.correct, found.weights) / found.n
    assert found.metrics["held_out/pass@1"] == pytest.approx(rate)
    assert found.counts().keys() == {"n", "prompts", "correct", "ungraded", "weights"}


def test_ungraded_responses_are_not_correct_and_counted_prompt_by_prompt(model):
    config = training_runs.settings(model, "unused")

    def verify(prompts, responses):
        return [
            Grade(None) if prompt.answer % 3 == 0 or not response.text else Grade(1.0)
            for prompt, response in zip(prompts, responses, strict=True)
        ]

    task = dataclasses.replace(training_runs.sums(), verify=verify)
    loaded = load_policy(with_task(config, task), task, str(model))
    asked = np.arange(len(task.test))
    key = jax.random.key(3)
    found = evaluate(loaded.sampler, loaded.params, loaded.test_table, asked, 12, key)
    whole = [found.n if prompt.answer % 3 == 0 else None for prompt in task.test]
    assert found.n in whole and None in whole
    for number, ungraded, correct in zip(whole, found.ungraded, found.correct, strict=True):
        assert ungraded + correct == found.n and number in (None, ungraded)
    assert found.metrics["held_out/verifier_no_verdict"] == sum(found.ungraded)
    assert found.metrics["held_out/pass@1"] == pytest.approx(
        np.dot(found.correct, found.weights) / found.n
    )


@pytest.mark.parametrize(("outcome", "rate"), [(0.5, 0.0), (0.51, 1.0)])
def test_a_response_is_correct_above_one_half(model, outcome, rate):
    def verify(prompts, responses):
        return [Grade(outcome) for _ in responses]

    task = dataclasses.replace(training_runs.sums(), verify=verify)
    assert evaluated(model, task, np.arange(4), 4, seed=0)["held_out/pass@1"] == rate


def test_the_same_key_gives_the_same_numbers(model):
    first, again, other = (
        evaluated(model, training_runs.sums(), np.arange(4), 4, seed=seed) for seed in (0, 0, 1)
    )
    assert first == again != other
