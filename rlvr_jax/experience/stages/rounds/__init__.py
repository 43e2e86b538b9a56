"""Stages that sample more responses: again, for further prompts, or from inside a response."""
