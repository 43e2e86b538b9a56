"""The command that measures a diagnosis."""

import re

import pytest

from experiments import bench_diagnosis
from rlvr_jax import tasks


def test_it_says_how_long_stored_answers_take_and_how_much_memory(capsys):
    bench_diagnosis.main(["--tokens", "3000", "--length", "16", "--samples", "4"])
    told = capsys.readouterr().out
    assert re.match(r"[\d,]+ stored tokens of 31 problems: \d+\.\d s, memory .* GB\n", told)
    number = int(told.partition(" ")[0].replace(",", ""))
    assert 2500 < number < 3500  # lengths are drawn


@pytest.mark.thorough
def test_it_says_what_a_diagnosis_adds_to_the_scorers_own_time(capsys):
    scorer = tasks.load("brackets").base_model
    few = ["--tokens", "3000", "--length", "16", "--samples", "4"]
    bench_diagnosis.main([*few, "--scorer", scorer])
    told = capsys.readouterr().out.splitlines()[1]
    own, _, both, times = map(float, re.findall(r"(\d+\.\d+) (?:s|times)", told))
    assert told.startswith(f"scored by {scorer}: ")
    # Each is rounded; which is longer is the machine's affair.
    assert (both - 0.06) / (own + 0.06) < times < (both + 0.06) / max(own - 0.06, 0.01)


def test_tokens_that_make_no_two_problems_are_refused():
    with pytest.raises(ValueError, match="tokens must be enough for two problems, got 10"):
        bench_diagnosis.main(["--tokens", "10"])
