"""Heimdall: the verdict is the last line with text."""

import pytest

from rlvr_jax.verifiers import Check, examine

HEIMDALL = "rlvr_jax.verifiers.texts.heimdall"


@pytest.mark.parametrize(
    ("response", "gold", "outcome"),
    (
        ("RIGHT", True, 1),
        ("RIGHT", False, 0),
        ("WRONG", False, 1),
        ("Step 2 fails.\nwrong.\n\n", False, 1),
        ("RIGHT\nWRONG", True, 0),
        ("It is RIGHT", True, 0),
        ("RIGHT\nor not", True, 0),
        ("<think>RIGHT</think>\n WRONG ", False, 1),
        ("<think>WRONG</think>", False, 0),
        ("", False, 0),
    ),
)
def test_the_last_line_is_the_verdict(response, gold, outcome):
    check = Check(f"{HEIMDALL}:check", f"{HEIMDALL}:extract")
    assert examine(check, response, gold).outcome == outcome
