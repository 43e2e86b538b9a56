"""Fenced blocks of a language in a response."""

import pytest

from rlvr_jax.verifiers.fences import fences, last_fence


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```sql\na\n```", ["a"]),
        ("~~~sql\na\n~~~", ["a"]),
        ("~~~SQL\na\n~~~ then ```sql\nb\n```", ["a", "b"]),
        ("~~~sql\na ``` b\n~~~", ["a ``` b"]),
        ("```sql\na ~~~ b\n```", ["a ~~~ b"]),
        ("~~~sql\na\n```", []),
        ("~~~sql\na ```sql\nb\n```", ["b"]),
        ("~~~sqlite\na\n~~~", []),
        ("~~~\na\n~~~", []),
        ("", []),
    ],
)
def test_blocks_are_closed_by_the_mark_that_opens_them(text, found):
    assert fences(text, "sql") == found
    assert last_fence(text, "sql") == (found[-1] if found else None)


@pytest.mark.parametrize("text", ["~~~sql\n" * 50_000, "~~~sql\n```" * 50_000, "~" * 300_000])
def test_a_response_of_fences_is_read_in_linear_time(text):
    fences(text, "sql")
