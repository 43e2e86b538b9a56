"""Curricula: which prompts a step asks."""
