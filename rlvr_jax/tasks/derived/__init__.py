"""Prompts made from other prompts: with hints, critiques, verdicts, dialogues, traces."""
