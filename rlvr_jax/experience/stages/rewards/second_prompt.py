"""A second prompt, after which responses are scored as well."""

from __future__ import annotations

__all__ = []

GIVES = frozenset({"second_tokens", "second_length"})
