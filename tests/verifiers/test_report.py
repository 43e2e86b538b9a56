"""The report on a peer's cases: agreements by kind, what differs, and files that are none."""

import json

import pytest

from rlvr_jax.verifiers.report import Case, differences, main, read_cases

ROWS = [
    {"input": r"so \boxed{5}", "gold": "5", "verdict": 1, "why": "integers"},
    {"input": "6", "gold": "5", "verdict": 0, "why": "integers"},
    {"input": "2,1", "gold": "(1,2)", "verdict": 1},
    {"input": "1", "gold": "foo(", "verdict": None},
]


def written(folder, rows):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "peer.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_cases_are_counted_by_kind(tmp_path, verifier):
    cases = read_cases(written(tmp_path, ROWS))
    assert cases[1] == Case("peer.jsonl:2", r"\boxed{6}", "5", 0, "integers")
    counts, differing = differences(cases, verifier)
    assert counts == {"integers": [2, 2], "peer": [1, 2]}
    assert [case.place for case, _ in differing] == ["peer.jsonl:3"]


def test_the_report_shows_what_differs(tmp_path, capsys):
    assert main([str(written(tmp_path, ROWS))]) == 1
    shown = capsys.readouterr().out
    assert "2 / 2      integers" in shown
    assert "peer.jsonl:3: gold '(1,2)', read '2,1': 0 (exact), there 1" in shown
    assert main([str(written(tmp_path, ROWS[:2]))]) == 0


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"input": "1", "gold": "1"}], "peer.jsonl:1 must be an object with input, gold and"),
        ([{"input": 1, "gold": "1", "verdict": 1}], "must have texts as input and gold"),
        ([{"input": "1", "gold": "1", "verdict": "yes"}], "1, 0 or null as verdict"),
    ],
)
def test_a_line_that_is_no_case_is_named(tmp_path, capsys, rows, message):
    assert main([str(written(tmp_path, rows))]) == 2
    assert message in capsys.readouterr().out


def test_a_folder_without_cases_is_refused(tmp_path, capsys):
    assert main([str(tmp_path)]) == 2
    assert "FOLDER must hold .jsonl files" in capsys.readouterr().out
