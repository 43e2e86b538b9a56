"""NuRL: a prompt without a correct response is sampled again with an abstract hint."""

import json

import numpy as np
import pytest
import training_runs

from experiments import hints as command
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe
from rlvr_jax.methods.guidance.nurl import no_progress, progress_after
from rlvr_jax.tasks import load
from rlvr_jax.tasks.derived.hints import gives_away


@pytest.mark.parametrize(
    ("rates", "window", "steps"),
    [
        # The means of two steps are 0.15 and 0.35; then 0.25 and 0.45, 0.4 and 0.5, 0.5 and 0.5.
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.5, 0.5, 0.5], 2, 7),
        ([0.1, 0.2, float("nan"), 0.3, 0.3], 1, 5),
        ([0.5, 0.4, 0.9], 1, 2),
        ([0.1, 0.3, 0.5], 1, None),
    ],
)
def test_training_has_converged_when_the_pass_rate_no_longer_rises(rates, window, steps):
    state, found = no_progress(window), None
    for step, rate in enumerate(rates, start=1):
        state = progress_after(state, rate, least_gain=0.05)
        found = found or (step if state.converged else None)
    assert found == steps and bool(state.converged) == (steps is not None)


def test_groups_are_drawn_anew_with_hints_after_convergence():
    chain, again = recipe("nurl", window=1, least_gain=2.0).experience, 0
    actor = numpy_actor.NumpyActor(chance=-0.2)
    for step, (collected, told, _) in enumerate(numpy_actor.walk(chain, actor, steps=5)):
        batch = collected.batch
        labels = batch.by_group(np.array([a.view.label != "plain" for a in batch.requests]), False)
        incorrect = (collected.seen[0].outcomes() == 0).all(axis=1)
        np.testing.assert_array_equal(labels[:, :3].all(axis=1), incorrect & (step >= 2))
        assert collected.metrics["converged"] == (step >= 2)
        assert not labels[:, 3].any()
        again += int(labels.sum())
        assert told["pool_prompts"] <= 12
    assert again > 0


def test_solved_prompts_leave_the_pool_at_convergence():
    chain = recipe("nurl", window=1, least_gain=2.0).experience
    actor = numpy_actor.NumpyActor(chance=2.0)
    walked = numpy_actor.walk(chain, actor, steps=3)
    ended = [collected.seen[0].outcomes().min(axis=1) for collected, _, _ in walked]
    solved = int(sum((rates == 1).sum() for rates in ended[:2]))
    assert 0 < solved < 8
    pools = [metrics["pool_prompts"] for _, metrics, _ in walked]
    assert pools[0] == 12 and walked[2][2]["unsolved_pool"][0].pool.sum() == 12 - solved


def test_without_convergence_no_hint_is_shown():
    chain = recipe("nurl", window=9).experience
    for collected, _, _ in numpy_actor.walk(chain, numpy_actor.NumpyActor(chance=-0.2), steps=5):
        assert collected.metrics["redrawn_fraction"] == collected.metrics["converged"] == 0


NAME = "arithmetic"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A policy that writes one of few words at random, among which are most answers."""
    texts = [prompt.text for prompt in (*load(NAME).train, *load(NAME).test)]
    requests = ["The answer: Explain why this is correct. An explanation: Write one sentence with"]
    words = {word for text in [*texts, *requests] for word in text.split()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_runs, "WORDS", [*training_runs.WORDS[:3], *sorted(words)])
        folder = tmp_path_factory.mktemp("model")
        yield training_runs.write_policy(folder, max_positions=256)


def test_the_policy_writes_hints_and_those_with_the_answer_are_left_out(model, tmp_path, capsys):
    file = tmp_path / "hints.jsonl"
    own = ["--task", NAME, "--model", str(model), "--tokens", "64", "--tries", "1"]
    command.main([*own, "--prompts", "64", "--out", str(file)])
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    told = capsys.readouterr().out
    assert f"hints to {len(rows)} of 64 prompts" in told and "with the answer" in told
    made = load(f"hints:{file}")
    assert [prompt.hints for prompt in made.train] == [(row["hint"],) for row in rows]
    assert not any(gives_away(prompt.hints[0], prompt) for prompt in made.train)
    assert made.test == load(NAME).test and made.fingerprint() != load(NAME).fingerprint()
    with pytest.raises(ValueError, match=r"no hint to 4 prompts .* 4 truncated\)\. Use a policy"):
        command.main([*own[:-4], "--tokens", "1", "--prompts", "4", "--out", str(file)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": "What?"}, "prompts of .* must be train prompts of 'arithmetic'"),
        (
            {"hint": "It is 4."},
            "must not contain the answer, got 'It is 4.' for 'What is 2 times 2",
        ),
        ({"hint": 4}, "'hint' must be a text"),
    ],
)
def test_a_file_of_hints_that_does_not_fit_is_refused(change, message, tmp_path):
    path = tmp_path / "one.jsonl"
    prompt = next(prompt for prompt in load(NAME).train if prompt.answer == 4)
    path.write_text(json.dumps({"task": NAME, "prompt": prompt.text, "hint": "Add."} | change))
    with pytest.raises(ValueError, match=message):
        load(f"hints:{path}")


@pytest.mark.slow
def test_training_with_hints_for_what_nobody_answers(tmp_path):
    given = ("window=1", "least_gain=1")
    steps = training_runs.on_brackets("nurl", tmp_path, steps=4, hyperparameters=given)
    fractions = training_runs.values(steps, "experience/redrawn_fraction")
    assert fractions[:2] == [0, 0] and max(fractions[2:]) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
