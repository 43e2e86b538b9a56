"""The reference of metrics is made of the declaration and of docstrings."""

import pytest

from docs.metrics_page import PAGE, documented, metrics_page
from rlvr_jax.analysis.metrics import declared, unit_of


def test_the_page_is_what_the_library_says():
    assert PAGE.read_text() == metrics_page(), "run `python docs/metrics_page.py`"


def test_metrics_of_a_docstring_are_names_with_meanings():
    text = "a/<kind>, b (nats (of both)), c_fraction (of rows, or\n  of groups); those of `d`."
    found = documented(f"A part.\n\nMetrics: {text}\nRaises:\n  ValueError: e (f).")
    both = "nats (of both)"
    assert found.metrics == {"a/<kind>": both, "b": both, "c_fraction": "of rows, or of groups"}
    assert found.others == ("`d`",)
    assert documented("Without any.") is None


@pytest.mark.parametrize("text", ["a, its mean", "a", "mean of b (nats)"])
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match="Metrics: "):
        documented(f"Metrics: {text}.")


def test_units_are_declared_once_for_page_and_report():
    assert unit_of("held_out/easy/pass@8") == "fraction of prompts"
    assert unit_of("entropy_threshold") == "as written"
    assert sum(len(one.names) for one in declared() if one.healthy) >= 40
