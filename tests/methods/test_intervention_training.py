"""InT: the policy proposes the step that corrects its first error, and imitates it."""

from dataclasses import replace

import numpy as np
import pytest
import training_runs

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.methods import recipe
from rlvr_jax.methods.guidance.intervention_training import (
    error_request,
    read_intervention,
    steps_of,
)
from rlvr_jax.tasks import Prompt

PATHS = "hinted_brackets:train=64,judge_paths=true"


def test_interventions_are_imitated_under_the_prompt_as_it_is():
    chain = recipe("intervention_training", finder="scores", continuations=4).experience
    assert imitated_rows(chain, numpy_actor.NumpyActor(chance=0.3)) > 0


def imitated_rows(chain, actor):
    """The number of imitated rows of eight steps, after a check of each."""
    imitated = 0
    for collected, _, _ in numpy_actor.walk(chain, actor, steps=8):
        rollouts = collected.batch.rollouts
        assert not rollouts.mask.any()
        if collected.metrics["accepted_interventions"]:
            assert rollouts.records["supervised"].all()
            assert {request.view.label for request in collected.batch.requests} == {"plain"}
            assert (rollouts.length > 0).all()
            imitated += len(rollouts.length)
    return imitated


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("7 * 8 = 54\n\nSo 54.", ["7 * 8 = 54\n\n", "So 54."]),
        ("a\nb\n  \n\n c", ["a\nb\n  \n\n", " c"]),
        ("one step", ["one step"]),
        (" \n\n", []),
    ],
)
def test_steps_of_a_response_are_separated_by_blank_lines(text, steps):
    assert steps_of(text) == steps


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("Step 2: 7 * 8 = 56", (1, "7 * 8 = 56")),
        ("step 1. So 56. \nStep 2: no", (0, "So 56.")),
        ("Step 3: there are two", None),
        ("Step 0: there are two", None),
        ("Step 2:", None),
        ("The first step is incorrect.", None),
    ],
)
def test_a_reply_is_the_number_of_a_step_and_a_line_in_its_place(reply, found):
    assert read_intervention(reply, steps=2) == found


def test_the_line_of_a_truncated_reply_must_have_ended():
    assert read_intervention("Step 1: 7 * 8", steps=1, truncated=True) is None
    assert read_intervention("Step 1: 56\nThat", steps=1, truncated=True) == (0, "56")


def test_the_request_shows_the_solution_and_the_numbered_steps():
    prompt = Prompt("7 * 8?", solution=["7 * 8", " = 56"])
    shown = error_request(("7 * 8 = 54\n\n", "So 54.")).show(prompt, None)
    assert shown.text.startswith("7 * 8?\n\n") and "7 * 8 = 56" in shown.text
    assert "\nStep 1: 7 * 8 = 54\nStep 2: So 54.\n" in shown.text and shown.opening == "Step"


class Paragraphs(numpy_actor.Words):
    """Words among which are a blank line, and the tokens of "Step" as "Step 2:"."""

    OPENING = tuple(numpy_actor.NumpyActor().encode("Step"))
    BLANK = 5

    def batch_decode(self, rows, **options):
        texts = []
        for row in rows:
            words = [numpy_actor.WORD[token] for token in row]
            words = [
                "\n\n" if token == self.BLANK else w for token, w in zip(row, words, strict=True)
            ]
            if tuple(row[: len(self.OPENING)]) == self.OPENING:
                words[: len(self.OPENING)] = ["Step 2:"]
            texts.append(" ".join(words))
        return texts


def test_the_policy_finds_its_first_error_and_proposes_the_step_in_its_place():
    """Every reply replaces the second step: a target begins with the first step of a response."""
    actor = numpy_actor.NumpyActor(chance=0.3, tokenizer=Paragraphs())
    chain = recipe("intervention_training", continuations=4).experience
    assert imitated_rows(chain, actor) > 0
    for collected, _, _ in numpy_actor.walk(chain, actor, steps=8):
        metrics, sampled = collected.metrics, collected.seen[0]
        incorrect = np.flatnonzero(sampled.rollouts.outcome == 0)
        assert metrics["proposed_interventions"] + metrics["unreadable_interventions"] == (
            pytest.approx(len(incorrect) / len(sampled))
        )
        firsts = {first_step(sampled.rollouts, row) for row in incorrect}
        for tokens in collected.batch.rollouts.tokens[
            collected.batch.rollouts.records["supervised"]
        ]:
            place = tokens.tolist().index(Paragraphs.BLANK)
            assert tuple(tokens[: place + 1]) in firsts


def first_step(rollouts, row):
    """The tokens of a row up to its first blank line after a word."""
    tokens = rollouts.tokens[row, : rollouts.length[row]].tolist()
    words = [place for place, token in enumerate(tokens) if token != Paragraphs.BLANK]
    blanks = [p for p, t in enumerate(tokens) if t == Paragraphs.BLANK and words and p > words[0]]
    return tuple(tokens[: blanks[0] + 1]) if blanks else ()


def test_a_policy_that_cannot_read_the_request_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"error_request\(steps=\(\)\) prompts must have words"):
        training_runs.on_brackets("intervention_training", tmp_path, PATHS)


def test_steps_are_scored_only_for_the_search_by_scores():
    task = replace(numbered_task(), score_steps=None)
    chain = recipe("intervention_training").experience
    chain.init(numpy_actor.setting(chain, task=task))
    scored = recipe("intervention_training", finder="scores").experience
    with pytest.raises(ValueError, match=r"task must have Task\.score_steps"):
        scored.init(numpy_actor.setting(scored, task=task))


@pytest.mark.slow
def test_training_on_interventions(tmp_path):
    steps = training_runs.on_brackets(
        "intervention_training",
        tmp_path,
        PATHS,
        steps=3,
        hyperparameters=("finder=scores", "continuations=4"),
    )
    assert max(training_runs.values(steps, "experience/accepted_interventions")) > 0
    assert max(training_runs.values(steps, "imitated_tokens")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
