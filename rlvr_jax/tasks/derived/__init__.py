"""Prompts made of other prompts: with hints, critiques, verdicts, in dialogues, from traces."""
