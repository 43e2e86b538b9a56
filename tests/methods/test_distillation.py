"""Methods with a teacher: what they learn, and the room that a second prompt needs."""

import pytest
import training_runs
from everyday import everyday


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "acted"),
    everyday(
        [
            ("sdpo", "taught_fraction"),
            ("srpo", "taught_fraction"),
            ("ssb", "experience/accepted_replies"),
        ],
        ("srpo", "taught_fraction"),
    ),
)
def test_training_distils_what_the_policy_knows_once_it_is_shown_more(name, acted, tmp_path):
    steps = training_runs.on_brackets(name, tmp_path, hyperparameters=("teacher=average:0.5",))
    assert max(training_runs.values(steps, acted)) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


@pytest.mark.parametrize(
    ("name", "tokens", "most"),
    [
        *(("sdpo", 48, 45), ("ssb", 32, 30)),
        *((name, 48, 45) for name in ("clpo", "gar", "ssp", "stp", "svs")),
    ],
)
def test_room_for_what_a_second_prompt_shows_is_asked_for_before_the_first_step(
    name, tokens, most, tmp_path
):
    sentence = (
        f"response-tokens must be at most {most} for this method, which shows .* got {tokens}"
    )
    run_dir = tmp_path / "run"
    with pytest.raises(ValueError, match=sentence):
        given = ("max_turns=0",) if name == "ssp" else ()
        training_runs.on_brackets(name, run_dir, response_tokens=tokens, hyperparameters=given)
