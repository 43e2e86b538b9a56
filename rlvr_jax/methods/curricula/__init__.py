"""Curricula: methods that choose the prompts of a step."""
