"""The page of what the maths verifier accepts is made of the case tables, and is up to date."""

from pathlib import Path

from docs.case_page import Case, markdown, read_cases

ROOT = Path(__file__).parents[2]
TABLES = ["tests/cases/maths_kinds.jsonl", "tests/cases/maths_neighbours.jsonl"]


def test_the_page_is_that_of_the_tables():
    cases = [case for table in TABLES for case in read_cases(ROOT / table)]
    page = f"{markdown(cases, ' '.join(TABLES))}\n"
    assert (ROOT / "docs" / "maths_verifier.md").read_text(encoding="utf-8") == page
    assert f"`python docs/case_page.py {' '.join(TABLES)}`" in page


def test_every_kind_has_accepted_refused_and_ungraded_examples():
    cases = [
        Case("a:1", r"\boxed{|x|}", "x", 0, "sizes", "not where x is negative"),
        Case("a:2", r"\boxed{x}", "x", 1, "sizes", "the same"),
        Case("a:3", r"so \boxed{1}", "foo(", None, "sizes", "cannot be read"),
        Case("a:4", r"\boxed{`5`}", "5", 1, "marks"),
    ]
    page = markdown(cases, "a.jsonl")
    rows = [line for line in page.splitlines() if line.startswith(("## ", "| "))]
    assert rows == [
        "## Sizes",
        "| | answer | gold | reason |",
        "| accepted | `x` | `x` | the same |",
        r"| refused | `\|x\|` | `x` | not where x is negative |",
        r"| ungraded | `so \boxed{1}` | `foo(` | cannot be read |",
        "## Marks",
        "| | answer | gold |",
        "| accepted | `` `5` `` | `5` |",
    ]


def test_long_tables_are_shown_in_part():
    cases = [Case("a:1", rf"\boxed{{{n}}}", str(n), 1, "integers") for n in range(100)]
    page = markdown([*cases, Case("a:1", "7" * 100, "7", 0, "integers")], "a.jsonl")
    assert page.count("| accepted |") == 8
    assert "101 cases of 1 kinds" in page
    assert "7" * 100 not in page
