"""Exploration: diversity within a group, pass@k, hard prompts."""
