"""The command that measures a diagnosis."""

import re

import pytest

from experiments import bench_diagnosis


def test_it_says_how_long_stored_answers_take_and_how_much_memory(capsys):
    bench_diagnosis.main(["--tokens", "3000", "--length", "16", "--samples", "4"])
    told = capsys.readouterr().out
    assert re.match(r"[\d,]+ stored tokens of 31 problems: \d+\.\d s, memory .* GB\n", told)
    number = int(told.partition(" ")[0].replace(",", ""))
    assert 2500 < number < 3500  # lengths are drawn


def test_tokens_that_make_no_two_problems_are_refused():
    with pytest.raises(ValueError, match="tokens must make two problems at least, got 10"):
        bench_diagnosis.main(["--tokens", "10"])
