"""Rewards: scores in addition to or instead of the grade of a response."""
