"""The prose that users read keeps what was counted, see check_prose.py."""

from pathlib import Path

import check_prose

ROOT = Path(__file__).parents[1]
HELD = {"long": 179, "glossary": 28, "what": 2, "number": 0}


def test_no_kind_of_finding_grows():
    found = check_prose.findings(ROOT)
    counts = check_prose.totals(found)
    above = {kind: counts[kind] for kind in counts if counts[kind] > HELD[kind]}
    assert not above, f"{above}: run python tests/check_prose.py, then with --show FILE"


def test_each_kind_is_found():
    text = "What is said here gives .5 of a share. " + "word " * 26
    kinds = [one.kind for one in check_prose.findings_of("page.md", 1, text)]
    assert set(kinds) == {"what", "glossary", "number", "long"}
    plain = "The fraction is 0.5, and `log_probs` is code."
    assert not list(check_prose.findings_of("page.md", 1, plain))
