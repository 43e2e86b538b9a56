"""Variations of a problem, written from its right answers, whose answer is that of the problem."""

from __future__ import annotations

__all__ = []


REQUEST = (
    "This is a solution of a problem that you do not see. Write a problem that it solves, with the"
    " same answer, between ```text and ```."
)
